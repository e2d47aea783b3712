#pragma once

#include "sinter/graph/op.h"
#include "sinter/graph/ops/contraction.h"

/// Composites and windows of neural networks.
namespace sinter::ops {

struct SoftmaxAttrs {
  int64_t dim = -1;
  SINTER_FIELDS(dim)
};

template <class D>
void SameShape(ShapeCtx<D>& c) { c.Out(c.in[0].shape); }

/// e^(x - max) / sum of e^(x - max) along a dimension.
struct Softmax {
  static constexpr OpInfo kInfo{.name = "softmax", .kind = OpKind::kComposite, .dtype = DTypeRule::kPromoteFloat};
  using Attrs = SoftmaxAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { NormalizeAxis(c.template Attrs<Attrs>().dim, c.in[0].rank(), "softmax"); SameShape(c); }
  static void Decompose(DecomposeCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// log(softmax(x)), accurate.
struct LogSoftmax {
  static constexpr OpInfo kInfo{.name = "log_softmax", .kind = OpKind::kComposite, .dtype = DTypeRule::kPromoteFloat};
  using Attrs = SoftmaxAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) { NormalizeAxis(c.template Attrs<Attrs>().dim, c.in[0].rank(), "log_softmax"); SameShape(c); }
  static void Decompose(DecomposeCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Mean over the batch of -log_softmax(logits)[target]: logits [n, classes], target i64 [n] with class numbers. A target
/// outside of [0, classes) is an Error, of a compiled call too.
struct CrossEntropy {
  static constexpr OpInfo kInfo{.name = "cross_entropy", .kind = OpKind::kComposite, .inputs = 2, .dtype = DTypeRule::kCustom};
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    if (c.in[0].rank() != 2 || c.in[1].rank() != 1) c.Fail("needs logits [n, classes] and targets [n]");
    if (!IsFloating(c.in[0].dtype) || !IsInteger(c.in[1].dtype)) c.Fail("needs floating logits and integer targets");
    c.Require(EqCond(c.in[0].shape[0], c.in[1].shape[0]), [] { return std::string("the batch sizes differ"); });
    c.out[0].dtype = c.in[0].dtype;
    c.Out({});
  }
  static void Decompose(DecomposeCtx& c);
  static void Samples(SampleSink& s);
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over channels (dimension 1); all parameters have shape [channels].
/// Computed as (x - mean) * (weight * rsqrt(variance + eps)) + bias.
struct BatchNorm {
  static constexpr OpInfo kInfo{.name = "batch_norm", .kind = OpKind::kComposite, .inputs = 5, .dtype = DTypeRule::kPromoteFloat};
  struct Attrs {
    double eps = 1e-5;
    SINTER_FIELDS(eps)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    if (c.in[0].rank() < 2) c.Fail("needs an operand of rank 2 or more with channels in dimension 1");
    for (int i = 1; i < 5; ++i) {
      if (c.in[i].rank() != 1) c.Fail("weight, bias, mean and variance have one dimension");
      c.Require(EqCond(c.in[i].shape[0], c.in[0].shape[1]), [&] { return std::string("a parameter doesn't have one value per channel"); });
    }
    SameShape(c);
  }
  static void Decompose(DecomposeCtx& c);
  static void Samples(SampleSink& s);
};

struct PoolAttrs {
  std::vector<int64_t> kernel = {2, 2};
  std::vector<int64_t> stride = {2, 2};
  std::vector<int64_t> padding = {0, 0};
  SINTER_FIELDS(kernel, stride, padding)
};

template <class D>
void CheckPool(const ShapeCtx<D>& c, const PoolAttrs& a) {
  if (a.kernel.size() != 2 || a.stride.size() != 2 || a.padding.size() != 2) c.Fail("kernel, stride and padding have two entries each");
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int i : {0, 1})
    if (a.kernel[i] < 1 || a.kernel[i] > kMost || a.stride[i] < 1 || a.stride[i] > kMost || a.padding[i] < 0 || a.padding[i] > a.kernel[i] / 2)
      c.Fail("kernel and stride must be at least 1 and at most 2^31, padding at most half of the kernel");
}

/// Greatest value of each window of an image batch [n, c, h, w], and its position h * width + w in the image (i64; the first, or the first NaN).
struct MaxPool2d {
  static constexpr OpInfo kInfo{.name = "max_pool2d", .kind = OpKind::kWindow, .outputs = 2, .dtype = DTypeRule::kFirst};
  using Attrs = PoolAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    if (c.in[0].rank() != 4) c.Fail("needs an image batch [n, c, h, w]");
    CheckPool(c, a);
    ShapeVec<D> out = {c.in[0].shape[0], c.in[0].shape[1]};
    for (int i : {0, 1}) {
      const D size = c.in[0].shape[2 + i];
      c.Require(LeCond(D(a.kernel[i]), size + D(2 * a.padding[i])), [] { return std::string("the window is larger than the padded image"); });
      out.push_back(ConvOutSize(size, D(a.kernel[i]), a.stride[i], a.padding[i], 1));
    }
    c.out[1].dtype = kInt64;
    c.out[0].shape = out;
    c.out[1].shape = std::move(out);
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Gradient of max_pool2d: g and positions [n, c, oh, ow] -> [n, c, height, width]; each element sums the gradients of the windows
/// that chose it, in window order.
struct MaxPool2dGrad {
  static constexpr OpInfo kInfo{.name = "max_pool2d_grad", .kind = OpKind::kWindow, .inputs = 2, .dtype = DTypeRule::kFirst};
  struct Attrs {
    PoolAttrs pool;
    Dim height = 1, width = 1;
    template <class Self, class V>
    static void VisitFields(Self& self, V&& visit) {
      PoolAttrs::VisitFields(self.pool, visit);
      visit(std::string_view("height"), self.height);
      visit(std::string_view("width"), self.width);
    }
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    if (c.in[0].rank() != 4 || c.in[1].rank() != 4) c.Fail("needs operands of rank 4");
    if (c.in[1].dtype != kInt64) c.Fail("positions are i64");
    CheckPool(c, a.pool);
    c.Out({c.in[0].shape[0], c.in[0].shape[1], c.Size(a.height), c.Size(a.width)});
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// x [n, c, h, w] at positions h * width + w (i64 [n, c, oh, ow]) -> [n, c, oh, ow]. A position outside of its own window reads 0.
struct PlaneGather {
  static constexpr OpInfo kInfo{.name = "plane_gather", .kind = OpKind::kGather, .inputs = 2, .dtype = DTypeRule::kFirst};
  struct Attrs {
    PoolAttrs pool;  ///< the pooling whose positions these are, for the gradient
    template <class Self, class V>
    static void VisitFields(Self& self, V&& visit) { PoolAttrs::VisitFields(self.pool, visit); }
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    if (c.in[0].rank() != 4 || c.in[1].rank() != 4) c.Fail("needs operands of rank 4");
    if (c.in[1].dtype != kInt64) c.Fail("positions are i64");
    CheckPool(c, c.template Attrs<Attrs>().pool);
    c.Out(c.in[1].shape);
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Softmax, softmax)
SINTER_OP(LogSoftmax, log_softmax)
SINTER_OP(CrossEntropy, cross_entropy)
SINTER_OP(BatchNorm, batch_norm)
SINTER_OP(MaxPool2d, max_pool2d)
SINTER_OP(MaxPool2dGrad, max_pool2d_grad)
SINTER_OP(PlaneGather, plane_gather)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> NnOps() {
  return OpFamily<Softmax, LogSoftmax, CrossEntropy, BatchNorm, MaxPool2d, MaxPool2dGrad, PlaneGather>();
}
}  // namespace sinter::ops
