// Register tiles for AVX2 with FMA: a panel is two registers; six rows by one panel take 12 of the 16.
#include <immintrin.h>

#include <type_traits>
#include <utility>

#include "sinter/runtime/kernels/gemm_tile.h"

namespace sinter::kernels {
namespace {

template <class T>
struct Vec;

template <>
struct Vec<float> {
  __m256 lo, hi;
  static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vec Broadcast(const float* p) {
    const __m256 x = _mm256_broadcast_ss(p);
    return {x, x};
  }
  static Vec Fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  static Vec Add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static void Store(float* p, Vec v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
  }
  static void StorePartial(float* p, Vec v, int count, bool add) {
    alignas(32) float values[16];
    Store(values, v);
    for (int i = 0; i < count; ++i) p[i] = add ? p[i] + values[i] : values[i];
  }
};

template <>
struct Vec<double> {
  __m256d lo, hi;
  static Vec Zero() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  static Vec Load(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
  static Vec Broadcast(const double* p) {
    const __m256d x = _mm256_broadcast_sd(p);
    return {x, x};
  }
  static Vec Fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
  }
  static Vec Add(Vec a, Vec b) { return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
  static void Store(double* p, Vec v) {
    _mm256_storeu_pd(p, v.lo);
    _mm256_storeu_pd(p + 4, v.hi);
  }
  static void StorePartial(double* p, Vec v, int count, bool add) {
    alignas(32) double values[8];
    Store(values, v);
    for (int i = 0; i < count; ++i) p[i] = add ? p[i] + values[i] : values[i];
  }
};

#include "sinter/runtime/kernels/gemm_tile_impl.inc"

template <class T>
constexpr TileSet<T> MakeTiles() {
  return {6,
          {{},
           {Tile<T, 1, 1>, Tile<T, 1, 2>, Tile<T, 1, 4>},
           {Tile<T, 2, 1>, Tile<T, 2, 2>},
           {Tile<T, 3, 1>, Tile<T, 3, 2>},
           {Tile<T, 4, 1>},
           {Tile<T, 5, 1>},
           {Tile<T, 6, 1>}}};
}

}  // namespace

extern const TileSet<float> kTilesV3F32 = MakeTiles<float>();
extern const TileSet<double> kTilesV3F64 = MakeTiles<double>();

}  // namespace sinter::kernels
