#pragma once

#include <cmath>

#include "sinter/graph/ops/math.h"

/// Trigonometric functions, their inverses, and the hyperbolic ones. Polynomials without a source are Taylor series (sine, cosine) or
/// Chebyshev fits made with 60 digits (arc tangent).
namespace sinter::ops {
namespace math_internal {

/// x = n pi/2 + high + low with |high| <= pi/4. For |x| up to kTrigLimit.
struct ReducedAngle {
  Expr n;     ///< of the integer type that goes with x
  Expr high, low;
};

/// Up to here the reduction is exact enough for every argument; beyond it the functions give NaN.
inline double TrigLimit(const Expr& x) { return num::IsF64(x) ? 0x1p20 : 0x1p28; }

inline ReducedAngle ReduceAngle(const Expr& x) {
  if (!num::IsF64(x)) {
    // In double: two parts of pi/2 leave an error far below a float's.
    Expr d = Expr::Convert(x, kFloat64);
    Expr n = num::Round(d * 0.63661977236758134308);
    Expr r = num::Fma(n, num::Const(n, -1.5707963267948965580e+00), d);
    r = num::Fma(n, num::Const(n, -6.1232339957367660359e-17), r);
    Expr high = Expr::Convert(r, kFloat32);
    return {Expr::Convert(n, kInt32), high, Expr::Convert(r - Expr::Convert(high, kFloat64), kFloat32)};
  }
  // Cody and Waite with the parts of fdlibm's e_rem_pio2.c: n times a part is exact, and so is every error that is kept.
  Expr n = num::Round(x * 0.63661977236758134308);
  Expr r1 = x - n * 1.57079632673412561417e+00;
  Expr t2 = n * 6.07710050630396597660e-11;
  Expr r2 = r1 - t2;
  Expr e2 = (r1 - r2) - t2;
  Expr t3 = n * 2.02226624871116645580e-21;
  Expr r3 = r2 - t3;
  Expr e3 = (r2 - r3) - t3;
  Expr tail = e2 + (e3 - n * 8.47842766036889956997e-32);
  Expr high = r3 + tail;
  return {num::ToInt(n), high, (r3 - high) + tail};
}

/// sin(high + low), cos(high + low) on the reduced range.
inline Expr SinCore(const Expr& h, const Expr& l) {
  Expr u = h * h;
  Expr p = num::IsF64(h) ? Poly(u, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0,
                                1.0 / 355687428096000.0)
                         : Poly(u, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880);
  return num::Fma(p * u, h, num::Fma(l, num::Fma(u, num::Const(u, -0.5), num::Const(u, 1)), h));
}
inline Expr CosCore(const Expr& h, const Expr& l) {
  Expr u = h * h;
  Expr p = num::IsF64(h) ? Poly(u, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0)
                         : Poly(u, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800);
  Expr half = u * 0.5, one = num::Const(u, 1) - half;
  return one + (((num::Const(u, 1) - one) - half) + num::Fma(p * u, u, -(h * l)));
}

/// sin(x + quarter pi/2).
inline Expr SinOf(const Expr& x, int quarter) {
  ReducedAngle a = ReduceAngle(x);
  Expr n = a.n + num::IntConst(a.n, quarter);
  Expr one = num::IntConst(n, 1), two = num::IntConst(n, 2);
  Expr r = num::Select(num::Equal(n & one, one), CosCore(a.high, a.low), SinCore(a.high, a.low));
  r = num::Select(num::Equal(n & two, two), -r, r);
  if (quarter == 0) r = num::Select(num::Equal(x, num::Const(x, 0)), x, r);  // -0 stays -0
  return num::Select(num::Abs(x) <= num::Const(x, TrigLimit(x)), r, num::Const(x, NAN));
}

/// The arc tangent of q in [0, 1].
inline Expr AtanCore(const Expr& q) {
  // Above tan(pi/8): atan q = pi/4 + atan((q - 1) / (q + 1)).
  Expr large = q > num::Const(q, 0.41421356237309503);
  Expr t = num::Select(large, (q - 1.0) / (q + 1.0), q), u = t * t;
  Expr p = num::IsF64(q) ? Poly(u, -0.3333333333333333, 0.19999999999999993, -0.14285714285711515, 0.11111111110754218, -0.09090909066979425,
                                0.07692306734927001, -0.06666641996244854, 0.05881924906427421, -0.05258038193993904, 0.04719373571989158,
                                -0.04104349551664522, 0.030633694931617585, -0.01391619613961017)
                         : Poly(u, -0.33333333279206956, 0.19999977242158135, -0.14284150302070778, 0.11071348499196115, -0.08624552940250581,
                                0.05047820620035853);
  Expr r = num::Fma(p * u, t, t);
  return num::Select(large, r + 0.78539816339744830962, r);
}

inline Expr WithSignOf(const Expr& magnitude, const Expr& x) {
  Expr bits = num::Bits(x);
  const bool f64 = num::IsF64(x);
  Expr sign = bits & num::IntConst(bits, f64 ? INT64_MIN : INT32_MIN);
  return num::FromBits((num::Bits(magnitude) & num::IntConst(bits, f64 ? INT64_MAX : INT32_MAX)) | sign);
}

inline Expr AtanOf(const Expr& x) {
  Expr a = num::Abs(x), inverse = a > num::Const(x, 1);
  Expr r = AtanCore(num::Select(inverse, num::Const(x, 1) / a, a));
  return num::Select(num::IsNan(x), x, WithSignOf(num::Select(inverse, num::Const(x, 1.57079632679489661923) - r, r), x));
}

/// log(1 + x) for x >= 0 through the op, so that both round alike.
inline Expr Log1pOf(const Expr& x) { return Log1p::Body(x); }

}  // namespace math_internal

/// Sine of an angle in radians; NaN for |x| > 2^28 (f64: 2^20), where the argument's own spacing is what the result would show.
struct Sin {
  static constexpr OpInfo kInfo{.name = "sin", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::SinOf(x, 0); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return math_internal::SinOf(x[0], 1); }
  static void Samples(SampleSink& s) { s.Range(-20, 20).Reference([](double x) { return std::sin(x); }).MaxUlp(2); }
};

/// Cosine of an angle in radians; range as of sin.
struct Cos {
  static constexpr OpInfo kInfo{.name = "cos", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::SinOf(x, 1); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return -math_internal::SinOf(x[0], 0); }
  static void Samples(SampleSink& s) { s.Range(-20, 20).Reference([](double x) { return std::cos(x); }).MaxUlp(2); }
};

/// sin x / cos x; range as of sin.
struct Tan {
  static constexpr OpInfo kInfo{.name = "tan", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::SinOf(x, 0) / math_internal::SinOf(x, 1); }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return num::Fma(y, y, num::Const(y, 1)); }
  static void Samples(SampleSink& s) { s.Range(-1.4, 1.4).Reference([](double x) { return std::tan(x); }).MaxUlp(4); }
};

struct Atan {
  static constexpr OpInfo kInfo{.name = "atan", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::AtanOf(x); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr& y) { return num::Const(y, 1) / num::Fma(x[0], x[0], num::Const(y, 1)); }
  static void Samples(SampleSink& s) { s.Range(-9, 9).Reference([](double x) { return std::atan(x); }).MaxUlp(3); }
};

/// NaN outside of [-1, 1].
struct Asin {
  static constexpr OpInfo kInfo{.name = "asin", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::AtanOf(x / num::Sqrt((1.0 - x) * (1.0 + x))); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / num::Sqrt((1.0 - x[0]) * (1.0 + x[0])); }
  static void Samples(SampleSink& s) { s.Range(-0.98, 0.98).Reference([](double x) { return std::asin(x); }).MaxUlp(4); }
};

/// NaN outside of [-1, 1].
struct Acos {
  static constexpr OpInfo kInfo{.name = "acos", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return math_internal::AtanOf(num::Sqrt(1.0 - x) / num::Sqrt(1.0 + x)) * 2.0; }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return -(1.0 / num::Sqrt((1.0 - x[0]) * (1.0 + x[0]))); }
  static void Samples(SampleSink& s) { s.Range(-0.98, 0.98).Reference([](double x) { return std::acos(x); }).MaxUlp(4); }
};

/// The angle of the point (x, y), operands in the order y, x, in [-pi, pi]; signed zeros and infinities as in C.
struct Atan2 {
  static constexpr OpInfo kInfo{.name = "atan2", .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& y, const Expr& x) {
    using namespace math_internal;
    Expr a = num::Abs(y), b = num::Abs(x), steep = a > b, low = num::Select(steep, b, a), high = num::Select(steep, a, b);
    Expr q = num::Select(num::Equal(low, high), num::Select(num::Equal(high, num::Const(x, 0)), num::Const(x, 0), num::Const(x, 1)), low / high);
    Expr r = AtanCore(q);
    r = num::Select(steep, num::Const(x, 1.57079632679489661923) - r, r);
    Expr bits = num::Bits(x);
    r = num::Select(bits < num::IntConst(bits, 0), num::Const(x, 3.14159265358979323846) - r, r);
    return num::Select(num::IsNan(y), y, num::Select(num::IsNan(x), x, WithSignOf(r, y)));
  }
  static Expr Derivative(int i, std::span<const Expr> in, const Expr&) {
    Expr square = num::Fma(in[0], in[0], in[1] * in[1]);
    return i == 0 ? in[1] / square : -(in[0] / square);
  }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double y, double x) { return std::atan2(y, x); }).MaxUlp(4); }
};

struct Sinh {
  static constexpr OpInfo kInfo{.name = "sinh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr a = num::Abs(x), t = Expm1::Body(num::Select(a < 20.0, a, num::Const(x, 20)));
    Expr half = Exp::Body(a * 0.5);  // in two factors, so that results near the greatest number are reached
    Expr r = num::Select(a < 20.0, 0.5 * (t + t / (t + 1.0)), (half * 0.5) * half);
    return num::Select(num::IsNan(x), x, math_internal::WithSignOf(r, x));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&);
  static void Samples(SampleSink& s) { s.Range(-8, 8).Reference([](double x) { return std::sinh(x); }).MaxUlp(4); }
};

struct Cosh {
  static constexpr OpInfo kInfo{.name = "cosh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr a = num::Abs(x), e = Exp::Body(num::Select(a < 20.0, a, num::Const(x, 20))), half = Exp::Body(a * 0.5);
    return num::Select(num::IsNan(x), x, num::Select(a < 20.0, 0.5 * (e + 1.0 / e), (half * 0.5) * half));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return Sinh::Body(x[0]); }
  static void Samples(SampleSink& s) { s.Range(-8, 8).Reference([](double x) { return std::cosh(x); }).MaxUlp(4); }
};
inline Expr Sinh::Derivative(int, std::span<const Expr> x, const Expr&) { return Cosh::Body(x[0]); }

struct Asinh {
  static constexpr OpInfo kInfo{.name = "asinh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    // Beyond 2^12 (f64: 2^28) the root is |x| itself.
    Expr a = num::Abs(x), large = a > num::Const(x, num::IsF64(x) ? 0x1p28 : 0x1p12), b = num::Select(large, num::Const(x, 1), a), u = b * b;
    Expr r = num::Select(large, Log::Body(a) + 0.69314718055994530942, math_internal::Log1pOf(b + u / (1.0 + num::Sqrt(u + 1.0))));
    return num::Select(num::IsNan(x), x, math_internal::WithSignOf(r, x));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / num::Sqrt(num::Fma(x[0], x[0], num::Const(x[0], 1))); }
  static void Samples(SampleSink& s) { s.Range(-9, 9).Reference([](double x) { return std::asinh(x); }).MaxUlp(4); }
};

/// NaN below 1.
struct Acosh {
  static constexpr OpInfo kInfo{.name = "acosh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr large = x > num::Const(x, num::IsF64(x) ? 0x1p28 : 0x1p12), t = num::Select(large, num::Const(x, 1), x - 1.0);
    Expr r = num::Select(large, Log::Body(x) + 0.69314718055994530942, math_internal::Log1pOf(t + num::Sqrt(num::Fma(t, t, t * 2.0))));
    return num::Select(x >= 1.0, r, num::Const(x, NAN));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / num::Sqrt((x[0] - 1.0) * (x[0] + 1.0)); }
  static void Samples(SampleSink& s) { s.Range(1.1, 9).Reference([](double x) { return std::acosh(x); }).MaxUlp(4); }
};

/// Infinite at -1 and 1, NaN beyond.
struct Atanh {
  static constexpr OpInfo kInfo{.name = "atanh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr a = num::Abs(x);
    return num::Select(num::IsNan(x), x, math_internal::WithSignOf(math_internal::Log1pOf((a + a) / (1.0 - a)) * 0.5, x));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / ((1.0 - x[0]) * (1.0 + x[0])); }
  static void Samples(SampleSink& s) { s.Range(-0.95, 0.95).Reference([](double x) { return std::atanh(x); }).MaxUlp(4); }
};

}  // namespace sinter::ops

SINTER_OP(Sin, sin)
SINTER_OP(Cos, cos)
SINTER_OP(Tan, tan)
SINTER_OP(Atan, atan)
SINTER_OP(Asin, asin)
SINTER_OP(Acos, acos)
SINTER_OP(Atan2, atan2)
SINTER_OP(Sinh, sinh)
SINTER_OP(Cosh, cosh)
SINTER_OP(Asinh, asinh)
SINTER_OP(Acosh, acosh)
SINTER_OP(Atanh, atanh)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> TrigonometricOps() {
  return OpFamily<Sin, Cos, Tan, Atan, Asin, Acos, Atan2, Sinh, Cosh, Asinh, Acosh, Atanh>();
}
}  // namespace sinter::ops
