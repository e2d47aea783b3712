#include <limits>
#include <algorithm>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "interpret_lanes.h"
#include "sinter/codegen/interpret_ops.h"
#include "sinter/graph/error.h"
#include "sinter/runtime/half.h"

// Conversions by lane, and what goes between slots and memory.
namespace sinter::codegen {
namespace {

template <class F>
void VisitStorage(DType t, F f) {
  switch (ItemSize(t)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// Truncates and saturates, NaN gives 0; without branches.
template <class I, class F>
I ToInteger(F x) {
  constexpr F kLimit = sizeof(I) == 4 ? F(0x1p31) : F(0x1p63);
  constexpr I kMost = sizeof(I) == 4 ? static_cast<I>(INT32_MAX) : static_cast<I>(INT64_MAX);
  F inside = x < -kLimit ? -kLimit : x;
  inside = x < kLimit ? inside : F(0);  // also for NaN
  I r = static_cast<I>(inside);
  return x >= kLimit ? kMost : r;
}

template <class To, class From>
To ConvertOne(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8)
      return ToInteger<int64_t>(x);
    else
      return static_cast<To>(std::clamp<int32_t>(ToInteger<int32_t>(x), std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    return static_cast<To>(x);
  }
}

// f64 to a half in one rounding: odd rounding to f32 first keeps what decides the second rounding.
float RoundToOdd(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || x != x) return f;
  const bool away = std::abs(static_cast<double>(f)) > std::abs(x);
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (away) --bits;
  return std::bit_cast<float>(bits | 1);
}

template <class From>
float ToFloat(From x) {
  if constexpr (std::is_same_v<From, double>)
    return RoundToOdd(x);
  else
    return static_cast<float>(x);
}

void HalvesToFloats(const void* a, const void*, const void*, void* out, int n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  float* r = static_cast<float*>(out);
  for (int i = 0; i < n; i += 8)
    _mm256_storeu_ps(r + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
}

void FloatsToHalves(const void* a, const void*, const void*, void* out, int n) {
  const float* x = static_cast<const float*>(a);
  uint16_t* r = static_cast<uint16_t*>(out);
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(CanonicalNan(kFloat32))));
  for (int i = 0; i < n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    const __m256 clean = _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(r + i), _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT));
  }
}

void BFloatsToFloats(const void* a, const void*, const void*, void* out, int n) {
  Map1<uint16_t, uint32_t, [](uint16_t x) { return static_cast<uint32_t>(x) << 16; }>(a, nullptr, nullptr,
                                                                                      out, n);
}

template <class From>
LaneFn ConversionFrom(DType to) {
  using F = From;
  switch (to) {
    case DType::kFloat32:
      return Map1<F, float, [](F x) { return ConvertOne<float>(x); }>;
    case DType::kFloat64:
      return Map1<F, double, [](F x) { return ConvertOne<double>(x); }>;
    case DType::kFloat16:
      if constexpr (std::is_same_v<F, float>)
        return FloatsToHalves;
      else
        return Map1<F, uint16_t, [](F x) { return FloatToHalf(ToFloat(x)); }>;
    case DType::kBFloat16:
      return Map1<F, uint16_t, [](F x) { return FloatToBFloat16(ToFloat(x)); }>;
    case DType::kInt8:
      return Map1<F, int8_t, [](F x) { return ConvertOne<int8_t>(x); }>;
    case DType::kUInt8:
      return Map1<F, uint8_t, [](F x) { return ConvertOne<uint8_t>(x); }>;
    case DType::kInt32:
      return Map1<F, int32_t, [](F x) { return ConvertOne<int32_t>(x); }>;
    case DType::kInt64:
      return Map1<F, int64_t, [](F x) { return ConvertOne<int64_t>(x); }>;
    case DType::kBool:
      return Map1<F, uint8_t, [](F x) { return static_cast<uint8_t>(x != 0); }>;
  }
  return nullptr;
}

// From a half type: to f32, and on from there.
template <DType From, DType To>
void ByFloat(const void* a, const void*, const void*, void* out, int n) {
  float wide[kLanes];
  (From == kFloat16 ? HalvesToFloats : BFloatsToFloats)(a, nullptr, nullptr, wide, n);
  static const LaneFn rest = ConversionFrom<float>(To);
  rest(wide, nullptr, nullptr, out, n);
}

template <DType From>
LaneFn ConversionFromHalf(DType to) {
  switch (to) {
    case DType::kFloat32:
      return From == kFloat16 ? HalvesToFloats : BFloatsToFloats;
    case DType::kFloat64:
      return ByFloat<From, kFloat64>;
    case DType::kFloat16:
      return ByFloat<From, kFloat16>;
    case DType::kBFloat16:
      return ByFloat<From, kBFloat16>;
    case DType::kInt8:
      return ByFloat<From, kInt8>;
    case DType::kUInt8:
      return ByFloat<From, kUInt8>;
    case DType::kInt32:
      return ByFloat<From, kInt32>;
    case DType::kInt64:
      return ByFloat<From, kInt64>;
    case DType::kBool:
      return ByFloat<From, kBool>;
  }
  return nullptr;
}

template <class F>
F WithoutNan(F x) {
  using U = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  constexpr DType t = sizeof(F) == 4 ? kFloat32 : kFloat64;
  return x != x ? std::bit_cast<F>(static_cast<U>(CanonicalNan(t))) : x;
}

// Calls f with a value of the type that is stored and the function applied to it on the way.
template <class F>
void VisitStores(DType t, F f) {
  if (t == kFloat32) return f(float{}, [](float x) { return WithoutNan(x); });
  if (t == kFloat64) return f(double{}, [](double x) { return WithoutNan(x); });
  VisitStorage(t, [&]<class T>(T zero) { f(zero, [](T x) { return x; }); });
}

}  // namespace

LaneFn LaneConversion(DType from, DType to) {
  switch (from) {
    case DType::kFloat32:
      return ConversionFrom<float>(to);
    case DType::kFloat64:
      return ConversionFrom<double>(to);
    case DType::kFloat16:
      return ConversionFromHalf<kFloat16>(to);
    case DType::kBFloat16:
      return ConversionFromHalf<kBFloat16>(to);
    case DType::kInt8:
      return ConversionFrom<int8_t>(to);
    case DType::kUInt8:
      return ConversionFrom<uint8_t>(to);
    case DType::kInt32:
      return ConversionFrom<int32_t>(to);
    case DType::kInt64:
      return ConversionFrom<int64_t>(to);
    case DType::kBool:
      return ConversionFrom<uint8_t>(to);
  }
  return nullptr;
}

void LaneFill(DType t, uint64_t bits, void* out, int n) {
  VisitStorage(t, [&]<class T>(T) {
    T* r = static_cast<T*>(out);
    const T v = static_cast<T>(bits);
    for (int i = 0; i < n; ++i) r[i] = v;
  });
}

void LaneLoad(DType t, const void* from, int64_t stride, void* out, int n) {
  VisitStorage(t, [&]<class T>(T) {
    const T* x = static_cast<const T*>(from);
    T* r = static_cast<T*>(out);
    if (stride == 1) {
      std::memcpy(r, x, sizeof(T) * static_cast<size_t>(n));
    } else if (stride == 0) {
      const T v = *x;
      for (int i = 0; i < n; ++i) r[i] = v;
    } else {
      for (int i = 0; i < n; ++i) r[i] = x[i * stride];
    }
  });
}

void LaneLoadIf(DType t, const void* from, int64_t stride, const uint8_t* predicate, void* out, int n) {
  VisitStorage(t, [&]<class T>(T) {
    const T* x = static_cast<const T*>(from);
    T* r = static_cast<T*>(out);
    for (int i = 0; i < n; ++i) r[i] = predicate[i] ? x[i * stride] : T{0};
  });
}

void LaneGather(DType t, const void* from, const int64_t* offset, const uint8_t* predicate, void* out,
                int n) {
  VisitStorage(t, [&]<class T>(T) {
    const T* x = static_cast<const T*>(from);
    T* r = static_cast<T*>(out);
    if (predicate != nullptr) {
      for (int i = 0; i < n; ++i) r[i] = predicate[i] ? x[offset[i]] : T{0};
    } else {
      for (int i = 0; i < n; ++i) r[i] = x[offset[i]];
    }
  });
}

void LaneStore(DType t, void* to, int64_t stride, const void* value, int n) {
  VisitStores(t, [&]<class T, class Clean>(T, Clean clean) {
    T* x = static_cast<T*>(to);
    const T* v = static_cast<const T*>(value);
    if (stride == 1) {
#pragma GCC ivdep
      for (int i = 0; i < n; ++i) x[i] = clean(v[i]);
    } else {
      for (int i = 0; i < n; ++i) x[i * stride] = clean(v[i]);
    }
  });
}

void LaneScatter(DType t, void* to, const int64_t* offset, const void* value, int n) {
  VisitStores(t, [&]<class T, class Clean>(T, Clean clean) {
    T* x = static_cast<T*>(to);
    const T* v = static_cast<const T*>(value);
    for (int i = 0; i < n; ++i) x[offset[i]] = clean(v[i]);
  });
}

}  // namespace sinter::codegen
