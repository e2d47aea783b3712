#include "sinter/codegen/interpret_ops.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sinter/graph/error.h"
#include "sinter/graph/num.h"
#include "sinter/runtime/half.h"

namespace sinter::codegen {
namespace {

// Calls f with a value of the type that stores `t`.
template <class F>
void Visit(DType t, F f) {
  switch (t) {
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
    case DType::kInt32: return f(int32_t{});
    case DType::kInt64: return f(int64_t{});
    case DType::kBool: return f(uint8_t{});
    default: SINTER_CHECK(false, "not a compute type");
  }
}

template <class F>
void VisitStorage(DType t, F f) {
  switch (ItemSize(t)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

template <class T, class R, class F>
void Map1(const void* a, void* out, int n, F f) {
  const T* x = static_cast<const T*>(a);
  R* y = static_cast<R*>(out);
  for (int i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class R, class F>
void Map2(const void* a, const void* b, void* out, int n, F f) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  for (int i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
}

// Branch-free forms of num::Max and num::Min, which g++ vectorises.
template <class F>
F MaxOf(F a, F b) {
  F r = a > b ? a : b;
  r = a == b ? (std::signbit(a) ? b : a) : r;
  return (a != a) | (b != b) ? a + b : r;
}
template <class F>
F MinOf(F a, F b) {
  F r = a < b ? a : b;
  r = a == b ? (std::signbit(a) ? a : b) : r;
  return (a != a) | (b != b) ? a + b : r;
}

template <class F>
void FloatUnary(ExprKind kind, const void* a, void* out, int n) {
  switch (kind) {
    case ExprKind::kNeg: return Map1<F, F>(a, out, n, [](F x) { return -x; });
    case ExprKind::kAbs: return Map1<F, F>(a, out, n, [](F x) { return std::abs(x); });
    case ExprKind::kFloor: return Map1<F, F>(a, out, n, [](F x) { return std::floor(x); });
    case ExprKind::kCeil: return Map1<F, F>(a, out, n, [](F x) { return std::ceil(x); });
    case ExprKind::kTrunc: return Map1<F, F>(a, out, n, [](F x) { return std::trunc(x); });
    case ExprKind::kRound: return Map1<F, F>(a, out, n, [](F x) { return std::nearbyint(x); });
    case ExprKind::kSqrt: return Map1<F, F>(a, out, n, [](F x) { return std::sqrt(x); });
    case ExprKind::kIsNan: return Map1<F, uint8_t>(a, out, n, [](F x) { return x != x; });
    case ExprKind::kBitcast: {
      std::memcpy(out, a, sizeof(F) * n);
      return;
    }
    default: SINTER_CHECK(false, "no such operation on floats");
  }
}

template <class I>
void IntUnary(ExprKind kind, const void* a, void* out, int n) {
  using U = std::make_unsigned_t<I>;
  switch (kind) {
    case ExprKind::kNeg: return Map1<I, I>(a, out, n, [](I x) { return static_cast<I>(U{0} - static_cast<U>(x)); });
    case ExprKind::kAbs: return Map1<I, I>(a, out, n, [](I x) { return x < 0 ? static_cast<I>(U{0} - static_cast<U>(x)) : x; });
    case ExprKind::kNot: return Map1<I, I>(a, out, n, [](I x) { return static_cast<I>(~x); });
    case ExprKind::kBitcast: {
      std::memcpy(out, a, sizeof(I) * n);
      return;
    }
    default: SINTER_CHECK(false, "no such operation on integers");
  }
}

template <class F>
void FloatBinary(ExprKind kind, const void* a, const void* b, void* out, int n) {
  switch (kind) {
    case ExprKind::kAdd: return Map2<F, F>(a, b, out, n, [](F x, F y) { return x + y; });
    case ExprKind::kSub: return Map2<F, F>(a, b, out, n, [](F x, F y) { return x - y; });
    case ExprKind::kMul: return Map2<F, F>(a, b, out, n, [](F x, F y) { return x * y; });
    case ExprKind::kDiv: return Map2<F, F>(a, b, out, n, [](F x, F y) { return x / y; });
    case ExprKind::kMin: return Map2<F, F>(a, b, out, n, [](F x, F y) { return MinOf(x, y); });
    case ExprKind::kMax: return Map2<F, F>(a, b, out, n, [](F x, F y) { return MaxOf(x, y); });
    case ExprKind::kLt: return Map2<F, uint8_t>(a, b, out, n, [](F x, F y) { return x < y; });
    case ExprKind::kLe: return Map2<F, uint8_t>(a, b, out, n, [](F x, F y) { return x <= y; });
    case ExprKind::kEq: return Map2<F, uint8_t>(a, b, out, n, [](F x, F y) { return x == y; });
    case ExprKind::kNe: return Map2<F, uint8_t>(a, b, out, n, [](F x, F y) { return x != y; });
    default: SINTER_CHECK(false, "no such operation on floats");
  }
}

template <class I>
I Quotient(I a, I b) { return b == 0 ? 0 : b == -1 ? static_cast<I>(std::make_unsigned_t<I>{0} - static_cast<std::make_unsigned_t<I>>(a)) : a / b; }
template <class I>
I Remainder(I a, I b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

template <class I>
void IntBinary(ExprKind kind, const void* a, const void* b, void* out, int n) {
  using U = std::make_unsigned_t<I>;
  constexpr U kMask = sizeof(I) * 8 - 1;
  switch (kind) {
    case ExprKind::kAdd: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x + y; });
    case ExprKind::kSub: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x - y; });
    case ExprKind::kMul: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x * y; });
    case ExprKind::kDiv: return Map2<I, I>(a, b, out, n, [](I x, I y) { return Quotient(x, y); });
    case ExprKind::kRem: return Map2<I, I>(a, b, out, n, [](I x, I y) { return Remainder(x, y); });
    case ExprKind::kFloorDiv:
      return Map2<I, I>(a, b, out, n, [](I x, I y) {
        const I r = Remainder(x, y);
        return static_cast<I>(Quotient(x, y) - (y != 0 && r != 0 && (r < 0) != (y < 0)));
      });
    case ExprKind::kFloorMod:
      return Map2<I, I>(a, b, out, n, [](I x, I y) {
        const I r = Remainder(x, y);
        return static_cast<I>(y != 0 && r != 0 && (r < 0) != (y < 0) ? r + y : r);
      });
    case ExprKind::kMin: return Map2<I, I>(a, b, out, n, [](I x, I y) { return x < y ? x : y; });
    case ExprKind::kMax: return Map2<I, I>(a, b, out, n, [](I x, I y) { return x > y ? x : y; });
    case ExprKind::kAnd: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x & y; });
    case ExprKind::kOr: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x | y; });
    case ExprKind::kXor: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x ^ y; });
    case ExprKind::kShl: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x << (y & kMask); });
    case ExprKind::kShr: return Map2<I, I>(a, b, out, n, [](I x, I y) { return x >> (static_cast<U>(y) & kMask); });
    case ExprKind::kShrLogical: return Map2<U, U>(a, b, out, n, [](U x, U y) { return x >> (y & kMask); });
    case ExprKind::kLt: return Map2<I, uint8_t>(a, b, out, n, [](I x, I y) { return x < y; });
    case ExprKind::kLe: return Map2<I, uint8_t>(a, b, out, n, [](I x, I y) { return x <= y; });
    case ExprKind::kEq: return Map2<I, uint8_t>(a, b, out, n, [](I x, I y) { return x == y; });
    case ExprKind::kNe: return Map2<I, uint8_t>(a, b, out, n, [](I x, I y) { return x != y; });
    default: SINTER_CHECK(false, "no such operation on integers");
  }
}

void BoolBinary(ExprKind kind, const void* a, const void* b, void* out, int n) {
  using B = uint8_t;
  switch (kind) {
    case ExprKind::kAnd: case ExprKind::kMin: case ExprKind::kMul: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x & y; });
    case ExprKind::kOr: case ExprKind::kMax: case ExprKind::kAdd: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x | y; });
    case ExprKind::kXor: case ExprKind::kNe: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x ^ y; });
    case ExprKind::kEq: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x == y; });
    case ExprKind::kLt: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x < y; });
    case ExprKind::kLe: return Map2<B, B>(a, b, out, n, [](B x, B y) { return x <= y; });
    default: SINTER_CHECK(false, "no such operation on bool");
  }
}

template <class From, class To>
To ConvertOne(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, int32_t>) {
    return x != x ? 0 : x >= From(0x1p31) ? INT32_MAX : x < From(-0x1p31) ? INT32_MIN : static_cast<int32_t>(x);
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, int64_t>) {
    return x != x ? 0 : x >= From(0x1p63) ? INT64_MAX : x < From(-0x1p63) ? INT64_MIN : static_cast<int64_t>(x);
  } else {
    return static_cast<To>(x);
  }
}

// f64 to a half in one rounding: odd rounding to f32 first keeps what decides the second rounding.
float RoundToOdd(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || x != x) return f;
  const bool away = std::abs(static_cast<double>(f)) > std::abs(x);
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (away) --bits;
  return std::bit_cast<float>(bits | 1);
}

template <class From>
void ConvertFrom(DType to, const void* a, void* out, int n) {
  auto as_float = [](From x) {
    if constexpr (std::is_same_v<From, double>) return RoundToOdd(x);
    else return static_cast<float>(x);
  };
  switch (to) {
    case DType::kFloat32: return Map1<From, float>(a, out, n, [](From x) { return static_cast<float>(x); });
    case DType::kFloat64: return Map1<From, double>(a, out, n, [](From x) { return static_cast<double>(x); });
    case DType::kFloat16: return Map1<From, uint16_t>(a, out, n, [&](From x) { return FloatToHalf(as_float(x)); });
    case DType::kBFloat16: return Map1<From, uint16_t>(a, out, n, [&](From x) { return FloatToBFloat16(as_float(x)); });
    case DType::kInt8: return Map1<From, int8_t>(a, out, n, [](From x) { return static_cast<int8_t>(ConvertOne<From, int32_t>(x)); });
    case DType::kUInt8: return Map1<From, uint8_t>(a, out, n, [](From x) { return static_cast<uint8_t>(ConvertOne<From, int32_t>(x)); });
    case DType::kInt32: return Map1<From, int32_t>(a, out, n, [](From x) { return ConvertOne<From, int32_t>(x); });
    case DType::kInt64: return Map1<From, int64_t>(a, out, n, [](From x) { return ConvertOne<From, int64_t>(x); });
    case DType::kBool: return Map1<From, uint8_t>(a, out, n, [](From x) { return x != 0; });
  }
}

}  // namespace

void LaneUnary(ExprKind kind, DType t, const void* a, void* out, int n) {
  switch (t) {
    case DType::kFloat32: return FloatUnary<float>(kind, a, out, n);
    case DType::kFloat64: return FloatUnary<double>(kind, a, out, n);
    case DType::kInt32: return IntUnary<int32_t>(kind, a, out, n);
    case DType::kInt64: return IntUnary<int64_t>(kind, a, out, n);
    default:
      SINTER_CHECK(t == kBool && kind == ExprKind::kNot, "no such operation on bool");
      return Map1<uint8_t, uint8_t>(a, out, n, [](uint8_t x) { return x ^ 1; });
  }
}

void LaneBinary(ExprKind kind, DType t, const void* a, const void* b, void* out, int n) {
  switch (t) {
    case DType::kFloat32: return FloatBinary<float>(kind, a, b, out, n);
    case DType::kFloat64: return FloatBinary<double>(kind, a, b, out, n);
    case DType::kInt32: return IntBinary<int32_t>(kind, a, b, out, n);
    case DType::kInt64: return IntBinary<int64_t>(kind, a, b, out, n);
    default: return BoolBinary(kind, a, b, out, n);
  }
}

void LaneFma(DType t, const void* a, const void* b, const void* c, void* out, int n) {
  auto run = [&]<class F>(F) {
    const F *x = static_cast<const F*>(a), *y = static_cast<const F*>(b), *z = static_cast<const F*>(c);
    F* r = static_cast<F*>(out);
    for (int i = 0; i < n; ++i) r[i] = std::fma(x[i], y[i], z[i]);
  };
  t == kFloat64 ? run(double{}) : run(float{});
}

void LaneSelect(DType t, const void* condition, const void* a, const void* b, void* out, int n) {
  const uint8_t* c = static_cast<const uint8_t*>(condition);
  VisitStorage(t, [&]<class T>(T) {
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* r = static_cast<T*>(out);
    for (int i = 0; i < n; ++i) r[i] = c[i] ? x[i] : y[i];
  });
}

void LaneConvert(DType from, DType to, const void* a, void* out, int n) {
  switch (from) {
    case DType::kFloat32: return ConvertFrom<float>(to, a, out, n);
    case DType::kFloat64: return ConvertFrom<double>(to, a, out, n);
    case DType::kInt8: return ConvertFrom<int8_t>(to, a, out, n);
    case DType::kUInt8: return ConvertFrom<uint8_t>(to, a, out, n);
    case DType::kInt32: return ConvertFrom<int32_t>(to, a, out, n);
    case DType::kInt64: return ConvertFrom<int64_t>(to, a, out, n);
    case DType::kBool: return ConvertFrom<uint8_t>(to, a, out, n);
    case DType::kFloat16:
    case DType::kBFloat16: {
      float wide[kLanes];
      const uint16_t* x = static_cast<const uint16_t*>(a);
      for (int i = 0; i < n; ++i) wide[i] = from == kFloat16 ? HalfToFloat(x[i]) : BFloat16ToFloat(x[i]);
      return ConvertFrom<float>(to, wide, out, n);
    }
  }
}

void LaneCanonicalNan(DType t, void* a, int n) {
  if (t == kFloat32) {
    float* x = static_cast<float*>(a);
    for (int i = 0; i < n; ++i) x[i] = x[i] != x[i] ? std::bit_cast<float>(static_cast<uint32_t>(CanonicalNan(kFloat32))) : x[i];
  } else if (t == kFloat64) {
    double* x = static_cast<double*>(a);
    for (int i = 0; i < n; ++i) x[i] = x[i] != x[i] ? std::bit_cast<double>(CanonicalNan(kFloat64)) : x[i];
  }
}

void LaneFill(DType t, uint64_t bits, void* out, int n) {
  VisitStorage(t, [&]<class T>(T) {
    T* r = static_cast<T*>(out);
    for (int i = 0; i < n; ++i) r[i] = static_cast<T>(bits);
  });
}

void LaneGather(DType t, const void* base, const int64_t* offset, const uint8_t* predicate, void* out, int n) {
  VisitStorage(t, [&]<class T>(T) {
    const T* x = static_cast<const T*>(base);
    T* r = static_cast<T*>(out);
    if (predicate != nullptr) {
      for (int i = 0; i < n; ++i) r[i] = predicate[i] ? x[offset[i]] : T{0};
      return;
    }
    const int64_t step = n > 1 ? offset[1] - offset[0] : 0;
    bool regular = true;
    for (int i = 2; i < n; ++i) regular &= offset[i] - offset[i - 1] == step;
    if (regular && step == 1) {
      std::memcpy(r, x + offset[0], sizeof(T) * n);
    } else if (regular && step == 0) {
      const T v = x[offset[0]];
      for (int i = 0; i < n; ++i) r[i] = v;
    } else {
      for (int i = 0; i < n; ++i) r[i] = x[offset[i]];
    }
  });
}

void LaneScatter(DType t, void* base, const int64_t* offset, const void* value, int n) {
  VisitStorage(t, [&]<class T>(T) {
    T* x = static_cast<T*>(base);
    const T* v = static_cast<const T*>(value);
    bool dense = true;
    for (int i = 1; i < n; ++i) dense &= offset[i] == offset[i - 1] + 1;
    if (dense) {
      std::memcpy(x + offset[0], v, sizeof(T) * n);
    } else {
      for (int i = 0; i < n; ++i) x[offset[i]] = v[i];
    }
  });
}

void LaneAccumulate(ReduceKind kind, DType t, void* acc, const void* value, int n) {
  switch (kind) {
    case ReduceKind::kSum: return LaneBinary(ExprKind::kAdd, t, acc, value, acc, n);
    case ReduceKind::kProd: return LaneBinary(ExprKind::kMul, t, acc, value, acc, n);
    case ReduceKind::kMax: return LaneBinary(ExprKind::kMax, t, acc, value, acc, n);
    case ReduceKind::kMin: return LaneBinary(ExprKind::kMin, t, acc, value, acc, n);
    case ReduceKind::kAny: return LaneBinary(ExprKind::kOr, t, acc, value, acc, n);
    case ReduceKind::kAll: return LaneBinary(ExprKind::kAnd, t, acc, value, acc, n);
    case ReduceKind::kContract: SINTER_CHECK(false, "contractions accumulate by fma");
  }
}

uint64_t ReduceIdentity(ReduceKind kind, DType t) {
  const bool f = IsFloating(t);
  auto extreme = [&](bool lowest) -> uint64_t {
    switch (t) {
      case DType::kFloat32: return Expr::Const(t, lowest ? -INFINITY : INFINITY)->bits;
      case DType::kFloat64: return Expr::Const(t, lowest ? -INFINITY : INFINITY)->bits;
      case DType::kInt32: return static_cast<uint32_t>(lowest ? INT32_MIN : INT32_MAX);
      case DType::kInt64: return static_cast<uint64_t>(lowest ? INT64_MIN : INT64_MAX);
      default: return !lowest;
    }
  };
  switch (kind) {
    case ReduceKind::kSum: return f ? Expr::Const(t, -0.0)->bits : 0;
    case ReduceKind::kProd: return t == kBool ? 1 : f ? Expr::Const(t, 1)->bits : 1;
    case ReduceKind::kMax: return extreme(true);
    case ReduceKind::kMin: return extreme(false);
    case ReduceKind::kAny: return 0;
    case ReduceKind::kAll: return 1;
    case ReduceKind::kContract: return 0;
  }
  return 0;
}

}  // namespace sinter::codegen
