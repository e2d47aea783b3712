#include "sinter/codegen/interpret_ops.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "interpret_lanes.h"
#include "sinter/graph/error.h"

// Arithmetic by lane.
namespace sinter::codegen {
namespace {

template <class F>
using BitsOf = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;

// Branch-free forms of num::Max and num::Min, so that loops over them become vector code. Equal operands have
// equal bits, or are zeros: then the signs decide.
template <class F>
F MaxOf(F a, F b) {
  using U = BitsOf<F>;
  F r = a > b ? a : b;
  r = a == b ? std::bit_cast<F>(static_cast<U>(std::bit_cast<U>(a) & std::bit_cast<U>(b))) : r;
  r = a != a ? a : r;
  return b != b ? b : r;
}
template <class F>
F MinOf(F a, F b) {
  using U = BitsOf<F>;
  F r = a < b ? a : b;
  r = a == b ? std::bit_cast<F>(static_cast<U>(std::bit_cast<U>(a) | std::bit_cast<U>(b))) : r;
  r = a != a ? a : r;
  return b != b ? b : r;
}

template <class I>
using Unsigned = std::make_unsigned_t<I>;
template <class I>
I Negated(I x) {
  return static_cast<I>(Unsigned<I>{0} - static_cast<Unsigned<I>>(x));
}
template <class I>
I Quotient(I a, I b) {
  return b == 0 ? 0 : b == -1 ? Negated(a) : a / b;
}
template <class I>
I Remainder(I a, I b) {
  return b == 0 ? a : b == -1 ? 0 : a % b;
}
template <class I>
bool RoundsDown(I r, I b) {
  return b != 0 && r != 0 && (r < 0) != (b < 0);
}

[[noreturn]] void NoSuch(const char* type) {
  SINTER_CHECK(false, std::string("no such operation on ") + type);
  std::abort();
}

template <class F>
LaneFn FloatOp(ExprKind kind) {
  using B = uint8_t;
  switch (kind) {
    case ExprKind::kNeg:
      return Map1<F, F, [](F x) { return -x; }>;
    case ExprKind::kAbs:
      return Map1<F, F, [](F x) { return std::abs(x); }>;
    case ExprKind::kFloor:
      return Map1<F, F, [](F x) { return std::floor(x); }>;
    case ExprKind::kCeil:
      return Map1<F, F, [](F x) { return std::ceil(x); }>;
    case ExprKind::kTrunc:
      return Map1<F, F, [](F x) { return std::trunc(x); }>;
    case ExprKind::kRound:
      return Map1<F, F, [](F x) { return std::rint(x); }>;
    case ExprKind::kSqrt:
      return Map1<F, F, [](F x) { return std::sqrt(x); }>;
    case ExprKind::kIsNan:
      return Map1<F, B, [](F x) { return static_cast<B>(x != x); }>;
    case ExprKind::kBitcast:
      return Map1<BitsOf<F>, BitsOf<F>, [](BitsOf<F> x) { return x; }>;
    case ExprKind::kAdd:
      return Map2<F, F, [](F x, F y) { return x + y; }>;
    case ExprKind::kSub:
      return Map2<F, F, [](F x, F y) { return x - y; }>;
    case ExprKind::kMul:
      return Map2<F, F, [](F x, F y) { return x * y; }>;
    case ExprKind::kDiv:
      return Map2<F, F, [](F x, F y) { return x / y; }>;
    case ExprKind::kMin:
      return Map2<F, F, [](F x, F y) { return MinOf(x, y); }>;
    case ExprKind::kMax:
      return Map2<F, F, [](F x, F y) { return MaxOf(x, y); }>;
    case ExprKind::kLt:
      return Map2<F, B, [](F x, F y) { return static_cast<B>(x < y); }>;
    case ExprKind::kLe:
      return Map2<F, B, [](F x, F y) { return static_cast<B>(x <= y); }>;
    case ExprKind::kEq:
      return Map2<F, B, [](F x, F y) { return static_cast<B>(x == y); }>;
    case ExprKind::kNe:
      return Map2<F, B, [](F x, F y) { return static_cast<B>(x != y); }>;
    case ExprKind::kFma:
      return Map3<F, [](F x, F y, F z) { return std::fma(x, y, z); }>;
    default:
      NoSuch("floats");
  }
}

template <class I>
LaneFn IntOp(ExprKind kind) {
  using U = Unsigned<I>;
  using B = uint8_t;
  constexpr U kMask = sizeof(I) * 8 - 1;
  switch (kind) {
    case ExprKind::kNeg:
      return Map1<I, I, [](I x) { return Negated(x); }>;
    case ExprKind::kAbs:
      return Map1<I, I, [](I x) { return x < 0 ? Negated(x) : x; }>;
    case ExprKind::kNot:
      return Map1<I, I, [](I x) { return static_cast<I>(~x); }>;
    case ExprKind::kBitcast:
      return Map1<U, U, [](U x) { return x; }>;
    case ExprKind::kAdd:
      return Map2<U, U, [](U x, U y) { return x + y; }>;
    case ExprKind::kSub:
      return Map2<U, U, [](U x, U y) { return x - y; }>;
    case ExprKind::kMul:
      return Map2<U, U, [](U x, U y) { return x * y; }>;
    case ExprKind::kDiv:
      return Map2<I, I, [](I x, I y) { return Quotient(x, y); }>;
    case ExprKind::kRem:
      return Map2<I, I, [](I x, I y) { return Remainder(x, y); }>;
    case ExprKind::kFloorDiv:
      return Map2<I, I,
                  [](I x, I y) { return static_cast<I>(Quotient(x, y) - RoundsDown(Remainder(x, y), y)); }>;
    case ExprKind::kFloorMod:
      return Map2<I, I, [](I x, I y) {
        return static_cast<I>(Remainder(x, y) + (RoundsDown(Remainder(x, y), y) ? y : 0));
      }>;
    case ExprKind::kMin:
      return Map2<I, I, [](I x, I y) { return x < y ? x : y; }>;
    case ExprKind::kMax:
      return Map2<I, I, [](I x, I y) { return (x > y) ? x : y; }>;
    case ExprKind::kAnd:
      return Map2<U, U, [](U x, U y) { return x & y; }>;
    case ExprKind::kOr:
      return Map2<U, U, [](U x, U y) { return x | y; }>;
    case ExprKind::kXor:
      return Map2<U, U, [](U x, U y) { return x ^ y; }>;
    case ExprKind::kShl:
      return Map2<U, U, [](U x, U y) { return x << (y & kMask); }>;
    case ExprKind::kShr:
      return Map2<I, I, [](I x, I y) { return static_cast<I>((x >> (static_cast<U>(y) & kMask))); }>;
    case ExprKind::kShrLogical:
      return Map2<U, U, [](U x, U y) { return (x >> (y & kMask)); }>;
    case ExprKind::kLt:
      return Map2<I, B, [](I x, I y) { return static_cast<B>(x < y); }>;
    case ExprKind::kLe:
      return Map2<I, B, [](I x, I y) { return static_cast<B>(x <= y); }>;
    case ExprKind::kEq:
      return Map2<I, B, [](I x, I y) { return static_cast<B>(x == y); }>;
    case ExprKind::kNe:
      return Map2<I, B, [](I x, I y) { return static_cast<B>(x != y); }>;
    default:
      NoSuch("integers");
  }
}

LaneFn BoolOp(ExprKind kind) {
  using B = uint8_t;
  switch (kind) {
    case ExprKind::kNot:
      return Map1<B, B, [](B x) { return static_cast<B>(x ^ 1); }>;
    case ExprKind::kAnd:
    case ExprKind::kMin:
    case ExprKind::kMul:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x & y); }>;
    case ExprKind::kOr:
    case ExprKind::kMax:
    case ExprKind::kAdd:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x | y); }>;
    case ExprKind::kXor:
    case ExprKind::kNe:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x ^ y); }>;
    case ExprKind::kEq:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x == y); }>;
    case ExprKind::kLt:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x < y); }>;
    case ExprKind::kLe:
      return Map2<B, B, [](B x, B y) { return static_cast<B>(x <= y); }>;
    default:
      NoSuch("bool");
  }
}

template <class T>
void Select(const void* condition, const void* a, const void* b, void* out, int n) {
  const uint8_t* c = static_cast<const uint8_t*>(condition);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* r = static_cast<T*>(out);
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) r[i] = c[i] ? x[i] : y[i];
}

uint64_t Extreme(DType t, bool lowest) {
  switch (t) {
    case DType::kFloat32:
    case DType::kFloat64:
      return Expr::Const(t, lowest ? -INFINITY : INFINITY)->bits;
    case DType::kInt32:
      return static_cast<uint32_t>(lowest ? INT32_MIN : INT32_MAX);
    case DType::kInt64:
      return static_cast<uint64_t>(lowest ? INT64_MIN : INT64_MAX);
    default:
      return !lowest;
  }
}

}  // namespace

LaneFn LaneOp(ExprKind kind, DType t) {
  if (kind == ExprKind::kSelect) {
    switch (ItemSize(t)) {
      case 1:
        return Select<uint8_t>;
      case 2:
        return Select<uint16_t>;
      case 4:
        return Select<uint32_t>;
      default:
        return Select<uint64_t>;
    }
  }
  switch (t) {
    case DType::kFloat32:
      return FloatOp<float>(kind);
    case DType::kFloat64:
      return FloatOp<double>(kind);
    case DType::kInt32:
      return IntOp<int32_t>(kind);
    case DType::kInt64:
      return IntOp<int64_t>(kind);
    case DType::kBool:
      return BoolOp(kind);
    default:
      NoSuch("a type that doesn't compute");
  }
}

LaneFn LaneCombine(ReduceKind kind, DType t) {
  switch (kind) {
    case ReduceKind::kSum:
      return LaneOp(ExprKind::kAdd, t);
    case ReduceKind::kProd:
      return LaneOp(ExprKind::kMul, t);
    case ReduceKind::kMax:
      return LaneOp(ExprKind::kMax, t);
    case ReduceKind::kMin:
      return LaneOp(ExprKind::kMin, t);
    case ReduceKind::kAny:
      return LaneOp(ExprKind::kOr, t);
    case ReduceKind::kAll:
      return LaneOp(ExprKind::kAnd, t);
    case ReduceKind::kContract:
      break;
  }
  SINTER_CHECK(false, "contractions accumulate by fma");
  return nullptr;
}

uint64_t ReduceIdentity(ReduceKind kind, DType t) {
  switch (kind) {
    case ReduceKind::kSum:
      return IsFloating(t) ? Expr::Const(t, -0.0)->bits : 0;
    case ReduceKind::kProd:
      return IsFloating(t) ? Expr::Const(t, 1)->bits : 1;
    case ReduceKind::kMax:
      return Extreme(t, true);
    case ReduceKind::kMin:
      return Extreme(t, false);
    case ReduceKind::kAll:
      return 1;
    case ReduceKind::kAny:
    case ReduceKind::kContract:
      break;
  }
  return 0;
}

}  // namespace sinter::codegen
