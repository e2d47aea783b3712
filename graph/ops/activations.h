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

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ActivationOps() {
  return OpFamily<Relu, LeakyRelu, Softplus, Silu, GeluTanh, Mish>();
}
}  // namespace sinter::ops
