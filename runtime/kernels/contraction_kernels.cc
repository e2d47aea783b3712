#include "sinter/runtime/kernels/contraction_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sinter/graph/ops/contraction.h"
#include "sinter/runtime/kernels/conv.h"
#include "sinter/runtime/kernels/gemm.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::kernels {
namespace {

bool SupportsFloats(const OpDef&, const AttrBox*, std::span<const TensorView> in) {
  return (in[0].dtype == kFloat32 || in[0].dtype == kFloat64) && in[1].dtype == in[0].dtype;
}

template <class Fn>
void ByType(DType t, Fn fn) {
  if (t == kFloat32) fn(float{});
  else fn(double{});
}

// Every NaN that is stored is the canonical one.
template <class T>
void CanonicalNans(T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (p[i] != p[i]) p[i] = std::copysign(std::numeric_limits<T>::quiet_NaN(), T{1});
}

// Copies of operands that are not in the layout a kernel needs.
class Operands {
 public:
  /// `v` itself if its strides fit `wanted` (in elements; sizes of 1 don't matter), else a copy.
  TensorView Laid(const TensorView& v, std::span<const int64_t> wanted) {
    bool fits = true;
    for (int d = 0; d < v.rank(); ++d) fits = fits && (v.sizes[d] <= 1 || v.strides[d] == wanted[d]);
    if (fits) return v;
    blocks_.emplace_back(ByteCount(v.numel(), ItemSize(v.dtype)));
    TensorView copy{blocks_.back().data(), v.dtype, v.sizes, wanted};
    CopyView(v, copy);
    return copy;
  }

 private:
  std::vector<MemoryBlock> blocks_;
};

Shape NhwcStrides(std::span<const int64_t> s) { return {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}; }

// The pixel stride of an image batch [n, c, h, w] that is NHWC up to a gap between pixels, else -1.
int64_t PixelStride(const TensorView& v) {
  const auto& s = v.sizes;
  const int64_t pixel = s[3] > 1 ? v.strides[3] : s[2] > 1 ? v.strides[2] : s[0] > 1 ? v.strides[0] / std::max<int64_t>(1, s[2] * s[3]) : s[1];
  const bool ok = (s[1] <= 1 || v.strides[1] == 1) && (s[3] <= 1 || v.strides[3] == pixel) && (s[2] <= 1 || v.strides[2] == s[3] * pixel) &&
                  (s[0] <= 1 || v.strides[0] == s[2] * s[3] * pixel) && pixel >= s[1];
  return ok ? pixel : -1;
}

struct Image {
  TensorView view;
  int64_t pixel;
};
Image AsImage(const TensorView& v, Operands& operands, Shape& strides) {
  const int64_t pixel = PixelStride(v);
  if (pixel >= 0) return {v, pixel};
  strides = NhwcStrides(v.sizes);
  return {operands.Laid(v, strides), v.sizes[1]};
}

// Results are written in NHWC; one that was asked for otherwise is copied.
class ImageResult {
 public:
  ImageResult(const TensorView& out) : out_(out), pixel_(PixelStride(out)) {
    if (pixel_ >= 0) return;
    block_ = MemoryBlock(ByteCount(out.numel(), ItemSize(out.dtype)));
    strides_ = NhwcStrides(out.sizes);
    pixel_ = out.sizes[1];
  }
  void* data() const { return block_.data() ? block_.data() : out_.data; }
  int64_t pixel() const { return pixel_; }
  template <class T>
  void Finish() {
    CanonicalNans(static_cast<T*>(data()), out_.numel() / std::max<int64_t>(1, out_.sizes[1]) * pixel_);
    if (block_.data()) CopyView({block_.data(), out_.dtype, out_.sizes, strides_}, out_);
  }

 private:
  TensorView out_;
  int64_t pixel_;
  MemoryBlock block_;
  Shape strides_;
};

void RunMatmul(const OpDef&, const AttrBox*, std::span<const TensorView> in, std::span<const TensorView> outs) {
  const TensorView &a = in[0], &b = in[1], &out = outs[0];
  const int rank = out.rank(), batch_rank = rank - 2;
  ByType(out.dtype, [&]<class T>(T) {
    GemmArgs<T> g;
    g.m = out.sizes[rank - 2];
    g.n = out.sizes[rank - 1];
    g.k = a.sizes[a.rank() - 1];
    g.a_row = a.strides[a.rank() - 2];
    g.a_column = a.strides[a.rank() - 1];
    g.b_row = b.strides[b.rank() - 2];
    g.b_column = b.strides[b.rank() - 1];
    g.c_row = g.n;
    int64_t batches = 1;
    for (int d = 0; d < batch_rank; ++d) batches *= out.sizes[d];
    // A plain batch of rows with one matrix is one larger product.
    if (b.rank() == 2 && batches > 1) {
      bool rows = true;
      for (int d = 0; d < batch_rank; ++d) {
        int64_t step = g.m * g.a_row;
        for (int e = d + 1; e < batch_rank; ++e) step *= out.sizes[e];
        const int own = d - (rank - a.rank());
        rows = rows && own >= 0 && a.sizes[own] == out.sizes[d] && (out.sizes[d] == 1 || a.strides[own] == step);
      }
      if (rows) g.m *= batches, batches = 1;
    }
    auto at = [&](const TensorView& v, int64_t batch) {
      int64_t offset = 0;
      for (int d = batch_rank - 1; d >= 0; --d) {
        const int64_t i = batch % out.sizes[d];
        batch /= out.sizes[d];
        const int own = d - (rank - v.rank());
        if (own >= 0 && v.sizes[own] != 1) offset += i * v.strides[own];
      }
      return offset;
    };
    auto one = [&](int64_t i) {
      GemmArgs<T> part = g;
      part.a = a.as<const T>() + at(a, i);
      part.b = b.as<const T>() + at(b, i);
      part.c = out.as<T>() + i * g.m * g.n;
      Gemm(part);
      CanonicalNans(part.c, g.m * g.n);
    };
    if (batches == 1) one(0);
    else ParallelFor(batches, one);
  });
}

Conv2dShape ShapeOf(const ops::Conv2dAttrs& a, std::span<const int64_t> x, std::span<const int64_t> w) {
  Conv2dShape s;
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
  s.oc = w[0], s.kh = w[2], s.kw = w[3];
  s.stride_h = a.stride[0], s.stride_w = a.stride[1];
  s.pad_top = s.pad_bottom = a.padding[0];
  s.pad_left = s.pad_right = a.padding[1];
  s.dilation_h = a.dilation[0], s.dilation_w = a.dilation[1];
  s.groups = a.groups;
  return s;
}

template <class T, class U>
ConvWeight<T> Weight(const TensorView& w, U* data) {
  return {data, w.strides[0], w.strides[1], w.strides[2], w.strides[3]};
}

void RunConv(const OpDef&, const AttrBox* attrs, std::span<const TensorView> in, std::span<const TensorView> outs) {
  ByType(outs[0].dtype, [&]<class T>(T) {
    Operands operands;
    Shape strides;
    const Image x = AsImage(in[0], operands, strides);
    ImageResult y(outs[0]);
    Conv2dForwardArgs<T> args;
    args.shape = ShapeOf(attrs->As<ops::Conv2dAttrs>(), in[0].sizes, in[1].sizes);
    args.x = x.view.as<const T>();
    args.x_pixel = x.pixel;
    args.w = Weight<const T>(in[1], in[1].as<const T>());
    args.y = static_cast<T*>(y.data());
    args.y_pixel = y.pixel();
    Conv2dForward(args);
    y.Finish<T>();
  });
}

void RunConvInputGrad(const OpDef&, const AttrBox* attrs, std::span<const TensorView> in, std::span<const TensorView> outs) {
  ByType(outs[0].dtype, [&]<class T>(T) {
    Operands operands;
    Shape strides;
    const Image g = AsImage(in[0], operands, strides);
    ImageResult dx(outs[0]);
    Conv2dBackwardDataArgs<T> args;
    args.shape = ShapeOf(attrs->As<ops::Conv2dInputGrad::Attrs>().conv, outs[0].sizes, in[1].sizes);
    args.g = g.view.as<const T>();
    args.g_pixel = g.pixel;
    args.w = Weight<const T>(in[1], in[1].as<const T>());
    args.dx = static_cast<T*>(dx.data());
    args.dx_pixel = dx.pixel();
    Conv2dBackwardData(args);
    dx.Finish<T>();
  });
}

void RunConvWeightGrad(const OpDef&, const AttrBox* attrs, std::span<const TensorView> in, std::span<const TensorView> outs) {
  ByType(outs[0].dtype, [&]<class T>(T) {
    Operands operands;
    Shape x_strides, g_strides;
    const Image x = AsImage(in[0], operands, x_strides), g = AsImage(in[1], operands, g_strides);
    Conv2dBackwardWeightArgs<T> args;
    args.shape = ShapeOf(attrs->As<ops::Conv2dWeightGrad::Attrs>().conv, in[0].sizes, outs[0].sizes);
    args.x = x.view.as<const T>();
    args.x_pixel = x.pixel;
    args.g = g.view.as<const T>();
    args.g_pixel = g.pixel;
    args.dw = Weight<T>(outs[0], outs[0].as<T>());
    Conv2dBackwardWeight(args);
    CanonicalNans(outs[0].as<T>(), outs[0].numel());
  });
}

}  // namespace

std::vector<KernelRow> ContractionKernels() {
  return {
      {&DefOf<ops::Matmul>(), {RunMatmul, SupportsFloats, OutputLayout::kRowMajor}},
      {&DefOf<ops::Conv2d>(), {RunConv, SupportsFloats, OutputLayout::kChannelsLast}},
      {&DefOf<ops::Conv2dInputGrad>(), {RunConvInputGrad, SupportsFloats, OutputLayout::kChannelsLast}},
      {&DefOf<ops::Conv2dWeightGrad>(), {RunConvWeightGrad, SupportsFloats, OutputLayout::kRowMajor}},
  };
}

}  // namespace sinter::kernels
