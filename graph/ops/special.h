#pragma once

#include <cmath>

#include "sinter/graph/ops/math.h"

/// The error function and its complement: Chebyshev fits made with 60 digits, erf(x) / x over x^2 below 1 and e^(x^2) erfc(x) (x + 1) over
/// (x - 4) / (x + 4) above.
namespace sinter::ops {
namespace math_internal {

/// erf(x) for |x| <= 1.
inline Expr ErfNear(const Expr& x) {
  Expr u = x * x;
  Expr p = num::IsF64(x) ? Poly(u, 1.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.02686617064512984, 0.0052239776254232985,
                                -0.000854832702193483, 0.00012055332902888736, -1.4925647567519332e-05, 1.6462045441468418e-06, -1.6364642158167616e-07,
                                1.4792401209404813e-08, -1.216456005728345e-09, 8.709045129053106e-11, -4.230945824295338e-12)
                         : Poly(u, 1.1283791670615435, -0.3761263846802871, 0.11283782495236845, -0.026865430727670243, 0.005221031807858023,
                                -0.0008484080405535107, 0.00011265959025606609, -9.667044571486996e-06);
  return p * x;
}

/// erfc(a) for a >= 1.
inline Expr ErfcFar(const Expr& a0) {
  const bool f64 = num::IsF64(a0);
  Expr a = num::Select(a0 < num::Const(a0, f64 ? 28 : 10.5), a0, num::Const(a0, f64 ? 28 : 10.5));  // 0 from there on
  Expr s = (a - 4.0) / (a + 4.0);
  Expr p = f64 ? Poly(s, 0.6849972881253069, -0.19934458280036707, 0.11704966551044246, -0.048080381221308796, 0.003962055681289773, 0.015312509679329586,
                      -0.017515654646470483, 0.012161784752646615, -0.006068735221215086, 0.002116421586296919, -0.0003897674681379637, -6.013678166675775e-05,
                      6.403261826503937e-05, -1.3151111223117162e-05, -4.138007934609304e-06, 2.6502153366347557e-06, 3.0766943987574484e-09,
                      -3.640161425133322e-07, 5.280278434656692e-08, 4.643200034826983e-08, -1.2755956730985289e-08, -5.035975789530387e-09,
                      2.1344044464600667e-09)
               : Poly(s, 0.6849972880264007, -0.19934456680061227, 0.11704969305127451, -0.048081354667247125, 0.0039606731115806315, 0.015328513901931337,
                      -0.0174916947799444, 0.012065018573618178, -0.006232531439575661, 0.0022998252430922314);
  // e^(-a^2) with the square in two parts.
  Expr square = a * a, rest = num::Fma(a, a, -square);
  return Exp::Body(-square) * (1.0 - rest) * (p / (a + 1.0));
}

}  // namespace math_internal

/// The error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
struct Erf {
  static constexpr OpInfo kInfo{.name = "erf", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr a = num::Abs(x), near = a <= num::Const(x, 1), one = num::Const(x, 1);
    Expr far = 1.0 - math_internal::ErfcFar(num::Select(near, one, a));
    return num::Select(num::IsNan(x), x, num::Select(near, math_internal::ErfNear(num::Select(near, x, one)), num::Select(x < 0.0, -far, far)));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return Exp::Body(-(x[0] * x[0])) * 1.1283791670955126; }
  static void Samples(SampleSink& s) { s.Range(-5, 5).Reference([](double x) { return std::erf(x); }).MaxUlp(3); }
};

/// 1 - erf(x), accurate where that is small.
struct Erfc {
  static constexpr OpInfo kInfo{.name = "erfc", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) {
    Expr a = num::Abs(x), near = a <= num::Const(x, 1), one = num::Const(x, 1);
    Expr far = math_internal::ErfcFar(num::Select(near, one, a));
    return num::Select(num::IsNan(x), x, num::Select(near, 1.0 - math_internal::ErfNear(num::Select(near, x, one)), num::Select(x < 0.0, 2.0 - far, far)));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return Exp::Body(-(x[0] * x[0])) * -1.1283791670955126; }
  static void Samples(SampleSink& s) { s.Range(-4, 6).Reference([](double x) { return std::erfc(x); }).MaxUlp(8); }
};

/// x Phi(x), Phi the normal distribution function: 0.5 x erfc(-x / sqrt 2) (Hendrycks and Gimpel 2016, without the approximation).
struct Gelu {
  static constexpr OpInfo kInfo{.name = "gelu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return x * 0.5 * Erfc::Body(x * -0.70710678118654752440); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) {
    Expr density = Exp::Body(x[0] * x[0] * -0.5) * 0.39894228040143267794;
    return num::Fma(x[0], density, 0.5 * Erfc::Body(x[0] * -0.70710678118654752440));
  }
  static void Samples(SampleSink& s) { s.Range(-5, 5).Reference([](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }).MaxUlp(24); }
};

/// 2^x.
struct Exp2 {
  static constexpr OpInfo kInfo{.name = "exp2", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x0) {
    const bool f64 = num::IsF64(x0);
    const double high = f64 ? 1025 : 129, low = f64 ? -1076 : -151;
    Expr x = num::Select(x0 > num::Const(x0, high), num::Const(x0, high), x0);
    x = num::Select(x < num::Const(x0, low), num::Const(x0, low), x);
    Expr n = num::Round(x), r = (x - n) * 0.69314718055994530942, whole = num::ToInt(n), half = num::ShiftRight(whole, 1);
    Expr p = num::Fma(math_internal::ExpTail(r) * r, r, r) + 1.0;
    return p * math_internal::PowerOfTwo(x, half) * math_internal::PowerOfTwo(x, whole - half);
  }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return y * 0.69314718055994530942; }
  static void Samples(SampleSink& s) { s.Range(-15, 15).Reference([](double x) { return std::exp2(x); }).MaxUlp(2); }
};

/// Base-2 logarithm.
struct Log2 {
  static constexpr OpInfo kInfo{.name = "log2", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return Log::Body(x) * 1.4426950408889634074; }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 1.4426950408889634074 / x[0]; }
  static void Samples(SampleSink& s) { s.Range(0.1, 20).Reference([](double x) { return std::log2(x); }).MaxUlp(3); }
};

/// Base-10 logarithm.
struct Log10 {
  static constexpr OpInfo kInfo{.name = "log10", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return Log::Body(x) * 0.43429448190325182765; }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return 0.43429448190325182765 / x[0]; }
  static void Samples(SampleSink& s) { s.Range(0.1, 20).Reference([](double x) { return std::log10(x); }).MaxUlp(3); }
};

/// log(e^a + e^b) without overflow.
struct LogAddExp {
  static constexpr OpInfo kInfo{.name = "logaddexp", .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& a, const Expr& b) {
    Expr high = num::Max(a, b), low = num::Min(a, b);
    // Equal infinities: their difference is no number.
    Expr r = high + Log1p::Body(Exp::Body(low - high));
    return num::Select(num::Equal(a, b), high + 0.69314718055994530942, r);
  }
  static Expr Derivative(int i, std::span<const Expr> x, const Expr& y) { return Exp::Body(x[static_cast<size_t>(i)] - y); }
  static void Samples(SampleSink& s) {
    s.Range(-5, 5).Reference([](double a, double b) { return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b))); }).MaxUlp(24);
  }
};

}  // namespace sinter::ops

SINTER_OP(Erf, erf)
SINTER_OP(Erfc, erfc)
SINTER_OP(Gelu, gelu)
SINTER_OP(Exp2, exp2)
SINTER_OP(Log2, log2)
SINTER_OP(Log10, log10)
SINTER_OP(LogAddExp, logaddexp)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> SpecialOps() { return OpFamily<Erf, Erfc, Gelu, Exp2, Log2, Log10, LogAddExp>(); }
}  // namespace sinter::ops
