// Values at the edges of functions, where samples of a range don't go.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sinter/eager/creation.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/rounding.h"
#include "sinter/graph/ops/special.h"
#include "sinter/graph/ops/trigonometric.h"

namespace sinter {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Tensor F(std::vector<float> v) { return from_vector(v); }
Tensor D(std::vector<double> v) { return from_vector(v); }

// Also the sign of zeros; NaN equals NaN.
void ExpectValues(const Tensor& t, const std::vector<double>& want) {
  const std::vector<double> got = t.ToVector<double>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << i;
    } else {
      EXPECT_NEAR(got[i], want[i], 1e-6 * std::fmax(1, std::fabs(want[i]))) << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << i;
    }
  }
}

TEST(Math, LargeAnglesAreReducedExactly) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (int k = 1; k < 400; ++k) {
    floats.push_back(std::ldexp(1.0f + static_cast<float>(k) / 401, k % 28));
    floats.push_back(static_cast<float>(k * 1.5707963267948966));  // near the zeros
    doubles.push_back(std::ldexp(1.0 + k / 401.0, k % 20));
    doubles.push_back(k * 1.5707963267948966);
  }
  const Tensor f = F(floats), d = D(doubles);
  auto ulps = [](double got, double want, double eps) { return std::fabs(got - want) / std::fmax(std::fabs(want) * eps, 1e-300); };
  const auto fs = sin(f).ToVector<double>(), fc = cos(f).ToVector<double>(), ds = sin(d).ToVector<double>(), dc = cos(d).ToVector<double>();
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_LE(ulps(fs[i], std::sin(static_cast<double>(floats[i])), 0x1p-23), 2) << floats[i];
    EXPECT_LE(ulps(fc[i], std::cos(static_cast<double>(floats[i])), 0x1p-23), 2) << floats[i];
  }
  for (size_t i = 0; i < doubles.size(); ++i) {
    EXPECT_LE(ulps(ds[i], std::sin(doubles[i]), 0x1p-52), 2) << doubles[i];
    EXPECT_LE(ulps(dc[i], std::cos(doubles[i]), 0x1p-52), 2) << doubles[i];
  }
  ExpectValues(sin(F({1e20f, -0.0f, static_cast<float>(kInf)})), {kNan, -0.0, kNan});
}

TEST(Math, InverseAndHyperbolicEdges) {
  const float inf = static_cast<float>(kInf);
  ExpectValues(atan(F({inf, -inf, -0.0f, 1e30f})), {M_PI / 2, -M_PI / 2, -0.0, M_PI / 2});
  ExpectValues(asin(F({1, -1, 1.5f, -0.0f})), {M_PI / 2, -M_PI / 2, kNan, -0.0});
  ExpectValues(acos(F({1, -1, 0, 2})), {0, M_PI, M_PI / 2, kNan});
  ExpectValues(atan2(F({0, -0.0f, 0, -0.0f, inf, inf, -inf, 1, 0}), F({1, 1, -1, -1, inf, -inf, 1, 0, 0})),
               {0, -0.0, M_PI, -M_PI, M_PI / 4, 3 * M_PI / 4, -M_PI / 2, M_PI / 2, 0});
  ExpectValues(sinh(F({-0.0f, 89.0f, -inf})), {-0.0, std::sinh(89.0), -kInf});
  ExpectValues(cosh(F({0, 89.0f, inf})), {1, std::cosh(89.0), kInf});
  ExpectValues(asinh(F({-0.0f, 1e30f, -inf})), {-0.0, std::asinh(1e30), -kInf});
  ExpectValues(acosh(F({1, 0.5f, 1e30f})), {0, kNan, std::acosh(1e30)});
  ExpectValues(atanh(F({1, -1, 2, -0.0f})), {kInf, -kInf, kNan, -0.0});
}

TEST(Math, SpecialEdges) {
  const float inf = static_cast<float>(kInf);
  ExpectValues(erf(F({inf, -inf, -0.0f, 1, static_cast<float>(kNan)})), {1, -1, -0.0, std::erf(1.0), kNan});
  ExpectValues(erfc(F({inf, -inf, 0, 3})), {0, 2, 1, std::erfc(3.0)});
  for (double x : {9.0, 20.0, 26.0}) {
    const double got = erfc(D({x})).ToVector<double>()[0];
    EXPECT_NEAR(got / std::erfc(x), 1, 1e-13) << x;
  }
  ExpectValues(exp2(F({127, -126, 200, -200, inf, -inf, 3})), {std::exp2(127.0), std::exp2(-126.0), kInf, 0, kInf, 0, 8});
  ExpectValues(logaddexp(F({inf, -inf, -inf, 0}), F({inf, -inf, 1, 0})), {kInf, -kInf, 1, std::log(2.0)});
}

TEST(Math, QuotientsAsPythonHasThem) {
  const Tensor a = from_vector(std::vector<int64_t>{7, -7, 7, -7, 5, INT64_MIN}), b = from_vector(std::vector<int64_t>{3, 3, -3, -3, 0, -1});
  EXPECT_EQ(floor_divide(a, b).ToVector<int64_t>(), (std::vector<int64_t>{2, -3, -3, 2, 0, INT64_MIN}));
  EXPECT_EQ(remainder(a, b).ToVector<int64_t>(), (std::vector<int64_t>{1, 2, -2, -1, 5, 0}));
  ExpectValues(floor_divide(F({7, -7, 7, -7, 1}), F({3, 3, -3, -3, 0.1f})), {2, -3, -3, 2, 9});
  ExpectValues(remainder(F({7, -7, 7, -7}), F({3, 3, -3, -3})), {1, 2, -2, -1});
}

TEST(Math, LimitsSignsAndBits) {
  const float inf = static_cast<float>(kInf);
  ExpectValues(clamp(F({-5, 0, 5, static_cast<float>(kNan), inf}), {.min = -1, .max = 2}), {-1, 0, 2, kNan, 2});
  EXPECT_EQ(clamp(from_vector(std::vector<int64_t>{-5, 0, 5}), {.min = -1}).ToVector<int64_t>(), (std::vector<int64_t>{-1, 0, 5}));
  ExpectValues(sign(F({-3, 0, 2, static_cast<float>(kNan)})), {-1, 0, 1, kNan});
  ExpectValues(round(F({0.5f, 1.5f, 2.5f, -0.5f})), {0, 2, 2, -0.0});
  EXPECT_EQ(isinf(F({inf, 1, static_cast<float>(kNan)})).ToVector<int64_t>(), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(isfinite(F({inf, 1, static_cast<float>(kNan)})).ToVector<int64_t>(), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(bitwise_xor(tensor({5, 1}), tensor({3, 1})).ToVector<int64_t>(), (std::vector<int64_t>{6, 0}));
  EXPECT_THROW(bitwise_and(F({1}), F({1})), Error);
}

}  // namespace
}  // namespace sinter
