#include "sinter/runtime/kernels/conv_window.h"

namespace sinter::kernels {
namespace {

struct Axis {
  int64_t grid, kernel, source, stride, pad, dilation, step;
};

void FillForward(const Axis& axis, int64_t* out) {
  for (int64_t i = 0; i < axis.grid; ++i) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t at = i * axis.stride - axis.pad + k * axis.dilation;
      *out++ = at >= 0 && at < axis.source ? at * axis.step : ConvWindow::kNone;
    }
  }
}

void FillBackward(const Axis& axis, int64_t* out) {
  for (int64_t i = 0; i < axis.grid; ++i) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t at = i + axis.pad - k * axis.dilation;
      const bool exists = at >= 0 && at % axis.stride == 0 && at / axis.stride < axis.source;
      *out++ = exists ? at / axis.stride * axis.step : ConvWindow::kNone;
    }
  }
}

}  // namespace

ConvWindow::ConvWindow(int64_t grid_h, int64_t grid_w, const Conv2dShape& shape, int64_t image)
    : grid_h_(grid_h),
      grid_w_(grid_w),
      kh_(shape.kh),
      kw_(shape.kw),
      image_(image),
      rows_(ByteCount(grid_h * shape.kh, sizeof(int64_t))),
      columns_(ByteCount(grid_w * shape.kw, sizeof(int64_t))) {}

ConvWindow ConvWindow::Forward(const Conv2dShape& s, int64_t pixel) {
  ConvWindow window(s.out_h(), s.out_w(), s, s.h * s.w * pixel);
  FillForward({s.out_h(), s.kh, s.h, s.stride_h, s.pad_top, s.dilation_h, s.w * pixel},
              window.rows_.as<int64_t>());
  FillForward({s.out_w(), s.kw, s.w, s.stride_w, s.pad_left, s.dilation_w, pixel},
              window.columns_.as<int64_t>());
  if (s.dilation_w == 1) {
    window.run_pixel_ = pixel;
    window.run_stride_ = s.stride_w;
    window.run_pad_ = s.pad_left;
    window.run_limit_ = s.w * pixel;
  }
  return window;
}

ConvWindow ConvWindow::BackwardData(const Conv2dShape& s, int64_t pixel) {
  ConvWindow window(s.h, s.w, s, s.out_h() * s.out_w() * pixel);
  FillBackward({s.h, s.kh, s.out_h(), s.stride_h, s.pad_top, s.dilation_h, s.out_w() * pixel},
               window.rows_.as<int64_t>());
  FillBackward({s.w, s.kw, s.out_w(), s.stride_w, s.pad_left, s.dilation_w, pixel},
               window.columns_.as<int64_t>());
  return window;
}

}  // namespace sinter::kernels
