#pragma once

#include "sinter/runtime/kernels/contraction.h"
#include "sinter/runtime/kernels/conv_window.h"

// Convolutions of one input and one output channel per group: vector lanes run over the channels.

namespace sinter::kernels {

/// y[grid pixel, c] = the chain over kernel positions of source[..., c] * w[position, c]. `w` is dense
/// [positions, channels]; `zeros` has `channels` zeros.
template <class T>
void DepthwiseWindow(const ConvWindow& window, int64_t images, int64_t channels, const T* source,
                     const T* zeros, const T* w, T* y, int64_t y_pixel, const ContractionEpilogue& epilogue);

/// dw[position, c] = the chain over grid pixels of g[pixel, c] * source[..., c]; dw is dense.
template <class T>
void DepthwiseWeightGradient(const ConvWindow& window, int64_t images, int64_t channels, const T* source,
                             const T* zeros, const T* g, int64_t g_pixel, T* dw);

}  // namespace sinter::kernels
