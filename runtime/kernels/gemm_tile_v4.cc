// Register tiles for AVX-512: a panel is one register; twelve rows by two panels take 24 of the 32. This file
// alone is compiled for AVX-512, and runs only where the CPU has it: it must not instantiate an inline
// function of a header that other files share.
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
  __m512 v;
  static Vec Zero() { return {_mm512_setzero_ps()}; }
  static Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec Broadcast(const float* p) { return {_mm512_set1_ps(*p)}; }
  static Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec Add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  static void Store(float* p, Vec v) { _mm512_storeu_ps(p, v.v); }
  static void StorePartial(float* p, Vec v, int count, bool add) {
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    if (add) v.v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, p), v.v);
    _mm512_mask_storeu_ps(p, mask, v.v);
  }
};

template <>
struct Vec<double> {
  __m512d v;
  static Vec Zero() { return {_mm512_setzero_pd()}; }
  static Vec Load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static Vec Broadcast(const double* p) { return {_mm512_set1_pd(*p)}; }
  static Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  static Vec Add(Vec a, Vec b) { return {_mm512_add_pd(a.v, b.v)}; }
  static void Store(double* p, Vec v) { _mm512_storeu_pd(p, v.v); }
  static void StorePartial(double* p, Vec v, int count, bool add) {
    const auto mask = static_cast<__mmask8>((1u << count) - 1);
    if (add) v.v = _mm512_add_pd(_mm512_maskz_loadu_pd(mask, p), v.v);
    _mm512_mask_storeu_pd(p, mask, v.v);
  }
};

#include "sinter/runtime/kernels/gemm_tile_impl.inc"

template <class T>
constexpr TileSet<T> MakeTiles() {
  return {12,
          {{},
           {Tile<T, 1, 1>, Tile<T, 1, 2>, Tile<T, 1, 4>, Tile<T, 1, 8>},
           {Tile<T, 2, 1>, Tile<T, 2, 2>, Tile<T, 2, 4>},
           {Tile<T, 3, 1>, Tile<T, 3, 2>, Tile<T, 3, 4>},
           {Tile<T, 4, 1>, Tile<T, 4, 2>, Tile<T, 4, 4>},
           {Tile<T, 5, 1>, Tile<T, 5, 2>},
           {Tile<T, 6, 1>, Tile<T, 6, 2>},
           {Tile<T, 7, 1>, Tile<T, 7, 2>},
           {Tile<T, 8, 1>, Tile<T, 8, 2>},
           {Tile<T, 9, 1>, Tile<T, 9, 2>},
           {Tile<T, 10, 1>, Tile<T, 10, 2>},
           {Tile<T, 11, 1>, Tile<T, 11, 2>},
           {Tile<T, 12, 1>, Tile<T, 12, 2>}}};
}

}  // namespace

extern const TileSet<float> kTilesV4F32 = MakeTiles<float>();
extern const TileSet<double> kTilesV4F64 = MakeTiles<double>();

}  // namespace sinter::kernels
