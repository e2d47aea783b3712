#pragma once

#include "sinter/graph/op.h"

/// Matrix products and convolutions. Every result element is one chain of fused multiply-adds over the contracted index in
/// the stated order, cut into blocks (graph/numerics.h): the same bits on every device and for every tiling.
namespace sinter::ops {

/// Matrix product [..., m, k] x [..., k, n] -> [..., m, n]; leading dimensions broadcast. Chain over k. Operands of f16 and bf16
/// accumulate in f32.
struct Matmul {
  static constexpr OpInfo kInfo{.name = "matmul", .kind = OpKind::kContraction, .inputs = 2};
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const auto &a = c.in[0].shape, &b = c.in[1].shape;
    if (a.size() < 2 || b.size() < 2) c.Fail("needs operands of rank 2 or more; reshape a vector to one row or one column");
    c.Require(EqCond(a[a.size() - 1], b[b.size() - 2]), [&] {
      return "the inner sizes " + DimText(a[a.size() - 1]) + " and " + DimText(b[b.size() - 2]) + " differ";
    });
    ShapeVec<D> out = c.Broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
    out.push_back(a[a.size() - 2]);
    out.push_back(b[b.size() - 1]);
    c.Out(std::move(out));
  }
  static std::string DimText(Dim d) { return d.ToString(); }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

struct Conv2dAttrs {
  std::vector<int64_t> stride = {1, 1};
  std::vector<int64_t> padding = {0, 0};   ///< zeros on both sides of height and width
  std::vector<int64_t> dilation = {1, 1};
  int64_t groups = 1;
  SINTER_FIELDS(stride, padding, dilation, groups)
};

template <class D>
void CheckConvAttrs(const ShapeCtx<D>& c, const Conv2dAttrs& a) {
  if (a.stride.size() != 2 || a.padding.size() != 2 || a.dilation.size() != 2) c.Fail("stride, padding and dilation have two entries each");
  for (int i : {0, 1})
    if (a.stride[i] < 1 || a.padding[i] < 0 || a.dilation[i] < 1) c.Fail("stride and dilation must be at least 1, padding at least 0");
  if (a.groups < 1) c.Fail("groups must be at least 1");
}

/// Output size along one image dimension (i = 0: height).
template <class D>
D ConvOutSize(const D& size, const D& kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return FloorDiv(size + D(2 * padding) - D(dilation) * (kernel - D(1)) - D(1), D(stride)) + D(1);
}

/// 2-D convolution (cross-correlation): x [n, c, h, w], weight [o, c / groups, kh, kw] -> [n, o, oh, ow].
/// Chain over (kh, kw, c); a padded position contributes fma(0, weight, acc).
struct Conv2d {
  static constexpr OpInfo kInfo{.name = "conv2d", .kind = OpKind::kContraction, .inputs = 2};
  using Attrs = Conv2dAttrs;
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    CheckConvAttrs(c, a);
    const auto &x = c.in[0].shape, &w = c.in[1].shape;
    if (x.size() != 4 || w.size() != 4) c.Fail("needs an image batch [n, c, h, w] and a weight [o, c / groups, kh, kw]");
    c.Require(EqCond(x[1], w[1] * D(a.groups)), [&] {
      return "the image has " + Dim(x[1]).ToString() + " channels, weight and groups ask for " + Dim(w[1] * D(a.groups)).ToString();
    });
    c.Require(DivisibleCond(w[0], D(a.groups)), [] { return std::string("the output channels are not divisible by groups"); });
    ShapeVec<D> out = {x[0], w[0]};
    for (int i : {0, 1}) {
      D extent = D(a.dilation[i]) * (w[2 + i] - D(1)) + D(1);
      c.Require(LeCond(extent, x[2 + i] + D(2 * a.padding[i])), [] { return std::string("the kernel is larger than the padded image"); });
      out.push_back(ConvOutSize(x[2 + i], w[2 + i], a.stride[i], a.padding[i], a.dilation[i]));
    }
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Gradient of conv2d for its image: g [n, o, oh, ow], weight -> [n, c, height, width]. Chain over (kh, kw, o of the group).
struct Conv2dInputGrad {
  static constexpr OpInfo kInfo{.name = "conv2d_input_grad", .kind = OpKind::kContraction, .inputs = 2};
  struct Attrs {
    Conv2dAttrs conv;
    Dim height = 1, width = 1;
    template <class Self, class V>
    static void VisitFields(Self& self, V&& visit) {
      Conv2dAttrs::VisitFields(self.conv, visit);
      visit(std::string_view("height"), self.height);
      visit(std::string_view("width"), self.width);
    }
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    CheckConvAttrs(c, a.conv);
    const auto &g = c.in[0].shape, &w = c.in[1].shape;
    if (g.size() != 4 || w.size() != 4) c.Fail("needs operands of rank 4");
    c.Require(EqCond(g[1], w[0]), [] { return std::string("the channels of gradient and weight differ"); });
    D size[] = {c.Size(a.height), c.Size(a.width)};
    for (int i : {0, 1})
      c.Require(EqCond(g[2 + i], ConvOutSize(size[i], w[2 + i], a.conv.stride[i], a.conv.padding[i], a.conv.dilation[i])),
                [] { return std::string("the gradient's size is not that of the convolution's result"); });
    c.Out({g[0], w[1] * D(a.conv.groups), size[0], size[1]});
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Gradient of conv2d for its weight: x [n, c, h, w], g [n, o, oh, ow] -> [o, c / groups, kernel_h, kernel_w]. Chain over (n, oh, ow).
struct Conv2dWeightGrad {
  static constexpr OpInfo kInfo{.name = "conv2d_weight_grad", .kind = OpKind::kContraction, .inputs = 2};
  struct Attrs {
    Conv2dAttrs conv;
    Dim kernel_h = 1, kernel_w = 1;
    template <class Self, class V>
    static void VisitFields(Self& self, V&& visit) {
      Conv2dAttrs::VisitFields(self.conv, visit);
      visit(std::string_view("kernel_h"), self.kernel_h);
      visit(std::string_view("kernel_w"), self.kernel_w);
    }
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    CheckConvAttrs(c, a.conv);
    const auto &x = c.in[0].shape, &g = c.in[1].shape;
    if (x.size() != 4 || g.size() != 4) c.Fail("needs operands of rank 4");
    c.Require(EqCond(x[0], g[0]), [] { return std::string("the batch sizes differ"); });
    c.Require(DivisibleCond(x[1], D(a.conv.groups)), [] { return std::string("the channels are not divisible by groups"); });
    D kernel[] = {c.Size(a.kernel_h), c.Size(a.kernel_w)};
    for (int i : {0, 1})
      c.Require(EqCond(g[2 + i], ConvOutSize(x[2 + i], kernel[i], a.conv.stride[i], a.conv.padding[i], a.conv.dilation[i])),
                [] { return std::string("the gradient's size is not that of the convolution's result"); });
    c.Out({g[1], FloorDiv(x[1], D(a.conv.groups)), kernel[0], kernel[1]});
  }
  static Expr Element(ElementCtx& c);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Matmul, matmul)
SINTER_OP(Conv2d, conv2d)
SINTER_OP(Conv2dInputGrad, conv2d_input_grad)
SINTER_OP(Conv2dWeightGrad, conv2d_weight_grad)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ContractionOps() {
  return OpFamily<Matmul, Conv2d, Conv2dInputGrad, Conv2dWeightGrad>();
}
}  // namespace sinter::ops
