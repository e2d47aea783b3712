#include "sinter/runtime/kernels/conv_depthwise.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "sinter/graph/numerics.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::kernels {
namespace {

inline __m256 Load(const float* p) { return _mm256_loadu_ps(p); }
inline __m256d Load(const double* p) { return _mm256_loadu_pd(p); }
inline void Store(float* p, __m256 v) { _mm256_storeu_ps(p, v); }
inline void Store(double* p, __m256d v) { _mm256_storeu_pd(p, v); }
inline __m256 Fma(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d Fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }

/// out[c] (+)= the chain over p < k of a[p][c] * b[p * b_step + c], for c < channels.
template <class T>
void ChainOverPointers(const T* const* a, const T* b, int64_t b_step, int64_t k, int64_t channels, bool first,
                       T* out) {
  using V = decltype(Load(static_cast<const T*>(nullptr)));
  constexpr int64_t kLanes = sizeof(V) / sizeof(T);
  int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
    V s0{}, s1{}, s2{}, s3{};
    for (int64_t p = 0; p < k; ++p) {
      const T* x = a[p] + c;
      const T* w = b + p * b_step + c;
      s0 = Fma(Load(x), Load(w), s0);
      s1 = Fma(Load(x + kLanes), Load(w + kLanes), s1);
      s2 = Fma(Load(x + 2 * kLanes), Load(w + 2 * kLanes), s2);
      s3 = Fma(Load(x + 3 * kLanes), Load(w + 3 * kLanes), s3);
    }
    T* o = out + c;
    Store(o, first ? s0 : Load(o) + s0);
    Store(o + kLanes, first ? s1 : Load(o + kLanes) + s1);
    Store(o + 2 * kLanes, first ? s2 : Load(o + 2 * kLanes) + s2);
    Store(o + 3 * kLanes, first ? s3 : Load(o + 3 * kLanes) + s3);
  }
  for (; c + kLanes <= channels; c += kLanes) {
    V sum{};
    for (int64_t p = 0; p < k; ++p) sum = Fma(Load(a[p] + c), Load(b + p * b_step + c), sum);
    Store(out + c, first ? sum : Load(out + c) + sum);
  }
  for (; c < channels; ++c) {
    T sum = 0;
    for (int64_t p = 0; p < k; ++p) sum = std::fma(a[p][c], b[p * b_step + c], sum);
    out[c] = first ? sum : out[c] + sum;
  }
}

}  // namespace

template <class T>
void DepthwiseWindow(const ConvWindow& window, int64_t images, int64_t channels, const T* source,
                     const T* zeros, const T* w, T* y, int64_t y_pixel, const ContractionEpilogue& epilogue) {
  const int64_t pixels = images * window.grid_h() * window.grid_w(), positions = window.positions();
  if (pixels == 0 || channels == 0) return;
  const int64_t grain = 1 + 20000 / (positions * channels / 4 + 20);  // some 5 us
  ParallelRange(pixels, grain, [&](int64_t begin, int64_t end) {
    MemoryBlock block(static_cast<size_t>(positions) * sizeof(T*));
    const T** table = block.as<const T*>();
    constexpr int64_t kTogether = 64;  // pixels between calls of the epilogue
    GridCursor cursor(window, begin);
    for (int64_t pixel = begin; pixel < end;) {
      const int64_t start = pixel, stop = std::min(pixel + kTogether, end);
      for (; pixel < stop; ++pixel, cursor.Advance()) {
        T* out = y + pixel * y_pixel;
        cursor.Sources(source, zeros, table, 1);
        for (int64_t k = 0; k < positions; k += kContractionBlock) {
          ChainOverPointers(table + k, w + k * channels, channels,
                            std::min<int64_t>(positions - k, kContractionBlock), channels, k == 0, out);
        }
      }
      if (epilogue.fn != nullptr) epilogue.fn(epilogue.context, start, stop - start, 0, channels);
    }
  });
}

template <class T>
void DepthwiseWeightGradient(const ConvWindow& window, int64_t images, int64_t channels, const T* source,
                             const T* zeros, const T* g, int64_t g_pixel, T* dw) {
  const int64_t pixels = images * window.grid_h() * window.grid_w();
  if (pixels == 0) {
    std::fill_n(dw, window.positions() * channels, T{0});
    return;
  }
  const int64_t grain = 1 + 20000 / (pixels * channels / 4 + 20);
  ParallelRange(window.positions(), grain, [&](int64_t begin, int64_t end) {
    const T* table[kContractionBlock];
    // Pixels outside, positions inside: a block of pixels stays in cache for all its positions.
    for (int64_t pixel = 0; pixel < pixels; pixel += kContractionBlock) {
      const int64_t count = std::min<int64_t>(pixels - pixel, kContractionBlock);
      for (int64_t position = begin; position < end; ++position) {
        const int64_t kh = position / window.kw(), kw = position % window.kw();
        GridCursor cursor(window, pixel);
        for (int64_t p = 0; p < count; ++p, cursor.Advance()) table[p] = cursor.Source(source, kh, kw, zeros);
        ChainOverPointers(table, g + pixel * g_pixel, g_pixel, count, channels, pixel == 0,
                          dw + position * channels);
      }
    }
  });
}

template void DepthwiseWindow(const ConvWindow&, int64_t, int64_t, const float*, const float*, const float*,
                              float*, int64_t, const ContractionEpilogue&);
template void DepthwiseWindow(const ConvWindow&, int64_t, int64_t, const double*, const double*,
                              const double*, double*, int64_t, const ContractionEpilogue&);
template void DepthwiseWeightGradient(const ConvWindow&, int64_t, int64_t, const float*, const float*,
                                      const float*, int64_t, float*);
template void DepthwiseWeightGradient(const ConvWindow&, int64_t, int64_t, const double*, const double*,
                                      const double*, int64_t, double*);

}  // namespace sinter::kernels
