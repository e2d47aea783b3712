#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

namespace sinter {

/// Conversions between f32 and the bits of f16 (IEEE binary16) and bf16 (the upper half of an f32). To half:
/// round to nearest even, overflow to infinity, subnormals kept, and every NaN becomes the one canonical
/// quiet NaN (0x7e00, 0x7fc0). From half: exact, except that a signalling f16 NaN becomes quiet.

inline constexpr uint16_t kHalfNan = 0x7e00;
inline constexpr uint16_t kBFloat16Nan = 0x7fc0;

inline float HalfToFloat(uint16_t bits) { return _cvtsh_ss(bits); }

inline uint16_t FloatToHalf(float value) {
  return value == value ? static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)) : kHalfNan;
}

inline float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t FloatToBFloat16(float value) {
  if (value != value) return kBFloat16Nan;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace sinter
