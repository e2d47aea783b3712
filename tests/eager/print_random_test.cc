#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "sinter/eager/creation.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/print.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/views.h"

namespace sinter {
namespace {

std::string Text(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST(Print, AsNumPyDoes) {
  EXPECT_EQ(Text(tensor({{1.0, 2.5}, {0.0, -4.0}})),
            "[[ 1.0000,  2.5000],\n [ 0.0000, -4.0000]]  float32[2, 2]");
  EXPECT_EQ(Text(tensor({1.0, 2.0})), "[1., 2.]  float32[2]");
  EXPECT_EQ(Text(tensor({1, 20, 300})), "[  1,  20, 300]  int64[3]");
  EXPECT_EQ(Text(tensor({true, false})), "[ true, false]  bool[2]");
  EXPECT_EQ(Text(tensor(3.0)), "3.  float32[]");
  EXPECT_EQ(Text(zeros({0, 2})), "[]  float32[0, 2]");
  EXPECT_EQ(Text(Tensor()), "undefined tensor");
  EXPECT_EQ(Text(zeros({2, 1, 2})), "[[[0., 0.]],\n\n [[0., 0.]]]  float32[2, 1, 2]");
  EXPECT_EQ(Text(tensor({1.0, static_cast<double>(NAN), static_cast<double>(-INFINITY)})),
            "[  1.,  nan, -inf]  float32[3]");
  EXPECT_EQ(Text(tensor({1e-8, 1.0})), "[1.0000e-08, 1.0000e+00]  float32[2]");
}

TEST(Print, LargeTensorsByTheirEdges) {
  EXPECT_EQ(Text(arange(Int(2000))), "[   0,    1,    2, ..., 1997, 1998, 1999]  int64[2000]");
  const std::string grid = Text(zeros({100, 100}));
  EXPECT_EQ(std::count(grid.begin(), grid.end(), '\n'), 6);
  EXPECT_NE(grid.find("..."), std::string::npos);
  const std::string row = Text(arange(Int(40)));
  EXPECT_EQ(row.find(",\n "), 79u);  // a line has 80 columns
}

TEST(Random, AFunctionOfSeedAndOffset) {
  Generator g(42), h(42);
  Tensor a = g.rand({10}), b = g.rand({6});
  EXPECT_EQ(g.offset(), 16);
  Tensor whole = h.rand({16});
  EXPECT_EQ(concat(std::vector<Tensor>{a, b}, {.dim = 0}).ToVector<float>(), whole.ToVector<float>());
  g.manual_seed(42);
  EXPECT_EQ(g.rand({10}).ToVector<float>(), a.ToVector<float>());
  g.manual_seed(43);
  EXPECT_NE(g.rand({10}).ToVector<float>(), a.ToVector<float>());
}

TEST(Random, StateCanBeSavedAndRestored) {
  Generator g(7);
  g.rand({3});
  Tensor saved = g.state().clone();
  Tensor next = g.randn({5});
  g.state() = saved;
  EXPECT_EQ(g.randn({5}).ToVector<float>(), next.ToVector<float>());
}

TEST(Random, Distributions) {
  Generator g(1);
  const int n = 100000;
  std::vector<float> u = g.rand({n}).ToVector<float>(), z = g.randn({n}).ToVector<float>();
  double mean = 0, variance = 0, low = 1, high = 0;
  for (float v : u) mean += v / n, low = std::min<double>(low, v), high = std::max<double>(high, v);
  EXPECT_NEAR(mean, 0.5, 0.005);
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  mean = 0;
  for (float v : z) mean += v / n;
  for (float v : z) variance += (v - mean) * (v - mean) / n;
  EXPECT_NEAR(mean, 0, 0.015);
  EXPECT_NEAR(variance, 1, 0.02);
  std::vector<int64_t> k = g.randint({1000}, -2, 3).ToVector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(k.begin(), k.end()), (std::set<int64_t>{-2, -1, 0, 1, 2}));
  std::vector<int64_t> order = g.permutation(100);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 100u);
  EXPECT_NE(order[0] * 100 + order[1], 1);
  EXPECT_NEAR(g.uniform({1000}, 4, 6).mean().item<float>(), 5, 0.1);
}

TEST(Random, DefaultGenerator) {
  manual_seed(5);
  Tensor a = rand({4}), b = randn({4});
  manual_seed(5);
  EXPECT_EQ(rand({4}).ToVector<float>(), a.ToVector<float>());
  EXPECT_EQ(randn({4}).ToVector<float>(), b.ToVector<float>());
}

TEST(Creation, Sequences) {
  EXPECT_EQ(arange(0, 1, 0.25).ToVector<float>(), (std::vector<float>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(3, 0, -1, kInt32).ToVector<int>(), (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(arange(3, 0).numel(), 0);
  EXPECT_EQ(linspace(0, 1, 3).ToVector<float>(), (std::vector<float>{0, 0.5, 1}));
  EXPECT_EQ(linspace(0, 0.3, 4, kFloat64).ToVector<double>().back(), 0.3);
  EXPECT_EQ(eye(Int(2)).ToVector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(full({2}, 3, kBFloat16).ToVector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(full({1}, -1.7, kInt64).item<int64_t>(), -1);
  EXPECT_EQ(full_int({}, INT64_MAX).item<int64_t>(), INT64_MAX);
  EXPECT_EQ(zeros_like(tensor({1, 2})).dtype(), kInt64);
  const double host[] = {1, 2};
  Tensor copy = from_blob(host, {2}, kFloat64);
  EXPECT_EQ(copy.ToVector<double>(), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace sinter
