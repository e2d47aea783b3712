#pragma once

#include "sinter/graph/op.h"

/// Reductions over dimensions. `axes` empty means all; negative axes count from the end.
namespace sinter::ops {

struct ReduceAttrs {
  std::vector<int64_t> axes;
  bool keepdim = false;
  SINTER_FIELDS(axes, keepdim)
};

/// By dimension of the operand: is it reduced? A repeated or wrong axis is an Error.
std::vector<bool> ReducedDims(const ReduceAttrs& a, int rank, std::string_view op);

template <class D>
ShapeVec<D> ReducedShape(const ShapeVec<D>& in, const ReduceAttrs& a, std::string_view op) {
  std::vector<bool> reduced = ReducedDims(a, static_cast<int>(in.size()), op);
  ShapeVec<D> out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!reduced[i]) out.push_back(in[i]);
    else if (a.keepdim) out.push_back(D(1));
  }
  return out;
}

/// The reduction of operand 0 that `c` asks for, in dtype t.
Expr ReduceElement(ElementCtx& c, ReduceKind kind, DType t);
/// A gradient (or result) of a reduction stretched back over the reduced dimensions of `like`.
Var Unreduce(Var v, const ReduceAttrs& a, const Var& like);

/// Sum; integers and bool sum in i64. The order of additions is fixed by the number of values alone.
struct Sum {
  static constexpr OpInfo kInfo{.name = "sum", .kind = OpKind::kReduce, .dtype = DTypeRule::kCustom};
  using Attrs = ReduceAttrs;
  static DType Type(DType in) { return IsFloating(in) ? in : kInt64; }
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    c.out[0].dtype = Type(c.in[0].dtype);
    c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "sum"));
  }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kSum, ComputeType(c.out[0].dtype)); }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Product; integers and bool multiply in i64.
struct Prod {
  static constexpr OpInfo kInfo{.name = "prod", .kind = OpKind::kReduce, .dtype = DTypeRule::kCustom};
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    c.out[0].dtype = Sum::Type(c.in[0].dtype);
    c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "prod"));
  }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kProd, ComputeType(c.out[0].dtype)); }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Requires that no reduced dimension is empty, where the extreme of no values is not a value: floating types have infinity.
template <class D>
void RequireNonEmpty(ShapeCtx<D>& c, const ReduceAttrs& a, bool always = false) {
  if (!always && IsFloating(c.in[0].dtype)) return;
  std::vector<bool> reduced = ReducedDims(a, c.in[0].rank(), c.op.name);
  for (size_t i = 0; i < reduced.size(); ++i)
    if (reduced[i])
      c.Require(LeCond(D(1), c.in[0].shape[i]), [&] { return "dimension " + std::to_string(i) + " is empty and the reduction has no identity"; });
}

/// Greatest value; NaN if there is one; -inf of no values (integers: an Error). The gradient is shared equally among equal greatest values.
struct Amax {
  static constexpr OpInfo kInfo{.name = "amax", .kind = OpKind::kReduce, .dtype = DTypeRule::kFirst};
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    RequireNonEmpty(c, c.template Attrs<Attrs>());
    c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "amax"));
  }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kMax, ComputeType(c.out[0].dtype)); }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Least value; NaN if there is one; +inf of no values (integers: an Error). The gradient is shared equally among equal least values.
struct Amin {
  static constexpr OpInfo kInfo{.name = "amin", .kind = OpKind::kReduce, .dtype = DTypeRule::kFirst};
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    RequireNonEmpty(c, c.template Attrs<Attrs>());
    c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "amin"));
  }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kMin, ComputeType(c.out[0].dtype)); }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

struct Any {
  static constexpr OpInfo kInfo{.name = "any", .kind = OpKind::kReduce, .dtype = DTypeRule::kLogical};
  static constexpr bool kNoGrad = true;
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "any")); }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kAny, kBool); }
  static void Samples(SampleSink& s);
};

struct All {
  static constexpr OpInfo kInfo{.name = "all", .kind = OpKind::kReduce, .dtype = DTypeRule::kLogical};
  static constexpr bool kNoGrad = true;
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "all")); }
  static Expr Element(ElementCtx& c) { return ReduceElement(c, ReduceKind::kAll, kBool); }
  static void Samples(SampleSink& s);
};

/// Position (i64) of the first greatest value along one dimension; of the first NaN if there is one.
struct Argmax {
  static constexpr OpInfo kInfo{.name = "argmax", .kind = OpKind::kReduce, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  struct Attrs {
    int64_t dim = -1;
    bool keepdim = false;
    SINTER_FIELDS(dim, keepdim)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const auto& a = c.template Attrs<Attrs>();
    ReduceAttrs r{{NormalizeAxis(a.dim, c.in[0].rank(), "argmax")}, a.keepdim};
    RequireNonEmpty(c, r, true);
    c.out[0].dtype = kInt64;
    c.Out(ReducedShape(c.in[0].shape, r, "argmax"));
  }
  static Expr Element(ElementCtx& c);
  static void Samples(SampleSink& s);
};

/// Arithmetic mean: the sum divided by the count. NaN for no values.
struct Mean {
  static constexpr OpInfo kInfo{.name = "mean", .kind = OpKind::kComposite, .dtype = DTypeRule::kPromoteFloat};
  using Attrs = ReduceAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Out(ReducedShape(c.in[0].shape, c.template Attrs<Attrs>(), "mean")); }
  static void Decompose(DecomposeCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Sum, sum)
SINTER_OP(Prod, prod)
SINTER_OP(Amax, amax)
SINTER_OP(Amin, amin)
SINTER_OP(Any, any)
SINTER_OP(All, all)
SINTER_OP(Argmax, argmax)
SINTER_OP(Mean, mean)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ReduceOps() {
  return OpFamily<Sum, Prod, Amax, Amin, Any, All, Argmax, Mean>();
}
}  // namespace sinter::ops
