#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "sinter/graph/expr.h"

/// The primitives that a pointwise body is written in, one spelling for every number type: `Expr` (what the emitters
/// and the interpreter run) and plain float and double (what tests compare with). Each has the semantics stated in expr.h.
namespace sinter {

template <class X>
concept Number = std::same_as<X, float> || std::same_as<X, double> || std::same_as<X, Expr>;

namespace num {

template <class X>
struct Related {  // the types of conditions and of bit patterns that go with X
  using Bool = bool;
  using Int = std::conditional_t<std::same_as<X, float>, int32_t, int64_t>;
};
template <>
struct Related<Expr> {
  using Bool = Expr;
  using Int = Expr;
};
template <class X>
using BoolOf = typename Related<X>::Bool;
template <class X>
using IntOf = typename Related<X>::Int;

// Plain numbers.
inline bool IsF64(float) { return false; }
inline bool IsF64(double) { return true; }
template <std::floating_point X>
X Const(X, double v) { return static_cast<X>(v); }
template <std::integral I>
I IntConst(I, int64_t v) { return static_cast<I>(v); }
inline float Fma(float a, float b, float c) { return std::fma(a, b, c); }
inline double Fma(double a, double b, double c) { return std::fma(a, b, c); }
template <std::floating_point X>
X Floor(X x) { return std::floor(x); }
template <std::floating_point X>
X Ceil(X x) { return std::ceil(x); }
template <std::floating_point X>
X Trunc(X x) { return std::trunc(x); }
template <std::floating_point X>
X Round(X x) { return std::nearbyint(x); }
template <std::floating_point X>
X Sqrt(X x) { return std::sqrt(x); }
template <class X>
  requires std::is_arithmetic_v<X>
X Abs(X x) { return std::abs(x); }
template <class X>
  requires std::is_arithmetic_v<X>
X Max(X a, X b) {
  if constexpr (std::floating_point<X>) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}
template <class X>
  requires std::is_arithmetic_v<X>
X Min(X a, X b) {
  if constexpr (std::floating_point<X>) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <class X>
  requires std::is_arithmetic_v<X>
X Select(bool c, X a, X b) { return c ? a : b; }
inline bool Not(bool x) { return !x; }
template <std::floating_point X>
bool IsNan(X x) { return std::isnan(x); }
inline bool Equal(auto a, auto b)
  requires std::is_arithmetic_v<decltype(a)>
{ return a == b; }
inline int32_t Bits(float x) { return std::bit_cast<int32_t>(x); }
inline int64_t Bits(double x) { return std::bit_cast<int64_t>(x); }
inline float FromBits(int32_t b) { return std::bit_cast<float>(b); }
inline double FromBits(int64_t b) { return std::bit_cast<double>(b); }
template <std::integral I>
I ShiftLeft(I a, int n) { return static_cast<I>(static_cast<std::make_unsigned_t<I>>(a) << n); }
template <std::integral I>
I ShiftRight(I a, int n) { return a >> n; }
template <std::integral I>
I ShiftRightLogical(I a, int n) { return static_cast<I>(static_cast<std::make_unsigned_t<I>>(a) >> n); }
/// An integer of the width of X, rounded towards zero, saturating; NaN gives 0.
inline int32_t ToInt(float x) {
  return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : static_cast<int32_t>(x);
}
inline int64_t ToInt(double x) {
  return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : static_cast<int64_t>(x);
}
inline float FromInt(int32_t i) { return static_cast<float>(i); }
inline double FromInt(int64_t i) { return static_cast<double>(i); }

// Expressions.
inline bool IsF64(const Expr& x) { return x.dtype() == kFloat64; }
inline bool IsFloat(const Expr& x) { return IsFloating(x.dtype()); }
template <std::floating_point X>
bool IsFloat(X) { return true; }
inline Expr Const(const Expr& like, double v) { return Expr::Const(like.dtype(), v); }
inline Expr IntConst(const Expr& like, int64_t v) { return Expr::ConstInt(like.dtype(), v); }
inline Expr Fma(const Expr& a, const Expr& b, const Expr& c) { return Expr::Fma(a, b, c); }
inline Expr Floor(const Expr& x) { return Expr::Unary(ExprKind::kFloor, x); }
inline Expr Ceil(const Expr& x) { return Expr::Unary(ExprKind::kCeil, x); }
inline Expr Trunc(const Expr& x) { return Expr::Unary(ExprKind::kTrunc, x); }
inline Expr Round(const Expr& x) { return Expr::Unary(ExprKind::kRound, x); }
inline Expr Sqrt(const Expr& x) { return Expr::Unary(ExprKind::kSqrt, x); }
inline Expr Abs(const Expr& x) { return Expr::Unary(ExprKind::kAbs, x); }
inline Expr Max(const Expr& a, const Expr& b) { return Expr::Binary(ExprKind::kMax, a, b); }
inline Expr Min(const Expr& a, const Expr& b) { return Expr::Binary(ExprKind::kMin, a, b); }
inline Expr Select(const Expr& c, const Expr& a, const Expr& b) { return Expr::Select(c, a, b); }
inline Expr Select(const Expr& c, const Expr& a, double b) { return Expr::Select(c, a, Const(a, b)); }
inline Expr Select(const Expr& c, double a, const Expr& b) { return Expr::Select(c, Const(b, a), b); }
inline Expr Not(const Expr& x) { return Expr::Unary(ExprKind::kNot, x); }
inline Expr IsNan(const Expr& x) { return Expr::Unary(ExprKind::kIsNan, x); }
inline Expr Equal(const Expr& a, const Expr& b) { return Expr::Binary(ExprKind::kEq, a, b); }
inline Expr Bits(const Expr& x) { return Expr::Bitcast(x, IsF64(x) ? kInt64 : kInt32); }
inline Expr FromBits(const Expr& b) { return Expr::Bitcast(b, b.dtype() == kInt64 ? kFloat64 : kFloat32); }
inline Expr ShiftLeft(const Expr& a, int n) { return Expr::Binary(ExprKind::kShl, a, IntConst(a, n)); }
inline Expr ShiftRight(const Expr& a, int n) { return Expr::Binary(ExprKind::kShr, a, IntConst(a, n)); }
inline Expr ShiftRightLogical(const Expr& a, int n) { return Expr::Binary(ExprKind::kShrLogical, a, IntConst(a, n)); }
inline Expr ToInt(const Expr& x) { return Expr::Convert(x, IsF64(x) ? kInt64 : kInt32); }
inline Expr FromInt(const Expr& i) { return Expr::Convert(i, i.dtype() == kInt64 ? kFloat64 : kFloat32); }

}  // namespace num
}  // namespace sinter
