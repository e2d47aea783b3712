#include "sinter/runtime/kernels/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <limits>
#include <tuple>
#include <vector>

#include "sinter/runtime/memory.h"
#include "tests/runtime/contraction_test_util.h"

namespace sinter::kernels {
namespace {

using testing_util::CanonicalSum;
using testing_util::ExpectSameBits;
using testing_util::OnEveryMachine;
using testing_util::RandomValues;

/// How an operand lies in memory.
enum class Layout { kRows, kColumns, kSpread };

struct Strides {
  int64_t row, column, elements;
};

Strides StridesOf(Layout layout, int64_t rows, int64_t columns) {
  switch (layout) {
    case Layout::kRows:
      return {columns + 3, 1, rows * (columns + 3)};
    case Layout::kColumns:
      return {1, rows + 5, columns * (rows + 5)};
    case Layout::kSpread:
      return {2 * columns, 2, rows * 2 * columns};
  }
  return {};
}

template <class T>
struct Problem {
  int64_t m, n, k;
  Strides sa, sb;
  std::vector<T> a, b, expected;
  int64_t c_row;

  Problem(int64_t m, int64_t n, int64_t k, Layout la, Layout lb)
      : m(m), n(n), k(k), sa(StridesOf(la, m, k)), sb(StridesOf(lb, k, n)), c_row(n + 7) {
    a = RandomValues<T>(sa.elements + 1, 1);
    b = RandomValues<T>(sb.elements + 1, 2);
    expected.assign(m * c_row, T(-77));  // The gaps between rows must stay as they are.
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        expected[i * c_row + j] = CanonicalSum<T>(k, [&](int64_t p, T& x, T& y) {
          x = a[i * sa.row + p * sa.column];
          y = b[p * sb.row + j * sb.column];
        });
      }
    }
  }

  GemmArgs<T> Args(std::vector<T>& c) const {
    c.assign(m * c_row, T(-77));
    GemmArgs<T> args;
    args.m = m, args.n = n, args.k = k;
    args.a = a.data(), args.a_row = sa.row, args.a_column = sa.column;
    args.b = b.data(), args.b_row = sb.row, args.b_column = sb.column;
    args.c = c.data(), args.c_row = c_row;
    return args;
  }
};

template <class T>
void CheckAllForms(int64_t m, int64_t n, int64_t k, Layout la, Layout lb) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", layouts " << int(la) << int(lb));
  const Problem<T> problem(m, n, k, la, lb);
  std::vector<T> c;
  OnEveryMachine([&] {
    Gemm(problem.Args(c));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, problem.expected));
    MemoryBlock packed(PackedGemmBElements<T>(k, n) * sizeof(T));
    PackGemmB(problem.b.data(), problem.sb.row, problem.sb.column, k, n, packed.as<T>());
    GemmArgs<T> args = problem.Args(c);
    args.packed_b = packed.as<T>();
    args.b = nullptr;
    Gemm(args);
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, problem.expected));
  });
}

template <class T>
class GemmTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, EveryNumberOfRows) {
  for (int64_t m = 1; m <= 27; ++m) CheckAllForms<TypeParam>(m, 37, 19, Layout::kRows, Layout::kRows);
}

TYPED_TEST(GemmTest, EveryNumberOfColumns) {
  for (int64_t n = 1; n <= 70; ++n) {
    CheckAllForms<TypeParam>(5, n, 7, Layout::kRows, Layout::kRows);
    CheckAllForms<TypeParam>(1, n, 7, Layout::kRows, Layout::kColumns);
  }
  for (int64_t n : {127, 128, 129, 255, 257, 530, 1100}) {
    CheckAllForms<TypeParam>(1, n, 11, Layout::kRows, Layout::kRows);
    CheckAllForms<TypeParam>(30, n, 11, Layout::kRows, Layout::kRows);
  }
}

TYPED_TEST(GemmTest, EveryLayout) {
  for (Layout la : {Layout::kRows, Layout::kColumns, Layout::kSpread}) {
    for (Layout lb : {Layout::kRows, Layout::kColumns, Layout::kSpread}) {
      for (auto [m, n, k] :
           {std::array{1, 17, 300}, {2, 40, 33}, {13, 29, 261}, {50, 35, 67}, {130, 66, 520}}) {
        CheckAllForms<TypeParam>(m, n, k, la, lb);
      }
    }
  }
}

TYPED_TEST(GemmTest, BlocksOfTheContractedIndex) {
  for (int64_t k : {1, 2, 255, 256, 257, 511, 512, 513, 1025}) {
    CheckAllForms<TypeParam>(7, 33, k, Layout::kRows, Layout::kRows);
    CheckAllForms<TypeParam>(1, 33, k, Layout::kRows, Layout::kRows);
  }
  CheckAllForms<TypeParam>(100, 20, 5000, Layout::kRows, Layout::kRows);
  CheckAllForms<TypeParam>(32, 32, 1024, Layout::kRows, Layout::kRows);
}

TYPED_TEST(GemmTest, LargeEnoughForManyTasks) {
  CheckAllForms<TypeParam>(257, 301, 300, Layout::kRows, Layout::kRows);
  CheckAllForms<TypeParam>(97, 700, 515, Layout::kColumns, Layout::kColumns);
  CheckAllForms<TypeParam>(1, 3000, 700, Layout::kRows, Layout::kRows);
  CheckAllForms<TypeParam>(2000, 8, 300, Layout::kRows, Layout::kRows);
  CheckAllForms<TypeParam>(100, 700, 4200, Layout::kRows, Layout::kColumns);
}

TYPED_TEST(GemmTest, EmptySizes) {
  for (auto [m, n, k] : {std::array{0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}}) {
    CheckAllForms<TypeParam>(m, n, k, Layout::kRows, Layout::kRows);
  }
}

TYPED_TEST(GemmTest, BroadcastOperand) {  // Stride 0: every row of a is the same.
  using T = TypeParam;
  const auto a = RandomValues<T>(300, 1), b = RandomValues<T>(300 * 20, 2);
  std::vector<T> expected(15 * 20), c(15 * 20);
  for (int i = 0; i < 15; ++i) {
    for (int j = 0; j < 20; ++j) {
      expected[i * 20 + j] = CanonicalSum<T>(300, [&](int64_t p, T& x, T& y) {
        x = a[p];
        y = b[p * 20 + j];
      });
    }
  }
  GemmArgs<T> args;
  args.m = 15, args.n = 20, args.k = 300;
  args.a = a.data(), args.b = b.data(), args.b_row = 20, args.c = c.data(), args.c_row = 20;
  Gemm(args);
  ExpectSameBits(c, expected);
}

TYPED_TEST(GemmTest, EpilogueSeesEachFinalElementOnce) {
  using T = TypeParam;
  for (auto [m, n, k] : {std::array{1, 1, 1}, {13, 35, 300}, {200, 1100, 600}, {3, 4, 0}, {1, 3000, 300}}) {
    const Problem<T> problem(m, n, k, Layout::kRows, Layout::kRows);
    OnEveryMachine([&] {
      std::vector<T> c;
      GemmArgs<T> args = problem.Args(c);
      struct Context {
        std::vector<T>* c;
        const Problem<T>* problem;
        std::vector<std::atomic<int>> seen;
        std::atomic<bool> wrong{false};
      } context{&c, &problem, std::vector<std::atomic<int>>(c.size()), {}};
      args.epilogue.context = &context;
      args.epilogue.fn = [](void* opaque, int64_t row0, int64_t rows, int64_t column0, int64_t columns) {
        auto& x = *static_cast<Context*>(opaque);
        for (int64_t i = row0; i < row0 + rows; ++i) {
          for (int64_t j = column0; j < column0 + columns; ++j) {
            const int64_t at = i * x.problem->c_row + j;
            if (j >= x.problem->n || (*x.c)[at] != x.problem->expected[at]) x.wrong = true;
            x.seen[at].fetch_add(1);
            (*x.c)[at] += 1;
          }
        }
      };
      Gemm(args);
      EXPECT_FALSE(context.wrong);
      for (int64_t i = 0; i < problem.m * problem.c_row; ++i) {
        ASSERT_EQ(context.seen[i].load(), i % problem.c_row < problem.n ? 1 : 0);
      }
    });
  }
}

TYPED_TEST(GemmTest, InfinityAndNanStayInTheirRowAndColumn) {
  using T = TypeParam;
  Problem<T> problem(20, 40, 300, Layout::kRows, Layout::kRows);
  problem.a[3 * problem.sa.row + 17] = std::numeric_limits<T>::quiet_NaN();
  problem.b[200 * problem.sb.row + 39] = std::numeric_limits<T>::infinity();
  OnEveryMachine([&] {
    std::vector<T> c;
    Gemm(problem.Args(c));
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < 40; ++j) {
        const T value = c[i * problem.c_row + j];
        if (i == 3) {
          EXPECT_TRUE(std::isnan(value));
        } else if (j == 39) {
          EXPECT_TRUE(std::isinf(value));
        } else {
          EXPECT_EQ(value, problem.expected[i * problem.c_row + j]);
        }
      }
    }
  });
}

TYPED_TEST(GemmTest, SteadyStateServesScratchFromTheCache) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the cache is off under AddressSanitizer";
#endif
  using T = TypeParam;
  SetNumThreads(1);
  const Problem<T> problem(200, 100, 300, Layout::kColumns, Layout::kRows);
  std::vector<T> c;
  const GemmArgs<T> args = problem.Args(c);
  Gemm(args);
  const MemoryStats before = GetMemoryStats();
  Gemm(args);
  const MemoryStats after = GetMemoryStats();
  EXPECT_GT(after.allocations, before.allocations);
  EXPECT_EQ(after.allocations - before.allocations, after.cache_hits - before.cache_hits);
  EXPECT_EQ(after.current_bytes, before.current_bytes);
}

}  // namespace
}  // namespace sinter::kernels
