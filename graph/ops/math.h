#pragma once

#include <cmath>

#include "sinter/graph/op.h"

/// Elementary functions as polynomials: the same bits in eager, compiled and reloaded programs, on every CPU and on CUDA.
/// Coefficients without a source are Taylor coefficients; those of log are fdlibm's (e_log.c, e_logf.c).
namespace sinter::ops {
namespace math_internal {

/// c0 + x * (c1 + x * (c2 + ...)) by fma.
template <Number X>
X Poly(const X& x, double c) { return num::Const(x, c); }
template <Number X, class... C>
X Poly(const X& x, double c, C... rest) { return num::Fma(Poly(x, rest...), x, num::Const(x, c)); }

/// 2^n for an integer n in the low bits of the mantissa of `shifted` (a number plus the magic constant), n + half >> 1 by parts.
template <Number X>
struct ReducedExp {
  X r;                  ///< in [-ln2/2, ln2/2]
  num::IntOf<X> n;      ///< x = n ln2 + r
};

template <Number X>
ReducedExp<X> ReduceExp(const X& x) {
  // Adding 1.5 * 2^(mantissa bits) rounds to an integer and leaves it in the low bits; unlike a conversion this is
  // harmless for NaN.
  if (num::IsF64(x)) {
    X t = num::Fma(x, num::Const(x, 1.4426950408889634074), num::Const(x, 0x1.8p52));
    X n = t - num::Const(x, 0x1.8p52);
    X r = num::Fma(n, num::Const(x, -6.93147180369123816490e-01), x);
    r = num::Fma(n, num::Const(x, -1.90821492927058770002e-10), r);
    return {r, num::Bits(t) - num::IntConst(num::Bits(t), 0x4338000000000000)};
  }
  X t = num::Fma(x, num::Const(x, 1.4426950408889634074), num::Const(x, 0x1.8p23));
  X n = t - num::Const(x, 0x1.8p23);
  X r = num::Fma(n, num::Const(x, -0.693145751953125), x);
  r = num::Fma(n, num::Const(x, -1.42860682030941723212e-06), r);
  return {r, num::Bits(t) - num::IntConst(num::Bits(t), 0x4b400000)};
}

/// 2^n for n in the normal range.
template <Number X>
X PowerOfTwo(const X& like, const num::IntOf<X>& n) {
  const bool f64 = num::IsF64(like);
  return num::FromBits(num::ShiftLeft(n + num::IntConst(n, f64 ? 1023 : 127), f64 ? 52 : 23));
}

/// (e^r - 1 - r) / r^2 on the reduced range.
template <Number X>
X ExpTail(const X& r) {
  if (num::IsF64(r))
    return Poly(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  return Poly(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040);
}

/// e^x - 1 for |x| below 80: 2^n (e^r - 1) + (2^n - 1).
template <Number X>
X Expm1Core(const X& x) {
  ReducedExp<X> e = ReduceExp(x);
  X p = num::Fma(ExpTail(e.r) * e.r, e.r, e.r);
  X s = PowerOfTwo(x, e.n);
  return num::Fma(s, p, s - num::Const(x, 1));
}

}  // namespace math_internal

/// e^x.
struct Exp {
  static constexpr OpInfo kInfo{.name = "exp", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x0) {
    using namespace math_internal;
    const bool f64 = num::IsF64(x0);
    const double high = f64 ? 710 : 89, low = f64 ? -746 : -104;
    X x = num::Select(x0 > num::Const(x0, high), num::Const(x0, high), x0);
    x = num::Select(x < num::Const(x0, low), num::Const(x0, low), x);
    ReducedExp<X> e = ReduceExp(x);
    X p = num::Fma(ExpTail(e.r) * e.r, e.r, e.r) + num::Const(x, 1);
    // In two steps, so that results below the normal range and at its upper end come out right.
    auto half = num::ShiftRight(e.n, 1);
    return p * PowerOfTwo(x, half) * PowerOfTwo(x, e.n - half);
  }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return y; }
  static void Samples(SampleSink& s) { s.Range(-12, 12).Reference(std::exp).MaxUlp(1); }
};

/// e^x - 1, accurate near 0.
struct Expm1 {
  static constexpr OpInfo kInfo{.name = "expm1", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) {
    X inside = num::Select(num::Abs(x) < num::Const(x, 40), x, num::Const(x, 0));
    X near = math_internal::Expm1Core(inside);
    X r = num::Select(num::Abs(x) < num::Const(x, 40), near, Exp::Body(x) - num::Const(x, 1));
    return num::Select(num::Equal(x, num::Const(x, 0)), x, r);
  }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return y + 1.0; }
  static void Samples(SampleSink& s) { s.Range(-10, 10).Reference(std::expm1).MaxUlp(2); }
};

/// Natural logarithm; NaN below 0, -inf at 0.
struct Log {
  static constexpr OpInfo kInfo{.name = "log", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x0) {
    using namespace math_internal;
    const bool f64 = num::IsF64(x0);
    const int mantissa = f64 ? 52 : 23;
    const double tiny = f64 ? 0x1p-1022 : 0x1p-126;
    auto subnormal = x0 < num::Const(x0, tiny);
    X x = num::Select(subnormal, x0 * num::Const(x0, f64 ? 0x1p54 : 0x1p25), x0);
    // x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
    const int64_t root_half = f64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
    auto i = num::Bits(x) - num::IntConst(num::Bits(x), root_half);
    X k = num::FromInt(num::ShiftRight(i, mantissa)) -
          num::Select(subnormal, num::Const(x, f64 ? 54 : 25), num::Const(x, 0));
    auto m = (i & num::IntConst(i, (int64_t{1} << mantissa) - 1)) + num::IntConst(i, root_half);
    X f = num::FromBits(m) - num::Const(x, 1);
    X s = f / (f + num::Const(x, 2));
    X z = s * s;
    X r = f64 ? z * Poly(z, 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
                         1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01)
              : z * Poly(z, 0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841);
    X half_square = f * f * num::Const(x, 0.5);
    const double ln2_high = f64 ? 6.93147180369123816490e-01 : 6.9313812256e-01;
    const double ln2_low = f64 ? 1.90821492927058770002e-10 : 9.0580006145e-06;
    X low = num::Fma(s, half_square + r, k * num::Const(x, ln2_low));
    X y = num::Fma(k, num::Const(x, ln2_high), f - (half_square - low));
    y = num::Select(num::Equal(x0, num::Const(x, INFINITY)), x0, y);
    y = num::Select(num::Equal(x0, num::Const(x, 0)), num::Const(x, -INFINITY), y);
    y = num::Select(x0 < num::Const(x, 0), num::Const(x, NAN), y);
    return num::Select(num::IsNan(x0), x0, y);
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / x[0]; }
  static void Samples(SampleSink& s) { s.Range(0.05, 20).Reference(std::log).MaxUlp(1.5); }
};

/// log(1 + x), accurate near 0.
struct Log1p {
  static constexpr OpInfo kInfo{.name = "log1p", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) {
    X u = x + num::Const(x, 1);
    // log u, corrected by what rounding 1 + x lost.
    X y = Log::Body(u) + (x - (u - num::Const(x, 1))) / u;
    y = num::Select(num::Equal(u, num::Const(x, INFINITY)), u, y);
    y = num::Select(num::Equal(u, num::Const(x, 0)), num::Const(x, -INFINITY), y);
    return num::Select(num::Equal(x, num::Const(x, 0)), x, y);
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.0 / (x[0] + 1.0); }
  static void Samples(SampleSink& s) { s.Range(-0.9, 20).Reference(std::log1p).MaxUlp(3); }
};

struct Tanh {
  static constexpr OpInfo kInfo{.name = "tanh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) {
    const double saturated = num::IsF64(x) ? 20 : 10;
    X a = num::Abs(x);
    X inside = num::Select(a < num::Const(x, saturated), a, num::Const(x, saturated));
    X e = math_internal::Expm1Core(inside + inside);
    X t = e / (e + num::Const(x, 2));
    t = num::Select(x < num::Const(x, 0), -t, t);
    return num::Select(num::IsNan(x) | num::Equal(x, num::Const(x, 0)), x, t);
  }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return 1.0 - y * y; }
  static void Samples(SampleSink& s) { s.Range(-6, 6).Reference(std::tanh).MaxUlp(2.5); }
};

/// 1 / (1 + e^-x).
struct Sigmoid {
  static constexpr OpInfo kInfo{.name = "sigmoid", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return num::Const(x, 1) / (num::Const(x, 1) + Exp::Body(-x)); }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return y * (1.0 - y); }
  static void Samples(SampleSink& s) {
    s.Range(-8, 8).Reference([](double x) { return 1 / (1 + std::exp(-x)); }).MaxUlp(3);
  }
};

struct Sqrt {
  static constexpr OpInfo kInfo{.name = "sqrt", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return num::Sqrt(x); }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return 0.5 / y; }
  static void Samples(SampleSink& s) { s.Range(0.01, 9).Reference(std::sqrt).MaxUlp(0.5); }
};

/// 1 / sqrt(x), rounded twice.
struct Rsqrt {
  static constexpr OpInfo kInfo{.name = "rsqrt", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return num::Const(x, 1) / num::Sqrt(x); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr& y) { return -0.5 * (y / x[0]); }
  static void Samples(SampleSink& s) {
    s.Range(0.05, 9).Reference([](double x) { return 1 / std::sqrt(x); }).MaxUlp(1.5);
  }
};

/// x^2.
struct Square {
  static constexpr OpInfo kInfo{.name = "square", .kind = OpKind::kPointwise};
  template <Number X>
  static X Body(const X& x) { return x * x; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return x * x; }).MaxUlp(0.5).Integers(); }
};

/// x^y for y of any value: e^(y log|x|) with the sign and special cases of C's pow. Integer operands: repeated squaring is
/// not used; they compute as floats.
struct Pow {
  static constexpr OpInfo kInfo{.name = "pow", .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x, const X& y) {
    X zero = num::Const(x, 0), one = num::Const(x, 1);
    X r = Exp::Body(y * Log::Body(num::Abs(x)));
    auto integral = num::Equal(num::Floor(y), y);
    X half = y * num::Const(x, 0.5);
    auto odd = integral & num::Not(num::Equal(num::Floor(half), half));
    r = num::Select((x < zero) & odd, -r, r);
    r = num::Select((x < zero) & num::Not(integral), num::Const(x, NAN), r);
    return num::Select(num::Equal(y, zero) | num::Equal(x, one), one, r);
  }
  static Expr Derivative(int i, std::span<const Expr> x, const Expr& y) {
    if (i == 0) return num::Select(num::Equal(x[1], num::Const(x[1], 0)), num::Const(y, 0), x[1] * CallPow(x[0], x[1] - 1.0));
    // 0^y is flat in y for y > 0.
    return num::Select(num::Equal(x[0], num::Const(x[0], 0)), num::Const(y, 0), y * CallLog(x[0]));
  }
  static void Samples(SampleSink& s) {
    s.Range(0.2, 3).Reference([](double x, double y) { return std::pow(x, y); }).MaxUlp(16);
  }

 private:
  static Expr CallPow(const Expr& x, const Expr& y);
  static Expr CallLog(const Expr& x);
};

}  // namespace sinter::ops

SINTER_OP(Exp, exp)
SINTER_OP(Expm1, expm1)
SINTER_OP(Log, log)
SINTER_OP(Log1p, log1p)
SINTER_OP(Tanh, tanh)
SINTER_OP(Sigmoid, sigmoid)
SINTER_OP(Sqrt, sqrt)
SINTER_OP(Rsqrt, rsqrt)
SINTER_OP(Square, square)
SINTER_OP(Pow, pow)

namespace sinter::ops {
inline Expr Pow::CallPow(const Expr& x, const Expr& y) { return pow(x, y); }
inline Expr Pow::CallLog(const Expr& x) { return log(x); }
}  // namespace sinter::ops

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> MathOps() {
  return OpFamily<Exp, Expm1, Log, Log1p, Tanh, Sigmoid, Sqrt, Rsqrt, Square, Pow>();
}
}  // namespace sinter::ops
