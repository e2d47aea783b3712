#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sinter/graph/numerics.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::testing_util {

/// The levels this machine has.
inline std::vector<IsaLevel> IsaLevels() {
  std::vector<IsaLevel> levels{IsaLevel::kV3};
  if (GetCpuInfo().isa == IsaLevel::kV4) levels.push_back(IsaLevel::kV4);
  return levels;
}

/// Runs `body` at every ISA level with 1 and 2 threads, with a trace of which.
template <class Body>
void OnEveryMachine(Body body) {
  for (IsaLevel level : IsaLevels()) {
    for (int threads : {1, 2}) {
      SCOPED_TRACE(std::string(IsaLevelName(level)) + ", threads " + std::to_string(threads));
      SetIsaOverride(level);
      SetNumThreads(threads);
      body();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  SetIsaOverride(std::nullopt);
}

/// Values of mixed magnitude and sign, so that every change in the order of arithmetic changes bits.
template <class T>
std::vector<T> RandomValues(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const auto fraction = static_cast<T>(generator()) / static_cast<T>(4294967296.0) - T(0.5);
    value = std::ldexp(fraction, static_cast<int>(generator() % 9) - 4);
  }
  return values;
}

/// The canonical chain, as graph/numerics.h states it: `term(k, a, b)` gives the factors of value k.
template <class T, class Term>
T CanonicalSum(int64_t k_count, Term term) {
  T total = 0;
  for (int64_t k0 = 0; k0 < k_count; k0 += kContractionBlock) {
    T sum = 0;
    for (int64_t k = k0; k < std::min<int64_t>(k0 + kContractionBlock, k_count); ++k) {
      T a = 0, b = 0;
      term(k, a, b);
      sum = std::fma(a, b, sum);
    }
    total = k0 == 0 ? sum : total + sum;
  }
  return total;
}

template <class T>
void ExpectSameBits(const std::vector<T>& actual, const std::vector<T>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0)
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

}  // namespace sinter::testing_util
