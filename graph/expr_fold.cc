#include "sinter/graph/expr_fold.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sinter/graph/num.h"

namespace sinter {
namespace {

template <class T>
T From(uint64_t bits) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(bits));
  else return std::bit_cast<T>(bits);
}
template <class T>
uint64_t To(T v) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(v);
  else return std::bit_cast<uint64_t>(v);
}

template <class F>
std::optional<uint64_t> FloatUnary(ExprKind kind, F a) {
  switch (kind) {
    case ExprKind::kNeg: return To(-a);
    case ExprKind::kAbs: return To(std::abs(a));
    case ExprKind::kFloor: return To(std::floor(a));
    case ExprKind::kCeil: return To(std::ceil(a));
    case ExprKind::kTrunc: return To(std::trunc(a));
    case ExprKind::kRound: return To(std::nearbyint(a));
    case ExprKind::kSqrt: return To(std::sqrt(a));
    case ExprKind::kIsNan: return std::isnan(a);
    default: return std::nullopt;
  }
}

template <class I>
std::optional<uint64_t> IntUnary(ExprKind kind, I a) {
  using U = std::make_unsigned_t<I>;
  const I negated = static_cast<I>(U{0} - static_cast<U>(a));
  switch (kind) {
    case ExprKind::kNeg: return To(negated);
    case ExprKind::kAbs: return To(a < 0 ? negated : a);
    case ExprKind::kNot: return To(static_cast<I>(~a));
    default: return std::nullopt;
  }
}

template <class F>
std::optional<uint64_t> FloatBinary(ExprKind kind, F a, F b) {
  switch (kind) {
    case ExprKind::kAdd: return To(a + b);
    case ExprKind::kSub: return To(a - b);
    case ExprKind::kMul: return To(a * b);
    case ExprKind::kDiv: return To(a / b);
    case ExprKind::kMin: return To(num::Min(a, b));
    case ExprKind::kMax: return To(num::Max(a, b));
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    default: return std::nullopt;
  }
}

template <class I>
std::optional<uint64_t> IntBinary(ExprKind kind, I a, I b) {
  using U = std::make_unsigned_t<I>;
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  constexpr unsigned kMask = sizeof(I) * 8 - 1;
  const bool overflow = a == std::numeric_limits<I>::min() && b == -1;
  const I quotient = b == 0 ? 0 : overflow ? a : static_cast<I>(a / b);
  const I remainder = b == 0 ? a : overflow ? 0 : static_cast<I>(a % b);
  const bool inexact_negative = b != 0 && remainder != 0 && (remainder < 0) != (b < 0);
  switch (kind) {
    case ExprKind::kAdd: return To(static_cast<I>(ua + ub));
    case ExprKind::kSub: return To(static_cast<I>(ua - ub));
    case ExprKind::kMul: return To(static_cast<I>(ua * ub));
    case ExprKind::kDiv: return To(quotient);
    case ExprKind::kRem: return To(remainder);
    case ExprKind::kFloorDiv: return To(static_cast<I>(quotient - inexact_negative));
    case ExprKind::kFloorMod: return To(static_cast<I>(inexact_negative ? remainder + b : remainder));
    case ExprKind::kMin: return To(a < b ? a : b);
    case ExprKind::kMax: return To(a > b ? a : b);
    case ExprKind::kAnd: return To(static_cast<I>(a & b));
    case ExprKind::kOr: return To(static_cast<I>(a | b));
    case ExprKind::kXor: return To(static_cast<I>(a ^ b));
    case ExprKind::kShl: return To(static_cast<I>(ua << (ub & kMask)));
    case ExprKind::kShr: return To(static_cast<I>(a >> (ub & kMask)));
    case ExprKind::kShrLogical: return To(static_cast<I>(ua >> (ub & kMask)));
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    default: return std::nullopt;
  }
}

std::optional<uint64_t> BoolBinary(ExprKind kind, bool a, bool b) {
  switch (kind) {
    case ExprKind::kAnd: case ExprKind::kMin: case ExprKind::kMul: return a && b;
    case ExprKind::kOr: case ExprKind::kMax: case ExprKind::kAdd: return a || b;
    case ExprKind::kXor: case ExprKind::kNe: return a != b;
    case ExprKind::kEq: return a == b;
    case ExprKind::kLt: return !a && b;
    case ExprKind::kLe: return !a || b;
    default: return std::nullopt;
  }
}

template <class F>
std::optional<uint64_t> ConvertFloat(F a, DType to) {
  switch (to) {
    case DType::kFloat32: return To(static_cast<float>(a));
    case DType::kFloat64: return To(static_cast<double>(a));
    case DType::kInt32:
      return To(a != a ? 0 : a >= F(0x1p31) ? INT32_MAX : a < F(-0x1p31) ? INT32_MIN : static_cast<int32_t>(a));
    case DType::kInt64:
      return To(a != a ? int64_t{0} : a >= F(0x1p63) ? INT64_MAX : a < F(-0x1p63) ? INT64_MIN : static_cast<int64_t>(a));
    case DType::kBool: return a != 0;
    default: return std::nullopt;
  }
}

template <class I>
std::optional<uint64_t> ConvertInt(I a, DType to) {
  switch (to) {
    case DType::kFloat32: return To(static_cast<float>(a));
    case DType::kFloat64: return To(static_cast<double>(a));
    case DType::kInt32: return To(static_cast<int32_t>(a));
    case DType::kInt64: return To(static_cast<int64_t>(a));
    case DType::kBool: return a != 0;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<uint64_t> FoldUnary(ExprKind kind, DType t, uint64_t a) {
  switch (t) {
    case DType::kFloat32: return FloatUnary(kind, From<float>(a));
    case DType::kFloat64: return FloatUnary(kind, From<double>(a));
    case DType::kInt32: return IntUnary(kind, From<int32_t>(a));
    case DType::kInt64: return IntUnary(kind, From<int64_t>(a));
    case DType::kBool: return kind == ExprKind::kNot ? std::optional<uint64_t>(a == 0) : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<uint64_t> FoldBinary(ExprKind kind, DType t, uint64_t a, uint64_t b) {
  switch (t) {
    case DType::kFloat32: return FloatBinary(kind, From<float>(a), From<float>(b));
    case DType::kFloat64: return FloatBinary(kind, From<double>(a), From<double>(b));
    case DType::kInt32: return IntBinary(kind, From<int32_t>(a), From<int32_t>(b));
    case DType::kInt64: return IntBinary(kind, From<int64_t>(a), From<int64_t>(b));
    case DType::kBool: return BoolBinary(kind, a != 0, b != 0);
    default: return std::nullopt;
  }
}

std::optional<uint64_t> FoldConvert(DType from, DType to, uint64_t a) {
  switch (from) {
    case DType::kFloat32: return ConvertFloat(From<float>(a), to);
    case DType::kFloat64: return ConvertFloat(From<double>(a), to);
    case DType::kInt32: return ConvertInt(From<int32_t>(a), to);
    case DType::kInt64: return ConvertInt(From<int64_t>(a), to);
    case DType::kBool: return ConvertInt(static_cast<int32_t>(a != 0), to);
    default: return std::nullopt;
  }
}

}  // namespace sinter
