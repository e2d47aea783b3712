#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "sinter/eager/creation.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/views.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Tensor Range(const Shape& shape) {
  std::vector<float> v(NumElements(shape));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  return from_vector(v, shape);
}

// The values that broadcasting defines, position by position.
template <class F>
Floats Broadcast(const Tensor& a, const Tensor& b, F f) {
  const Shape shape = (a + b).shape();
  const Floats x = a.expand(shape).ToVector<float>(), y = b.expand(shape).ToVector<float>();
  Floats r(x.size());
  for (size_t i = 0; i < r.size(); ++i) r[i] = f(x[i], y[i]);
  return r;
}

TEST(Tensor, WhatItIs) {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  EXPECT_EQ(x.dtype(), kFloat32);
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.dim(-1).value(), 3);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.strides(), (Shape{3, 1}));
  EXPECT_EQ(x.TypeString(), "float32[2, 3]");
  EXPECT_EQ(tensor({1, 2}).dtype(), kInt64);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor(2.5).shape(), Shape{});
  EXPECT_EQ(tensor(2.5).item<float>(), 2.5f);
  EXPECT_EQ(tensor(7).item<double>(), 7.0);
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, HandlesShareACell) {
  Tensor a = ones({2});
  Tensor b = a;
  b.add_(1);
  EXPECT_EQ(a.ToVector<float>(), (Floats{2, 2}));
  EXPECT_TRUE(a.is(b));
  b = b + 1;  // another cell
  EXPECT_EQ(a.ToVector<float>(), (Floats{2, 2}));
}

TEST(Tensor, ScalarsTakeTheTensorsType) {
  EXPECT_EQ((ones({2}, kFloat64) * 2.0f).dtype(), kFloat64);
  EXPECT_EQ((ones({2}, kFloat16) * 2.0).dtype(), kFloat16);
  EXPECT_EQ((tensor({1, 2}) + 1).dtype(), kInt64);
  EXPECT_EQ((tensor({1, 2}) + 0.5).dtype(), kFloat32);
  EXPECT_EQ((tensor({1, 2}) + 0.5).ToVector<float>(), (Floats{1.5, 2.5}));
  EXPECT_EQ((ones({2}, kInt32) + 1).dtype(), kInt32);
  EXPECT_EQ((tensor({true, false}) + 1).dtype(), kInt64);
  EXPECT_EQ((1 - tensor({1.0, 3.0})).ToVector<float>(), (Floats{0, -2}));
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ((tensor({0}) + large).item<int64_t>(), large);
}

TEST(Tensor, Comparisons) {
  Tensor x = tensor({1.0, 2.0, 3.0});
  EXPECT_EQ((x > 2).ToVector<bool>(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ((x <= 2).ToVector<bool>(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ((2 < x).ToVector<bool>(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ((x != x).ToVector<bool>(), (std::vector<bool>{false, false, false}));
  EXPECT_TRUE((x == x).all());
  EXPECT_TRUE(((x > 1) & (x < 3)).any());
  EXPECT_FALSE(~tensor(true));
}

TEST(Tensor, BroadcastingInEveryLayout) {
  const Tensor a = Range({2, 3, 4}), channels = Range({3, 1}) * 10.0, row = Range({4}),
               plane = Range({2, 1, 4}), scalar = tensor(0.5);
  const Tensor permuted = Range({4, 2, 3}).permute({1, 2, 0}),
               strided = Range({2, 6, 4}).slice(1, 0, kToEnd, 2);
  const Tensor expanded = Range({3, 1}).expand({2, 3, 4});
  auto f = [](float x, float y) { return x - 2 * y; };
  auto check = [&](const Tensor& x, const Tensor& y) {
    EXPECT_EQ((x - 2.0 * y).ToVector<float>(), Broadcast(x, y, f)) << x.TypeString() << " " << y.TypeString();
    EXPECT_EQ((y - 2.0 * x).ToVector<float>(), Broadcast(y, x, f)) << x.TypeString() << " " << y.TypeString();
  };
  const std::vector<Tensor> all = {a,        channels, row,      plane,           scalar,
                                   permuted, strided,  expanded, Range({1, 1, 1})};
  for (const Tensor& x : all)
    for (const Tensor& y : all) check(x, y);
}

TEST(Tensor, PointwiseKeepsTheLayoutOfItsOperand) {
  const Tensor image = Range({2, 5, 4, 3}).permute({0, 3, 1, 2});  // channels-last
  Tensor y = relu(image) + image;
  EXPECT_EQ(y.strides(), image.strides());
  Tensor z = image * Range({3, 1, 1});
  EXPECT_EQ(z.strides(), image.strides());
  EXPECT_EQ(z.ToVector<float>(), Broadcast(image, Range({3, 1, 1}), [](float a, float b) { return a * b; }));
  EXPECT_EQ((Range({2, 3, 5, 4}) + image).strides(), RowMajorStrides({2, 3, 5, 4}));
}

TEST(Tensor, EmptyTensors) {
  Tensor e = zeros({0, 3});
  EXPECT_EQ((e + ones({3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(e.sum().item<float>(), 0);
  EXPECT_EQ(e.sum(0).ToVector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(e.sum(1).shape(), (Shape{0}));
  EXPECT_EQ(e.transpose().contiguous().shape(), (Shape{3, 0}));
}

TEST(Tensor, Reductions) {
  Tensor x = Range({2, 3, 4});
  EXPECT_EQ(x.sum().item<float>(), 276);
  EXPECT_EQ(x.sum(0).ToVector<float>(), (Floats{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}));
  EXPECT_EQ(x.sum({0, 2}).ToVector<float>(), (Floats{60, 92, 124}));
  EXPECT_EQ(x.sum(-1, true).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(x.mean().item<float>(), 11.5f);
  EXPECT_EQ(x.max(2).ToVector<float>(), (Floats{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(x.min().item<float>(), 0);
  EXPECT_EQ(x.argmax(1).ToVector<int64_t>(), (Ints{2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(x.permute({2, 0, 1}).sum(0).ToVector<float>(), x.sum(2).ToVector<float>());
  EXPECT_EQ(tensor({1, 2, 3}).sum().dtype(), kInt64);
}

TEST(Tensor, LargeWorkOnManyThreadsGivesTheSameBits) {
  std::vector<float> v(300007);
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i));
  Tensor x = from_vector(v);
  Tensor y = exp(x) * x;
  Tensor m = x.slice(0, 0, 300000).reshape({300, 1000});
  const int threads = NumThreads();
  SetNumThreads(3);
  Tensor y3 = exp(x) * x, s3 = m.sum(1), c3 = m.transpose().contiguous();
  SetNumThreads(1);
  Tensor y1 = exp(x) * x, s1 = m.sum(1), c1 = m.transpose().contiguous();
  SetNumThreads(threads);
  EXPECT_EQ(y3.ToVector<float>(), y1.ToVector<float>());
  EXPECT_EQ(y.ToVector<float>(), y1.ToVector<float>());
  EXPECT_EQ(s3.ToVector<float>(), s1.ToVector<float>());
  EXPECT_EQ(c3.ToVector<float>(), c1.ToVector<float>());
  EXPECT_EQ(c1.data<float>()[1], v[1000]);
}

TEST(Tensor, Matmul) {
  Tensor a = Range({2, 3}), b = Range({3, 2});
  EXPECT_EQ(matmul(a, b).ToVector<float>(), (Floats{10, 13, 28, 40}));
  EXPECT_EQ(matmul(a, a.transpose()).ToVector<float>(), (Floats{5, 14, 14, 50}));
}

TEST(Tensor, CompositesComputeByTheirParts) {
  Tensor p = softmax(Range({2, 3}), {.dim = 1});
  const double z = 1 + std::exp(-1.0) + std::exp(-2.0);
  EXPECT_NEAR(p.ToVector<float>()[2], 1 / z, 1e-6);
  EXPECT_NEAR(p.sum().item<float>(), 2, 1e-6);
}

TEST(Tensor, HalfTypes) {
  Tensor h = tensor({1.0, 2.5}).to(kFloat16);
  EXPECT_EQ((h * h).ToVector<float>(), (Floats{1, 6.25}));
  EXPECT_EQ(h.data<uint16_t>()[0], 0x3c00);
  EXPECT_EQ((h + tensor({1.0, 1.0})).dtype(), kFloat32);
  EXPECT_EQ(tensor({2.7, -2.7}).to(kInt32).ToVector<int64_t>(), (Ints{2, -2}));
}

TEST(Tensor, ParameterKeepsItsCell) {
  Parameter w(ones({2}));
  Tensor handle = w;
  const uint64_t before = w.version();
  w = tensor({3.0, 4.0});
  EXPECT_EQ(handle.ToVector<float>(), (Floats{3, 4}));
  EXPECT_NE(w.version(), before);
  EXPECT_TRUE(handle.is(w));
  EXPECT_TRUE(w.requires_grad());
  Tensor init = ones({2});
  w = init;
  init.add_(1);  // not the parameter's memory
  EXPECT_EQ(w.ToVector<float>(), (Floats{1, 1}));
  Buffer b;
  b = zeros({3});
  EXPECT_FALSE(b.requires_grad());
  EXPECT_EQ(matmul(ones({1, 2}), w.reshape({2, 1})).item<float>(), 2);
  EXPECT_EQ(add(w, w).ToVector<float>(), (Floats{2, 2}));
  EXPECT_EQ(add(init, w).ToVector<float>(), (Floats{3, 3}));
  EXPECT_EQ(add(w, init).ToVector<float>(), (Floats{3, 3}));
}

TEST(Tensor, MemoryIsFreed) {
  const int64_t before = GetMemoryStats().current_bytes;
  {
    Tensor x = ones({1000, 100});
    for (int i = 0; i < 10; ++i) x = x * 1.5 + x.transpose().sum(1, true).transpose();
    EXPECT_GE(GetMemoryStats().current_bytes - before, 400000);
    EXPECT_LE(GetMemoryStats().current_bytes - before, 500000);
  }
  EXPECT_EQ(GetMemoryStats().current_bytes, before);
}

TEST(Tensor, ThreadsComputeAtOnce) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &results] {
      Tensor x = ones({64});
      for (int i = 0; i < 200; ++i) x = x + static_cast<float>(t);
      results[t] = x.sum().item<float>();
    });
  for (auto& t : threads) t.join();
  for (int t = 0; t < 4; ++t) EXPECT_EQ(results[t], 64 * (1 + 200 * t));
}

TEST(Int, CountsAndCompares) {
  Tensor x = Range({4, 2});
  Tensor total = zeros({2});
  int turns = 0;
  for (Int i = 0; i < x.dim(0); ++i, ++turns) total = total + x[i] * i;
  EXPECT_EQ(turns, 4);
  EXPECT_EQ(total.ToVector<float>(), (Floats{28, 34}));
  EXPECT_TRUE(x.dim(0) == 4);
  EXPECT_TRUE(x.dim(0) * 2 > x.dim(1));
  EXPECT_EQ(zeros({x.dim(0) + 1, 3}).shape(), (Shape{5, 3}));
}

}  // namespace
}  // namespace sinter
