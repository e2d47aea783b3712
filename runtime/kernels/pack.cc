#include "sinter/runtime/kernels/pack.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "sinter/runtime/kernels/gemm_tile.h"

namespace sinter::kernels {
namespace {

template <class T>
constexpr int kBlock = 32 / static_cast<int>(sizeof(T));

void TransposeBlock(const float* s, int64_t n, float* t, int64_t m) {
  const __m256 r0 = _mm256_loadu_ps(s), r1 = _mm256_loadu_ps(s + n), r2 = _mm256_loadu_ps(s + 2 * n),
               r3 = _mm256_loadu_ps(s + 3 * n), r4 = _mm256_loadu_ps(s + 4 * n),
               r5 = _mm256_loadu_ps(s + 5 * n), r6 = _mm256_loadu_ps(s + 6 * n),
               r7 = _mm256_loadu_ps(s + 7 * n);
  const __m256 a0 = _mm256_unpacklo_ps(r0, r1), a1 = _mm256_unpackhi_ps(r0, r1),
               a2 = _mm256_unpacklo_ps(r2, r3), a3 = _mm256_unpackhi_ps(r2, r3),
               a4 = _mm256_unpacklo_ps(r4, r5), a5 = _mm256_unpackhi_ps(r4, r5),
               a6 = _mm256_unpacklo_ps(r6, r7), a7 = _mm256_unpackhi_ps(r6, r7);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee),
               b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee),
               b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee),
               b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  _mm256_storeu_ps(t, _mm256_permute2f128_ps(b0, b4, 0x20));
  _mm256_storeu_ps(t + m, _mm256_permute2f128_ps(b1, b5, 0x20));
  _mm256_storeu_ps(t + 2 * m, _mm256_permute2f128_ps(b2, b6, 0x20));
  _mm256_storeu_ps(t + 3 * m, _mm256_permute2f128_ps(b3, b7, 0x20));
  _mm256_storeu_ps(t + 4 * m, _mm256_permute2f128_ps(b0, b4, 0x31));
  _mm256_storeu_ps(t + 5 * m, _mm256_permute2f128_ps(b1, b5, 0x31));
  _mm256_storeu_ps(t + 6 * m, _mm256_permute2f128_ps(b2, b6, 0x31));
  _mm256_storeu_ps(t + 7 * m, _mm256_permute2f128_ps(b3, b7, 0x31));
}

void TransposeBlock(const double* s, int64_t n, double* t, int64_t m) {
  const __m256d r0 = _mm256_loadu_pd(s), r1 = _mm256_loadu_pd(s + n), r2 = _mm256_loadu_pd(s + 2 * n),
                r3 = _mm256_loadu_pd(s + 3 * n);
  const __m256d a0 = _mm256_unpacklo_pd(r0, r1), a1 = _mm256_unpackhi_pd(r0, r1),
                a2 = _mm256_unpacklo_pd(r2, r3), a3 = _mm256_unpackhi_pd(r2, r3);
  _mm256_storeu_pd(t, _mm256_permute2f128_pd(a0, a2, 0x20));
  _mm256_storeu_pd(t + m, _mm256_permute2f128_pd(a1, a3, 0x20));
  _mm256_storeu_pd(t + 2 * m, _mm256_permute2f128_pd(a0, a2, 0x31));
  _mm256_storeu_pd(t + 3 * m, _mm256_permute2f128_pd(a1, a3, 0x31));
}

template <class T>
void TransposeSlow(const T* source, int64_t source_row, int64_t rows, int64_t columns, T* target,
                   int64_t target_row) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) target[c * target_row + r] = source[r * source_row + c];
  }
}

/// One panel: `valid` of its columns exist.
template <class T>
void PackPanel(const T* b, int64_t row, int64_t column, int64_t k, int64_t valid, T* out) {
  constexpr int kWidth = kPanelWidth<T>;
  if (valid < kWidth) std::memset(out, 0, static_cast<size_t>(k) * kWidth * sizeof(T));
  if (column == 1 && valid == kWidth) {
    for (int64_t p = 0; p < k; ++p) std::memcpy(out + p * kWidth, b + p * row, kWidth * sizeof(T));
  } else if (row == 1) {
    Transpose(b, column, valid, k, out, kWidth);
  } else {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t c = 0; c < valid; ++c) out[p * kWidth + c] = b[p * row + c * column];
    }
  }
}

}  // namespace

template <class T>
void Transpose(const T* source, int64_t source_row, int64_t rows, int64_t columns, T* target,
               int64_t target_row) {
  constexpr int kStep = kBlock<T>;
  const int64_t full_rows = rows / kStep * kStep, full_columns = columns / kStep * kStep;
  for (int64_t r = 0; r < full_rows; r += kStep) {
    for (int64_t c = 0; c < full_columns; c += kStep) {
      TransposeBlock(source + r * source_row + c, source_row, target + c * target_row + r, target_row);
    }
  }
  TransposeSlow(source + full_columns, source_row, full_rows, columns - full_columns,
                target + full_columns * target_row, target_row);
  TransposeSlow(source + full_rows * source_row, source_row, rows - full_rows, columns, target + full_rows,
                target_row);
}

template <class T>
void PackRows(const T* a, int64_t row, int64_t column, int64_t rows, int64_t k, T* out, int64_t out_row) {
  if (column == 1) {
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(out + i * out_row, a + i * row, static_cast<size_t>(k) * sizeof(T));
  } else if (row == 1) {
    Transpose(a, column, k, rows, out, out_row);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t p = 0; p < k; ++p) out[i * out_row + p] = a[i * row + p * column];
    }
  }
}

template <class T>
void PackPanels(const T* b, int64_t row, int64_t column, int64_t k, int64_t columns, int64_t panels, T* out) {
  constexpr int kWidth = kPanelWidth<T>;
  for (int64_t j = 0; j < panels; ++j) {
    PackPanel(b + j * kWidth * column, row, column, k, std::clamp<int64_t>(columns - j * kWidth, 0, kWidth),
              out + j * k * kWidth);
  }
}

template void Transpose(const float*, int64_t, int64_t, int64_t, float*, int64_t);
template void Transpose(const double*, int64_t, int64_t, int64_t, double*, int64_t);
template void PackRows(const float*, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
template void PackRows(const double*, int64_t, int64_t, int64_t, int64_t, double*, int64_t);
template void PackPanels(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
template void PackPanels(const double*, int64_t, int64_t, int64_t, int64_t, int64_t, double*);

}  // namespace sinter::kernels
