#include "benchmarks/fma_peak.h"

#include <immintrin.h>

namespace sinter::benchmarks {

#define SINTER_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

int64_t FmaRoundsV3(int64_t rounds) {
  const __m256 scale = _mm256_set1_ps(0.999f), shift = _mm256_set1_ps(0.5f);
#define SINTER_DEFINE(i) __m256 x##i = _mm256_set1_ps(i);
#define SINTER_STEP(i)                        \
  x##i = _mm256_fmadd_ps(x##i, scale, shift); \
  asm volatile("" : "+x"(x##i));
  SINTER_CHAINS(SINTER_DEFINE)
  for (int64_t r = 0; r < rounds; ++r) {
    SINTER_CHAINS(SINTER_STEP)
  }
#undef SINTER_DEFINE
#undef SINTER_STEP
  return rounds * 12 * 8 * 2;
}

__attribute__((target("avx512f"))) int64_t FmaRoundsV4(int64_t rounds) {
  const __m512 scale = _mm512_set1_ps(0.999f), shift = _mm512_set1_ps(0.5f);
#define SINTER_DEFINE(i) __m512 x##i = _mm512_set1_ps(i);
#define SINTER_STEP(i)                        \
  x##i = _mm512_fmadd_ps(x##i, scale, shift); \
  asm volatile("" : "+v"(x##i));
  SINTER_CHAINS(SINTER_DEFINE)
  for (int64_t r = 0; r < rounds; ++r) {
    SINTER_CHAINS(SINTER_STEP)
  }
#undef SINTER_DEFINE
#undef SINTER_STEP
  return rounds * 12 * 16 * 2;
}

#undef SINTER_CHAINS

}  // namespace sinter::benchmarks
