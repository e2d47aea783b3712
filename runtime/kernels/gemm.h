#pragma once

#include <cstdint>

#include "sinter/runtime/kernels/contraction.h"

namespace sinter::kernels {

/// c[m, n] = a[m, k] * b[k, n], T = float or double, by the canonical contraction (graph/numerics.h): the
/// bits of a result depend on its row of a and its column of b alone. Strides are in elements, may be 0 or
/// negative, and c has unit column stride. c must not overlap a or b. Sizes of 0 are allowed (k = 0 gives
/// zeros).
template <class T>
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_column = 1;
  const T* b = nullptr;
  int64_t b_row = 0, b_column = 1;
  const T* packed_b = nullptr;  ///< from PackGemmB; b and its strides are then not read
  T* c = nullptr;
  int64_t c_row = 0;
  ContractionEpilogue epilogue;
};

/// Uses the pool's threads where the work is large enough; inside a parallel task it runs inline (so loop
/// over a batch with ParallelFor). Scratch comes from AllocateMemory.
template <class T>
void Gemm(const GemmArgs<T>& args);

/// Elements of the packed form of b[k, n].
template <class T>
int64_t PackedGemmBElements(int64_t k, int64_t n) {
  return PackedElements<T>(k, n);
}

/// Packs b[k, n] into `out` (PackedGemmBElements elements, aligned to 64 bytes for speed). The form is the
/// same on every instruction set.
template <class T>
void PackGemmB(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t n, T* out);

}  // namespace sinter::kernels
