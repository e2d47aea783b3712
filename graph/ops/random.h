#pragma once

#include "sinter/graph/op.h"

/// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011). A generator's state is a tensor i64[2] = {seed, offset};
/// element i of a draw is the function of (seed, offset + i) alone. The ops are pure: whoever draws n numbers advances the
/// offset by n afterwards, with ordinary arithmetic.
namespace sinter::ops {

struct RandomAttrs {
  std::vector<Dim> shape;
  DType dtype = kFloat32;
  SINTER_FIELDS(shape, dtype)
};

template <class D>
void RandomShape(ShapeCtx<D>& c) {
  if (c.in[0].dtype != kInt64 || c.in[0].rank() != 1) c.Fail("the generator's state is i64[2]");
  c.Require(EqCond(c.in[0].shape[0], D(2)), [] { return std::string("the generator's state is i64[2]"); });
  const RandomAttrs& a = c.template Attrs<RandomAttrs>();
  if (!IsFloating(a.dtype)) c.Fail("draws are floating");
  ShapeVec<D> out;
  for (Dim d : a.shape) out.push_back(c.Size(d));
  c.out[0].dtype = a.dtype;
  c.Out(std::move(out));
}

/// Uniform on [0, 1): multiples of 2^-24 (f64: 2^-53, f16: 2^-11, bf16: 2^-8).
struct RandomUniform {
  static constexpr OpInfo kInfo{.name = "random_uniform", .kind = OpKind::kRandom, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  using Attrs = RandomAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { RandomShape(c); }
  static Expr Element(ElementCtx& c);
  static void Samples(SampleSink& s);
};

/// Standard normal, by the inverse distribution function (Giles 2010, single precision accuracy in every dtype).
struct RandomNormal {
  static constexpr OpInfo kInfo{.name = "random_normal", .kind = OpKind::kRandom, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  using Attrs = RandomAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { RandomShape(c); }
  static Expr Element(ElementCtx& c);
  static void Samples(SampleSink& s);
};

/// x with elements zeroed with probability p and the others scaled by 1 / (1 - p). Operand 1 is a draw of random_uniform of x's shape.
struct Dropout {
  static constexpr OpInfo kInfo{.name = "dropout", .kind = OpKind::kComposite, .inputs = 2, .dtype = DTypeRule::kFirst};
  struct Attrs {
    double p = 0.5;
    SINTER_FIELDS(p)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const double p = c.template Attrs<Attrs>().p;
    if (!(p >= 0 && p <= 1)) c.Fail("the probability must be in [0, 1]");
    if (!IsFloating(c.in[0].dtype)) c.Fail("needs a floating operand");
    c.Out(c.Broadcast(c.in[0].shape, c.in[1].shape));
  }
  static void Decompose(DecomposeCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(RandomUniform, random_uniform)
SINTER_OP(RandomNormal, random_normal)
SINTER_OP(Dropout, dropout)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> RandomOps() {
  return OpFamily<RandomUniform, RandomNormal, Dropout>();
}
}  // namespace sinter::ops
