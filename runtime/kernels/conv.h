#pragma once

#include <cstdint>

#include "sinter/runtime/kernels/contraction.h"

// 2-D convolution over NHWC data by the canonical contraction (graph/numerics.h), T = float or double. A term
// whose input lies in the padding is a term with the factor 0, not an absent one. All functions use the
// pool's threads where the work is large enough; sizes of 0 are allowed; outputs must not overlap inputs.

namespace sinter::kernels {

/// Sizes of a convolution. c and oc are multiples of groups; strides, dilations and groups are at least 1,
/// pads at least 0.
struct Conv2dShape {
  int64_t n = 0, h = 0, w = 0, c = 0;  // input
  int64_t oc = 0, kh = 0, kw = 0;      // output channels, kernel
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;

  int64_t out_h() const { return OutSize(h + pad_top + pad_bottom, kh, stride_h, dilation_h); }
  int64_t out_w() const { return OutSize(w + pad_left + pad_right, kw, stride_w, dilation_w); }

  static int64_t OutSize(int64_t padded, int64_t kernel, int64_t stride, int64_t dilation) {
    const int64_t room = padded - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// A weight [oc, c / groups, kh, kw] in any order; strides in elements.
template <class T>
struct ConvWeight {
  T* data = nullptr;
  int64_t oc = 0, c = 0, kh = 0, kw = 0;  // strides
};

/// y[n, oh, ow, o] = the chain over (kh, kw, c), in that order, of x[n, oh * stride - pad + kh * dilation,
/// ..., c] * w[o, c, kh, kw]. Images are dense except for the stride between pixels, in elements. The
/// epilogue's rows are output pixels (n, oh, ow) in order, its columns output channels.
template <class T>
struct Conv2dForwardArgs {
  Conv2dShape shape;
  const T* x = nullptr;
  int64_t x_pixel = 0;
  ConvWeight<const T> w;
  const T* packed_w = nullptr;  ///< from PackConvWeight; w is then not read
  T* y = nullptr;
  int64_t y_pixel = 0;
  ContractionEpilogue epilogue;
};
template <class T>
void Conv2dForward(const Conv2dForwardArgs<T>& args);

/// Elements of a weight packed for Conv2dForward (or its gradient's data pass, which has the same number or
/// more).
template <class T>
int64_t PackedConvWeightElements(const Conv2dShape& shape);
/// Packs w for Conv2dForward with any image size. `out` should be aligned to 64 bytes.
template <class T>
void PackConvWeight(const Conv2dShape& shape, const ConvWeight<const T>& w, T* out);

/// dx[n, h, w, c] = the chain over (kh, kw, o), o within c's group, of g[n, (h + pad_top - kh * dilation) /
/// stride,
/// ..., o] * w[o, c, kh, kw], with the factor 0 for g where the division leaves a rest or the pixel does not
/// exist. It is also the forward pass of a transposed convolution. The epilogue's rows are input pixels, its
/// columns input channels.
template <class T>
struct Conv2dBackwardDataArgs {
  Conv2dShape shape;
  const T* g = nullptr;
  int64_t g_pixel = 0;
  ConvWeight<const T> w;
  T* dx = nullptr;
  int64_t dx_pixel = 0;
  ContractionEpilogue epilogue;
};
template <class T>
void Conv2dBackwardData(const Conv2dBackwardDataArgs<T>& args);

/// dw[o, c, kh, kw] = the chain over output pixels (n, oh, ow), in that order, of g[n, oh, ow, o] * x[n, oh *
/// stride - pad
/// + kh * dilation, ..., c].
template <class T>
struct Conv2dBackwardWeightArgs {
  Conv2dShape shape;
  const T* x = nullptr;
  int64_t x_pixel = 0;
  const T* g = nullptr;
  int64_t g_pixel = 0;
  ConvWeight<T> dw;
};
template <class T>
void Conv2dBackwardWeight(const Conv2dBackwardWeightArgs<T>& args);

}  // namespace sinter::kernels
