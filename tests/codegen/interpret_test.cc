#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "sinter/codegen/kernel.h"
#include "sinter/graph/num.h"
#include "sinter/graph/numerics.h"
#include "sinter/runtime/half.h"
#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"

// The interpreter against the semantics as written down: it is the oracle of every other executor.
namespace sinter::codegen::testing {
namespace {

Expr I(int64_t v) { return Expr::ConstInt(kInt64, v); }

// out[i] = body(x[i], ...), on given data.
template <class Out, class In>
std::vector<Out> Map(DType out, std::vector<DType> in, const std::vector<std::vector<In>>& data, const std::function<Expr(std::vector<Expr>)>& body) {
  const int64_t n = static_cast<int64_t>(data[0].size());
  Kernel k;
  k.outer.push_back({FreshIndex(), n});
  const Expr i = Expr::Index(k.outer[0].id);
  std::vector<Expr> loads;
  std::vector<void*> pointers;
  for (size_t b = 0; b < in.size(); ++b) {
    k.buffers.push_back({in[b], {n}, {0}, BufferRole::kInput});
    loads.push_back(Expr::Convert(Expr::Load(static_cast<int>(b), in[b], {i}), ComputeType(in[b])));
    pointers.push_back(const_cast<In*>(data[b].data()));
  }
  k.buffers.push_back({out, {n}, {0}, BufferRole::kOutput});
  std::vector<Out> result(data[0].size());
  pointers.push_back(result.data());
  k.stages.push_back({{}, {{static_cast<int>(in.size()), {i}, Expr::Convert(body(loads), ComputeType(out))}}, VectorAxis::kOuter});
  InterpretKernel(k)->Run(pointers.data(), nullptr, 0, n, nullptr);
  return result;
}

template <class T>
std::vector<T> Binary(DType t, ExprKind kind, const std::vector<T>& a, const std::vector<T>& b) {
  return Map<T, T>(t, {t, t}, {a, b}, [&](std::vector<Expr> x) { return Expr::Binary(kind, x[0], x[1]); });
}

TEST(Interpret, IntegerDivision) {
  const std::vector<int32_t> a = {7, -7, 7, -7, 5, INT32_MIN, -6}, b = {2, 2, -2, -2, 0, -1, 3};
  EXPECT_EQ(Binary(kInt32, ExprKind::kDiv, a, b), (std::vector<int32_t>{3, -3, -3, 3, 0, INT32_MIN, -2}));
  EXPECT_EQ(Binary(kInt32, ExprKind::kRem, a, b), (std::vector<int32_t>{1, -1, 1, -1, 5, 0, 0}));
  EXPECT_EQ(Binary(kInt32, ExprKind::kFloorDiv, a, b), (std::vector<int32_t>{3, -4, -4, 3, 0, INT32_MIN, -2}));
  EXPECT_EQ(Binary(kInt32, ExprKind::kFloorMod, a, b), (std::vector<int32_t>{1, 1, -1, -1, 5, 0, 0}));
}

TEST(Interpret, IntegersWrapAndShiftsAreModuloTheWidth) {
  EXPECT_EQ(Binary<int32_t>(kInt32, ExprKind::kAdd, {INT32_MAX}, {1}), std::vector<int32_t>{INT32_MIN});
  EXPECT_EQ(Binary<int64_t>(kInt64, ExprKind::kMul, {INT64_MIN}, {-1}), std::vector<int64_t>{INT64_MIN});
  EXPECT_EQ(Binary<int32_t>(kInt32, ExprKind::kShl, {3, 3}, {1, 33}), (std::vector<int32_t>{6, 6}));
  EXPECT_EQ(Binary<int32_t>(kInt32, ExprKind::kShr, {-8, -8}, {1, -31}), (std::vector<int32_t>{-4, -4}));
  EXPECT_EQ(Binary<int32_t>(kInt32, ExprKind::kShrLogical, {-8}, {1}), std::vector<int32_t>{0x7ffffffc});
}

TEST(Interpret, MinAndMax) {
  const std::vector<float> a = {0.f, -0.f, 1.f, NAN, 3.f}, b = {-0.f, 0.f, 2.f, 1.f, NAN};
  const auto high = Binary(kFloat32, ExprKind::kMax, a, b), low = Binary(kFloat32, ExprKind::kMin, a, b);
  for (int i : {0, 1}) {
    EXPECT_EQ(high[i], 0);
    EXPECT_FALSE(std::signbit(high[i]));
    EXPECT_TRUE(std::signbit(low[i]));
  }
  EXPECT_EQ(high[2], 2);
  EXPECT_EQ(low[2], 1);
  for (int i : {3, 4}) {
    // What is stored is the canonical NaN, whatever came in.
    EXPECT_EQ(std::bit_cast<uint32_t>(high[i]), CanonicalNan(kFloat32));
    EXPECT_EQ(std::bit_cast<uint32_t>(low[i]), CanonicalNan(kFloat32));
  }
}

TEST(Interpret, ConversionsToIntegersSaturate) {
  const std::vector<float> x = {1.9f, -1.9f, 3e9f, -3e9f, NAN, INFINITY, -INFINITY};
  auto convert = [](DType t) { return [t](std::vector<Expr> v) { return Expr::Convert(v[0], t); }; };
  EXPECT_EQ((Map<int32_t, float>(kInt32, {kFloat32}, {x}, convert(kInt32))), (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN}));
  EXPECT_EQ((Map<int64_t, float>(kInt64, {kFloat32}, {x}, convert(kInt64))),
            (std::vector<int64_t>{1, -1, 3000000000, -3000000000, 0, INT64_MAX, INT64_MIN}));
  EXPECT_EQ((Map<uint8_t, float>(kBool, {kFloat32}, {{0, -0.f, 1e-45f, NAN}}, convert(kBool))), (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(Interpret, DoubleToHalfRoundsOnce) {
  // Just above the middle of two halves: rounding to f32 first would land on the middle, and then go to the even one below.
  const std::vector<double> x = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 1 + 0x1p-11 - 0x1p-40};
  const auto y = Map<uint16_t, double>(kFloat16, {kFloat64}, {x}, [](std::vector<Expr> v) {
    return Expr::Convert(Expr::Convert(v[0], kFloat16), kFloat32);
  });
  EXPECT_EQ(y, (std::vector<uint16_t>{0x3c01, 0x3c00, 0x3c00}));
}

TEST(Interpret, FmaRoundsOnce) {
  const float a = 1 + 0x1p-12f;
  const auto y = Map<float, float>(kFloat32, {kFloat32}, {{a}}, [](std::vector<Expr> v) { return num::Fma(v[0], v[0], Expr::Const(kFloat32, -1)); });
  EXPECT_EQ(y[0], std::fma(a, a, -1.f));
  EXPECT_NE(y[0], a * a - 1.f);
}

// The tree of reductions, written as its definition reads.
float TreeSum(const std::vector<float>& x) {
  if (x.empty()) return 0;
  std::vector<float> stack;
  std::vector<size_t> weights;
  for (size_t block = 0; block * kReduceBlock < x.size(); ++block) {
    float lanes[kReduceLanes];
    std::fill(lanes, lanes + kReduceLanes, -0.f);
    for (size_t i = block * kReduceBlock; i < std::min(x.size(), (block + 1) * kReduceBlock); ++i) lanes[i % kReduceLanes] += x[i];
    for (int half = kReduceLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    stack.push_back(lanes[0]);
    weights.push_back(1);
    while (weights.size() > 1 && weights[weights.size() - 2] == weights.back()) {
      stack[stack.size() - 2] += stack.back();
      weights[weights.size() - 2] += weights.back();
      stack.pop_back();
      weights.pop_back();
    }
  }
  while (stack.size() > 1) {
    stack[stack.size() - 2] += stack.back();
    stack.pop_back();
  }
  return stack[0];
}

float ContractionSum(const std::vector<float>& x, const std::vector<float>& y) {
  float sum = 0;
  for (size_t from = 0; from < x.size(); from += kContractionBlock) {
    float acc = 0;
    for (size_t i = from; i < std::min(x.size(), from + kContractionBlock); ++i) acc = std::fma(x[i], y[i], acc);
    sum = from == 0 ? acc : sum + acc;
  }
  return sum;
}

class InterpretReduction : public ::testing::TestWithParam<int> {};

TEST_P(InterpretReduction, SumsByTheTreeWhateverTheLanes) {
  const int n = GetParam();
  std::mt19937 rng(static_cast<unsigned>(n));
  std::uniform_real_distribution<float> u(-1, 1);
  std::vector<float> x(n), y(n);
  for (float& v : x) v = u(rng);
  for (float& v : y) v = u(rng);
  for (VectorAxis axis : {VectorAxis::kNone, VectorAxis::kReduction}) {
    Kernel k;
    k.buffers = {{kFloat32, {n}, {0}}, {kFloat32, {n}, {0}}, {kFloat32, {}, {}, BufferRole::kOutput}, {kFloat32, {}, {}, BufferRole::kOutput}};
    LoopVar l{FreshIndex(), n};
    const Expr i = Expr::Index(l.id), a = Expr::Load(0, kFloat32, {i}), b = Expr::Load(1, kFloat32, {i});
    k.stages.push_back({{}, {{2, {}, Expr::Reduce(ReduceKind::kSum, {l}, {a})}, {3, {}, Expr::Reduce(ReduceKind::kContract, {l}, {a, b})}}, axis});
    float sum, product;
    void* buffers[] = {x.data(), y.data(), &sum, &product};
    InterpretKernel(k)->Run(buffers, nullptr, 0, 1, nullptr);
    EXPECT_EQ(std::bit_cast<uint32_t>(sum), std::bit_cast<uint32_t>(TreeSum(x)));
    EXPECT_EQ(std::bit_cast<uint32_t>(product), std::bit_cast<uint32_t>(ContractionSum(x, y)));
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, InterpretReduction, ::testing::Values(0, 1, 5, 16, 17, 63, 64, 255, 256, 257, 1000, 1024, 1025, 3000, 5000, 9999));

TEST(Interpret, SumsKeepNegativeZeroAndEmptySumsArePositive) {
  for (int n : {0, 3}) {
    Kernel k;
    k.buffers = {{kFloat32, {n}, {0}}, {kFloat32, {}, {}, BufferRole::kOutput}};
    LoopVar l{FreshIndex(), n};
    k.stages.push_back({{}, {{1, {}, Expr::Reduce(ReduceKind::kSum, {l}, {Expr::Load(0, kFloat32, {Expr::Index(l.id)})})}}, VectorAxis::kNone});
    float x[3] = {-0.f, -0.f, -0.f}, sum = 7;
    void* buffers[] = {x, &sum};
    InterpretKernel(k)->Run(buffers, nullptr, 0, 1, nullptr);
    EXPECT_EQ(sum, 0);
    EXPECT_EQ(std::signbit(sum), n == 3);
  }
}

TEST(Interpret, FalsePredicatesReadNothing) {
  const int64_t n = 5;
  Kernel k;
  k.outer.push_back({FreshIndex(), n});
  const Expr i = Expr::Index(k.outer[0].id), from = i - I(1000000000);
  k.buffers = {{kFloat32, {n}, {0}}, {kFloat32, {n}, {0}, BufferRole::kOutput}};
  k.stages.push_back({{}, {{1, {i}, Expr::LoadIf(0, kFloat32, {from}, from >= I(0))}}, VectorAxis::kOuter});
  std::vector<float> x(n, 3), y(n, 7);
  void* buffers[] = {x.data(), y.data()};
  InterpretKernel(k)->Run(buffers, nullptr, 0, n, nullptr);
  EXPECT_EQ(y, std::vector<float>(n, 0));
}

// Many results at once: lanes run over them, and the tree is the same.
TEST(Interpret, ColumnsAndRowsSumByTheTree) {
  const int rows = 1500, columns = 21;
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> u(-1, 1);
  std::vector<float> x(rows * columns), z(rows);
  for (float& v : x) v = u(rng);
  for (float& v : z) v = u(rng);
  for (VectorAxis axis : {VectorAxis::kOuter, VectorAxis::kReduction}) {
    Kernel k;
    k.buffers = {{kFloat32, {rows, columns}, {0, 1}}, {kFloat32, {rows}, {0}}, {kFloat32, {columns}, {0}, BufferRole::kOutput}, {kFloat32, {columns}, {0}, BufferRole::kOutput}};
    k.outer.push_back({FreshIndex(), columns});
    LoopVar l{FreshIndex(), rows};
    const Expr i = Expr::Index(k.outer[0].id), j = Expr::Index(l.id), a = Expr::Load(0, kFloat32, {j, i}), b = Expr::Load(1, kFloat32, {j});
    k.stages.push_back({{}, {{2, {i}, Expr::Reduce(ReduceKind::kSum, {l}, {a})}, {3, {i}, Expr::Reduce(ReduceKind::kContract, {l}, {a, b})}}, axis});
    std::vector<float> sum(columns), product(columns);
    void* buffers[] = {x.data(), z.data(), sum.data(), product.data()};
    InterpretKernel(k)->Run(buffers, nullptr, 0, columns, nullptr);
    for (int c = 0; c < columns; ++c) {
      std::vector<float> column(rows);
      for (int r = 0; r < rows; ++r) column[r] = x[r * columns + c];
      EXPECT_EQ(std::bit_cast<uint32_t>(sum[c]), std::bit_cast<uint32_t>(TreeSum(column)));
      EXPECT_EQ(std::bit_cast<uint32_t>(product[c]), std::bit_cast<uint32_t>(ContractionSum(column, z)));
    }
  }
}

// Rows that are shorter than a tile and divide nothing; positions that are no sums of loop variables.
TEST(Interpret, TilesSpanRows) {
  const int64_t rows = 200, columns = 13;
  Kernel k;
  k.outer = {{FreshIndex(), rows}, {FreshIndex(), columns}};
  const Expr i = Expr::Index(k.outer[0].id), j = Expr::Index(k.outer[1].id);
  k.buffers = {{kInt64, {rows, columns}, {1, 0}}, {kInt64, {columns}, {0}}, {kInt64, {rows}, {0}}, {kInt64, {rows, columns}, {0, 1}, BufferRole::kOutput}};
  const Expr folded = Expr::Binary(ExprKind::kFloorMod, i * I(7) + j, I(columns));
  k.stages.push_back({{}, {{3, {i, j}, Expr::Load(0, kInt64, {i, j}) * Expr::Load(1, kInt64, {folded}) + Expr::Load(2, kInt64, {I(rows - 1) - i}) + j}}, VectorAxis::kOuter});
  std::vector<int64_t> x(rows * columns), row(columns), column(rows), y(rows * columns);
  std::iota(x.begin(), x.end(), 100);
  std::iota(row.begin(), row.end(), 3);
  std::iota(column.begin(), column.end(), 5000);
  void* buffers[] = {x.data(), row.data(), column.data(), y.data()};
  InterpretKernel(k)->Run(buffers, nullptr, 0, rows * columns, nullptr);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      ASSERT_EQ(y[r * columns + c], x[c * rows + r] * row[(r * 7 + c) % columns] + column[rows - 1 - r] + c) << r << " " << c;
}

// An output may be the memory of an input that is read at the same points alone; every store has what was there before.
TEST(Interpret, OutputsInPlaceOfInputs) {
  const int64_t n = 1024;
  Kernel k;
  k.outer = {{FreshIndex(), n}};
  const Expr i = Expr::Index(k.outer[0].id), x = Expr::Load(0, kFloat32, {i});
  k.buffers = {{kFloat32, {n}, {0}}, {kFloat32, {n}, {0}, BufferRole::kOutput}, {kFloat32, {n}, {0}, BufferRole::kOutput}};
  k.stages.push_back({{}, {{1, {i}, x + 1.0}, {2, {i}, x}}, VectorAxis::kOuter});
  std::vector<float> data(n, 4), copy(n);
  void* buffers[] = {data.data(), data.data(), copy.data()};
  InterpretKernel(k)->Run(buffers, nullptr, 0, n, nullptr);
  EXPECT_EQ(data, std::vector<float>(n, 5));
  EXPECT_EQ(copy, std::vector<float>(n, 4));
}

// Any cut of the outer domain gives the same results: kernels run in parallel.
TEST(Interpret, PiecesEqualTheWhole) {
  const Dim n = Dim::Symbol("pieces_n");
  for (const KernelCase& c : AllKernelCases()) {
    const Kernel k = c.make(n);
    DimEnv env;
    env.Set(n, 37);
    auto compiled = InterpretKernel(k);
    EXPECT_TRUE(RunKernel(k, *compiled, env, 1) == RunKernel(k, *compiled, env, 4)) << c.name;
  }
}

}  // namespace
}  // namespace sinter::codegen::testing
