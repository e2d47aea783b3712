#include "sinter/runtime/kernels/conv.h"
#include "sinter/runtime/kernels/conv_depthwise.h"
#include "sinter/runtime/kernels/conv_operands.h"
#include "sinter/runtime/kernels/conv_window.h"
#include "sinter/runtime/kernels/gemm_operands.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::kernels {
namespace {

/// dw[o0 + o, c, kh, kw] = dense[o][position][c] for o < outer.
template <class T>
void Scatter(const Conv2dShape& s, const T* dense, int64_t o0, int64_t outer, int64_t inner,
             const ConvWeight<T>& dw) {
  const int64_t positions = s.kh * s.kw;
  const bool side_by_side = dw.kw == 1 && dw.kh == s.kw && dw.c == positions;
  ParallelRange(outer, 1 + 20000 / (positions * inner + 1), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* from = dense + o * positions * inner;
      T* out = dw.data + (o0 + o) * dw.oc;
      if (side_by_side) {
        Transpose(from, inner, positions, inner, out, positions);
        continue;
      }
      for (int64_t position = 0; position < positions; ++position, from += inner) {
        T* at = out + position / s.kw * dw.kh + position % s.kw * dw.kw;
        for (int64_t c = 0; c < inner; ++c) at[c * dw.c] = from[c];
      }
    }
  });
}

template <class T>
void DepthwiseGradient(const Conv2dBackwardWeightArgs<T>& args, const ConvWindow& window) {
  const Conv2dShape& s = args.shape;
  const MemoryBlock zeros = Zeros<T>(s.c);
  const MemoryBlock dense(ByteCount(window.positions() * s.c, sizeof(T)));
  DepthwiseWeightGradient(window, s.n, s.c, args.x, zeros.as<T>(), args.g, args.g_pixel, dense.as<T>());
  for (int64_t position = 0; position < window.positions(); ++position) {
    T* out = args.dw.data + position / s.kw * args.dw.kh + position % s.kw * args.dw.kw;
    for (int64_t c = 0; c < s.c; ++c) out[c * args.dw.oc] = dense.as<T>()[position * s.c + c];
  }
}

}  // namespace

template <class T>
void Conv2dBackwardWeight(const Conv2dBackwardWeightArgs<T>& args) {
  const Conv2dShape& s = args.shape;
  const ConvWindow window = ConvWindow::Forward(s, args.x_pixel);
  if (s.groups > 1 && s.groups == s.c && s.groups == s.oc) return DepthwiseGradient(args, window);
  const int64_t inner = s.c / s.groups, outer = s.oc / s.groups, columns = window.positions() * inner;
  const MemoryBlock zeros = Zeros<T>(inner);
  const bool dense = args.dw.c == 1 && args.dw.kw == inner && args.dw.kh == s.kw * inner;
  MemoryBlock buffer;
  if (!dense) buffer = MemoryBlock(ByteCount(outer * columns, sizeof(T)));
  for (int64_t group = 0; group < s.groups; ++group) {
    const CopiedRows<T> rows(args.g + group * outer, 1, args.g_pixel);
    const ImagePanels<T> panels(window, args.x + group * inner, inner, zeros.as<T>());
    Contraction<T> x;
    x.m = outer;
    x.n = columns;
    x.k = s.n * window.grid_h() * window.grid_w();
    x.rows = &rows;
    x.panels = &panels;
    x.c = dense ? args.dw.data + group * outer * args.dw.oc : buffer.as<T>();
    x.c_row = dense ? args.dw.oc : columns;
    Contract(x);
    if (!dense) Scatter(s, buffer.as<T>(), group * outer, outer, inner, args.dw);
  }
}

template void Conv2dBackwardWeight(const Conv2dBackwardWeightArgs<float>&);
template void Conv2dBackwardWeight(const Conv2dBackwardWeightArgs<double>&);

}  // namespace sinter::kernels
