#pragma once

#include "sinter/graph/op.h"

/// Ops that move elements without computing.
namespace sinter::ops {

/// The same elements in row-major order under another shape. One size may be -1: it follows from the others.
struct Reshape {
  static constexpr OpInfo kInfo{.name = "reshape", .kind = OpKind::kView, .dtype = DTypeRule::kFirst};
  struct Attrs {
    std::vector<Dim> shape;
    SINTER_FIELDS(shape)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const auto& wanted = c.template Attrs<Attrs>().shape;
    ShapeVec<D> out;
    D known = 1;
    int infer = -1;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool minus_one = wanted[i].is_const() && wanted[i].value() == -1;
      if (wanted[i].is_const() && wanted[i].value() < -1) c.Fail("a size is negative");
      if (minus_one && infer >= 0) c.Fail("only one size may be -1");
      if (minus_one) infer = static_cast<int>(i);
      out.push_back(minus_one ? D(1) : c.Size(wanted[i]));
      if (!minus_one) known = known * out.back();
    }
    D total = 1;
    for (const D& d : c.in[0].shape) total = total * d;
    auto message = [&] { return Mismatch(c.in[0].shape, wanted); };
    if (infer >= 0) {
      c.Require(DivisibleCond(total, known), message);
      out[infer] = FloorDiv(total, known);
    } else {
      c.Require(EqCond(total, known), message);
    }
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static bool View(ViewCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);

 private:
  template <class S>
  static std::string Mismatch(const S& from, const std::vector<Dim>& to) {
    return "shape " + ShapeToString(from) + " can't become " + ShapeToString(SymShape(to.begin(), to.end())) +
           ": the numbers of elements differ";
  }
};

/// Dimensions in another order: result dimension i is operand dimension dims[i].
struct Permute {
  static constexpr OpInfo kInfo{.name = "permute", .kind = OpKind::kView, .dtype = DTypeRule::kFirst};
  struct Attrs {
    std::vector<int64_t> dims;
    SINTER_FIELDS(dims)
  };
  static std::vector<int> Order(const Attrs& a, int rank);
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    ShapeVec<D> out;
    for (int d : Order(c.template Attrs<Attrs>(), c.in[0].rank())) out.push_back(c.in[0].shape[d]);
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static bool View(ViewCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Broadcasts to a larger shape without copying; sizes are equal or stretch from 1.
struct Expand {
  static constexpr OpInfo kInfo{.name = "expand", .kind = OpKind::kView, .dtype = DTypeRule::kFirst};
  struct Attrs {
    std::vector<Dim> shape;
    SINTER_FIELDS(shape)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    ShapeVec<D> wanted;
    for (Dim d : c.template Attrs<Attrs>().shape) wanted.push_back(c.Size(d));
    if (wanted.size() < c.in[0].shape.size()) c.Fail("the result has fewer dimensions than the operand");
    const size_t skip = wanted.size() - c.in[0].shape.size();
    for (size_t i = 0; i < c.in[0].shape.size(); ++i) {
      const D from = c.in[0].shape[i];
      if (!IsOne(from))
        c.Require(EqCond(from, wanted[skip + i]), [&] {
          return "shape " + ShapeToString(c.in[0].shape) + " can't expand to " + ShapeToString(wanted) + ": only sizes of 1 stretch";
        });
    }
    c.Out(std::move(wanted));
  }
  static Expr Element(ElementCtx& c) { return c.InBroadcast(0); }
  static bool View(ViewCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// The bound of a slice that means: to the end.
inline constexpr int64_t kToEnd = int64_t{1} << 60;

/// Elements start, start + step, ... below end along one dimension. Negative start and end count from the end where the
/// size is known; bounds are clamped to the size as in Python. step >= 1.
struct Slice {
  static constexpr OpInfo kInfo{.name = "slice", .kind = OpKind::kView, .dtype = DTypeRule::kFirst};
  struct Attrs {
    int64_t dim = 0;
    Dim start = 0;
    Dim end = kToEnd;
    int64_t step = 1;
    SINTER_FIELDS(dim, start, end, step)
  };
  /// A bound as a position in [0, size].
  template <class D>
  static D Bound(D bound, const D& size) {
    if constexpr (std::is_same_v<D, Dim>) {
      if (bound.is_const() && bound.value() == kToEnd) return size;
      if (bound.is_const() && bound.value() < 0) bound = size + bound;
    } else {
      if (bound == kToEnd) return size;
      if (bound < 0) bound = size + bound;
    }
    return Max(D(0), Min(bound, size));
  }
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const auto& a = c.template Attrs<Attrs>();
    const int dim = NormalizeAxis(a.dim, c.in[0].rank(), "slice");
    if (a.step < 1) c.Fail("the step must be at least 1");
    ShapeVec<D> out = c.in[0].shape;
    D start = Bound<D>(c.Size(a.start), out[dim]), end = Bound<D>(c.Size(a.end), out[dim]);
    out[dim] = FloorDiv(Max(D(0), end - start) + D(a.step - 1), D(a.step));
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static bool View(ViewCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// The operand within a larger tensor of `value`: before[i] and after[i] elements along dimension i.
struct Pad {
  static constexpr OpInfo kInfo{.name = "pad", .kind = OpKind::kGather, .dtype = DTypeRule::kFirst};
  struct Attrs {
    std::vector<Dim> before, after;
    double value = 0;
    SINTER_FIELDS(before, after, value)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const auto& a = c.template Attrs<Attrs>();
    if (a.before.size() != c.in[0].shape.size() || a.after.size() != a.before.size()) c.Fail("needs one pair of amounts per dimension");
    ShapeVec<D> out = c.in[0].shape;
    for (size_t i = 0; i < out.size(); ++i) {
      D before = c.Size(a.before[i]), after = c.Size(a.after[i]);
      c.Require(LeCond(D(0), before), [] { return std::string("an amount is negative"); });
      c.Require(LeCond(D(0), after), [] { return std::string("an amount is negative"); });
      out[i] = before + out[i] + after;
    }
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Tensors one after the other along a dimension.
struct Concat {
  static constexpr OpInfo kInfo{.name = "concat", .kind = OpKind::kGather, .inputs = -1};
  struct Attrs {
    int64_t dim = 0;
    SINTER_FIELDS(dim)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    if (c.in.empty()) throw Error(ErrorCode::kInvalidArgument, "concat: needs at least one tensor");
    const int dim = NormalizeAxis(c.template Attrs<Attrs>().dim, c.in[0].rank(), "concat");
    ShapeVec<D> out = c.in[0].shape;
    for (size_t k = 1; k < c.in.size(); ++k) {
      if (c.in[k].shape.size() != out.size()) c.Fail("ranks differ");
      for (int i = 0; i < static_cast<int>(out.size()); ++i) {
        if (i == dim) continue;
        c.Require(EqCond(out[i], c.in[k].shape[i]), [&] { return "sizes differ along dimension " + std::to_string(i); });
      }
      out[dim] = out[dim] + c.in[k].shape[dim];
    }
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// The same values, through which no gradient flows.
struct StopGradient {
  static constexpr OpInfo kInfo{.name = "stop_gradient", .kind = OpKind::kView, .dtype = DTypeRule::kFirst};
  static constexpr bool kNoGrad = true;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Out(c.in[0].shape); }
  static Expr Element(ElementCtx& c) { return c.In(0, c.at); }
  static bool View(ViewCtx& c) {
    c.out_strides = c.in_strides;
    return true;
  }
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Reshape, reshape)
SINTER_OP(Permute, permute)
SINTER_OP(Expand, expand)
SINTER_OP(Slice, slice)
SINTER_OP(Pad, pad)
SINTER_OP(Concat, concat)
SINTER_OP(StopGradient, stop_gradient)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ViewOps() {
  return OpFamily<Reshape, Permute, Expand, Slice, Pad, Concat, StopGradient>();
}
}  // namespace sinter::ops
