#include "sinter/runtime/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sinter {
namespace {

double HalfValue(uint16_t bits) {  // From the definition of binary16.
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryHalfConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const double expected = HalfValue(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(FloatToHalf(value), kHalfNan);
    } else {
      ASSERT_EQ(value, expected);
      ASSERT_EQ(FloatToHalf(value), bits);
    }
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7c00; ++bits) {
    const auto low = HalfValue(static_cast<uint16_t>(bits)),
               high = HalfValue(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    const uint16_t even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(FloatToHalf(middle), even);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, -1.0f)), bits);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(65520.0f),
            0x7c00);  // The middle between the largest half and what would be the next.
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(BFloat16Test, EveryValueConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = BFloat16ToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    ASSERT_EQ(FloatToBFloat16(value), std::isnan(value) ? kBFloat16Nan : bits);
  }
}

TEST(BFloat16Test, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    ASSERT_EQ(FloatToBFloat16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(FloatToBFloat16(std::bit_cast<float>(bits << 16 | 0x7fffu)), bits);
    ASSERT_EQ(FloatToBFloat16(std::bit_cast<float>(bits << 16 | 0x8001u)), bits + 1);
  }
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x7fffffffu)), kBFloat16Nan);
}

}  // namespace
}  // namespace sinter
