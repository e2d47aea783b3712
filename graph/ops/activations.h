#pragma once

#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/math.h"

namespace sinter::ops {

/// max(x, 0); the gradient at 0 is 0. NaN stays NaN.
struct Relu {
  static constexpr OpInfo kInfo{.name = "relu", .kind = OpKind::kPointwise};
  template <class X>
  static X Body(const X& x) { return num::Select(x < num::Const(x, 0), num::Const(x, 0), x); }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) {
    return num::Select(y > 0.0, num::Const(y, 1), num::Const(y, 0));
  }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return x > 0 ? x : 0; }).MaxUlp(0).Kinks({0}); }
};

/// x where x > 0, else slope * x.
struct LeakyRelu {
  static constexpr OpInfo kInfo{.name = "leaky_relu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  struct Attrs {
    double slope = 0.01;
    SINTER_FIELDS(slope)
  };
  template <Number X>
  static X Body(const X& x, const Attrs& a) { return num::Select(x > num::Const(x, 0), x, x * num::Const(x, a.slope)); }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).With(Attrs{}).With(Attrs{0.2}).MaxUlp(0.5 + 1e-3).Kinks({0}).Reference<Attrs>([](double x, const Attrs& a) {
      return x > 0 ? x : x * a.slope;
    }).MaxUlp(1.5);
  }
};

/// log(1 + e^x).
struct Softplus {
  static constexpr OpInfo kInfo{.name = "softplus", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return num::Select(x > num::Const(x, 0), x, num::Const(x, 0)) + log1p(exp(-num::Abs(x))); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return sigmoid(x[0]); }
  static void Samples(SampleSink& s) {
    s.Range(-8, 8).Reference([](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }).MaxUlp(4);
  }
};

/// x * sigmoid(x), also called swish.
struct Silu {
  static constexpr OpInfo kInfo{.name = "silu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return x * sigmoid(x); }
  static void Samples(SampleSink& s) { s.Range(-8, 8).Reference([](double x) { return x / (1 + std::exp(-x)); }).MaxUlp(4); }
};

/// GELU with the tanh approximation, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
struct GeluTanh {
  static constexpr OpInfo kInfo{.name = "gelu_tanh", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) {
    // (1 + tanh u) / 2 is the sigmoid of 2u, which does not cancel for negative u.
    return x * sigmoid(num::Const(x, 1.5957691216057308) * (x + num::Const(x, 0.044715) * x * x * x));
  }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).Reference([](double x) { return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))); }).MaxUlp(16);
  }
};

/// min(max(x, 0), 6).
struct Relu6 {
  static constexpr OpInfo kInfo{.name = "relu6", .kind = OpKind::kPointwise};
  static Expr Body(const Expr& x) {
    Expr zero = num::Const(x, 0), six = num::Const(x, 6);
    return num::Select(x < zero, zero, num::Select(x > six, six, x));
  }
  static void Samples(SampleSink& s) { s.Range(-3, 9).Reference([](double x) { return std::fmin(std::fmax(x, 0), 6); }).MaxUlp(0).Kinks({0, 6}); }
};

/// x where x >= 0, else slope x with a learned slope: operand 1, of any shape that broadcasts.
struct Prelu {
  static constexpr OpInfo kInfo{.name = "prelu", .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x, const Expr& slope) { return num::Select(x >= 0.0, x, slope * x); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x, double a) { return x >= 0 ? x : a * x; }).MaxUlp(0.5).Kinks({0}); }
};

/// x where x > 0, else alpha (e^x - 1) (Clevert et al. 2015).
struct Elu {
  static constexpr OpInfo kInfo{.name = "elu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  struct Attrs {
    double alpha = 1;
    SINTER_FIELDS(alpha)
  };
  static Expr Body(const Expr& x, const Attrs& a) { return num::Select(x > 0.0, x, num::Const(x, a.alpha) * expm1(x)); }
  static void Samples(SampleSink& s) {
    s.Range(-4, 3).With(Attrs{}).With(Attrs{0.5}).MaxUlp(4).Kinks({0}).Reference<Attrs>([](double x, const Attrs& a) { return x > 0 ? x : a.alpha * std::expm1(x); });
  }
};

/// max(x, 0) + min(0, alpha (e^(x / alpha) - 1)) (Barron 2017).
struct Celu {
  static constexpr OpInfo kInfo{.name = "celu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  struct Attrs {
    double alpha = 1;
    SINTER_FIELDS(alpha)
  };
  static Expr Body(const Expr& x, const Attrs& a) { return num::Select(x > 0.0, x, num::Const(x, a.alpha) * expm1(x / num::Const(x, a.alpha))); }
  static void Samples(SampleSink& s) {
    s.Range(-4, 3).With(Attrs{}).With(Attrs{0.5}).MaxUlp(8).Kinks({0}).Reference<Attrs>([](double x, const Attrs& a) { return x > 0 ? x : a.alpha * std::expm1(x / a.alpha); });
  }
};

/// The self-normalising elu (Klambauer et al. 2017).
struct Selu {
  static constexpr OpInfo kInfo{.name = "selu", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return num::Select(x > 0.0, x * 1.0507009873554804934, expm1(x) * 1.7580993408473768599); }
  static void Samples(SampleSink& s) {
    s.Range(-4, 3).Reference([](double x) { return x > 0 ? 1.0507009873554804934 * x : 1.7580993408473768599 * std::expm1(x); }).MaxUlp(4).Kinks({0});
  }
};

/// x / (1 + |x|).
struct Softsign {
  static constexpr OpInfo kInfo{.name = "softsign", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return x / (1.0 + num::Abs(x)); }
  static void Samples(SampleSink& s) { s.Range(-4, 4).Reference([](double x) { return x / (1 + std::fabs(x)); }).MaxUlp(2).Kinks({0}); }
};

/// log(sigmoid(x)) without overflow.
struct LogSigmoid {
  static constexpr OpInfo kInfo{.name = "log_sigmoid", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return num::Select(x < 0.0, x, num::Const(x, 0)) - log1p(exp(-num::Abs(x))); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return sigmoid(-x[0]); }
  static void Samples(SampleSink& s) { s.Range(-8, 8).Reference([](double x) { return std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x))); }).MaxUlp(4); }
};

/// clamp(x / 6 + 1/2, 0, 1).
struct HardSigmoid {
  static constexpr OpInfo kInfo{.name = "hardsigmoid", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return num::Select(x <= -3.0, num::Const(x, 0), num::Select(x >= 3.0, num::Const(x, 1), num::Fma(x, num::Const(x, 1.0 / 6), num::Const(x, 0.5)))); }
  static void Samples(SampleSink& s) { s.Range(-2.5, 5).Reference([](double x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5; }).MaxUlp(16).Kinks({-3, 3}); }
};

/// x hardsigmoid(x) (Howard et al. 2019).
struct HardSwish {
  static constexpr OpInfo kInfo{.name = "hardswish", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return x * HardSigmoid::Body(x); }
  static void Samples(SampleSink& s) { s.Range(-2.5, 5).Reference([](double x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x / 6 + 0.5); }).MaxUlp(16).Kinks({-3, 3}); }
};

/// x - tanh(x).
struct TanhShrink {
  static constexpr OpInfo kInfo{.name = "tanhshrink", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return x - tanh(x); }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) {
    Expr t = tanh(x[0]);
    return t * t;
  }
  static void Samples(SampleSink& s) { s.Range(1, 5).Reference([](double x) { return x - std::tanh(x); }).MaxUlp(16); }
};

struct ShrinkAttrs {
  double lambda = 0.5;
  SINTER_FIELDS(lambda)
};

/// x - lambda above lambda, x + lambda below -lambda, 0 between.
struct SoftShrink {
  static constexpr OpInfo kInfo{.name = "softshrink", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  using Attrs = ShrinkAttrs;
  static Expr Body(const Expr& x, const Attrs& a) {
    Expr l = num::Const(x, a.lambda);
    return num::Select(x > l, x - l, num::Select(x < -l, x + l, x * 0.0));
  }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).With(Attrs{}).With(Attrs{1}).MaxUlp(0.5).Kinks({-1, -0.5, 0.5, 1}).Reference<Attrs>([](double x, const Attrs& a) {
      return x > a.lambda ? x - a.lambda : x < -a.lambda ? x + a.lambda : 0;
    });
  }
};

/// x where |x| > lambda, else 0.
struct HardShrink {
  static constexpr OpInfo kInfo{.name = "hardshrink", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  using Attrs = ShrinkAttrs;
  static Expr Body(const Expr& x, const Attrs& a) { return num::Select(num::Abs(x) <= num::Const(x, a.lambda), num::Const(x, 0), x); }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).With(Attrs{}).With(Attrs{1}).MaxUlp(0).Kinks({-1, -0.5, 0.5, 1}).Reference<Attrs>([](double x, const Attrs& a) { return std::fabs(x) <= a.lambda ? 0 : x; });
  }
};

/// x where x > threshold, else value.
struct Threshold {
  static constexpr OpInfo kInfo{.name = "threshold", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  struct Attrs {
    double threshold = 0, value = 0;
    SINTER_FIELDS(threshold, value)
  };
  static Expr Body(const Expr& x, const Attrs& a) { return num::Select(x > num::Const(x, a.threshold), x, num::Const(x, a.value)); }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).With(Attrs{}).With(Attrs{1, -2}).MaxUlp(0).Kinks({0, 1}).Reference<Attrs>([](double x, const Attrs& a) { return x > a.threshold ? x : a.value; });
  }
};

}  // namespace sinter::ops

SINTER_OP(Relu, relu)
SINTER_OP(LeakyRelu, leaky_relu)
SINTER_OP(Softplus, softplus)
SINTER_OP(Silu, silu)
SINTER_OP(GeluTanh, gelu_tanh)

namespace sinter::ops {

// Written in ops declared above.
/// x tanh(softplus(x)) (Misra 2019).
struct Mish {
  static constexpr OpInfo kInfo{.name = "mish", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  template <Number X>
  static X Body(const X& x) { return x * tanh(softplus(x)); }
  static void Samples(SampleSink& s) {
    s.Range(-8, 8).Reference([](double x) { return x * std::tanh(std::log1p(std::exp(x))); }).MaxUlp(8);
  }
};

}  // namespace sinter::ops

SINTER_OP(Mish, mish)
SINTER_OP(Relu6, relu6)
SINTER_OP(Prelu, prelu)
SINTER_OP(Elu, elu)
SINTER_OP(Celu, celu)
SINTER_OP(Selu, selu)
SINTER_OP(Softsign, softsign)
SINTER_OP(LogSigmoid, log_sigmoid)
SINTER_OP(HardSigmoid, hardsigmoid)
SINTER_OP(HardSwish, hardswish)
SINTER_OP(TanhShrink, tanhshrink)
SINTER_OP(SoftShrink, softshrink)
SINTER_OP(HardShrink, hardshrink)
SINTER_OP(Threshold, threshold)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ActivationOps() {
  return OpFamily<Relu, LeakyRelu, Softplus, Silu, GeluTanh, Mish, Relu6, Prelu, Elu, Celu, Selu, Softsign, LogSigmoid, HardSigmoid, HardSwish, TanhShrink, SoftShrink, HardShrink, Threshold>();
}
}  // namespace sinter::ops
