#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/tape.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/views.h"
#include "sinter/runtime/memory.h"

namespace sinter {
namespace {

using Doubles = std::vector<double>;
using Fn = std::function<Tensor(const std::vector<Tensor>&)>;

// Values without kinks nearby, all different.
Tensor Input(const Shape& shape, int seed) {
  Doubles v(NumElements(shape));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = 0.6 + 0.5 * std::sin(1.7 * static_cast<double>(i) + seed) + 0.01 * static_cast<double>(i);
  return from_vector(v, shape);
}

Tensor Bent(const Tensor& x) { return x * x - x; }

// A weighting that tells the elements apart.
Tensor Scalar(const Tensor& y) { return (y * Input(y.shape(), 11)).sum(); }

void ExpectGradients(const std::vector<Shape>& shapes, const Fn& f) {
  std::vector<Tensor> x;
  for (size_t i = 0; i < shapes.size(); ++i)
    x.push_back(Input(shapes[i], static_cast<int>(i)).requires_grad_());
  Scalar(f(x)).backward();
  const double h = 1e-6;
  for (Tensor& t : x) {
    ASSERT_TRUE(t.grad().defined());
    const Doubles g = t.grad().ToVector<double>();
    ASSERT_EQ(t.grad().shape(), t.shape());
    for (int64_t i = 0; i < t.numel(); ++i) {
      NoGradGuard off;
      double* p = t.mutable_data<double>();
      const double kept = p[i];
      p[i] = kept + h;
      const double above = Scalar(f(x)).item<double>();
      t.mutable_data<double>()[i] = kept - h;
      const double below = Scalar(f(x)).item<double>();
      t.mutable_data<double>()[i] = kept;
      EXPECT_NEAR(g[i], (above - below) / (2 * h), 1e-6 * (1 + std::abs(g[i]))) << "element " << i;
    }
  }
}

TEST(Autograd, Pointwise) {
  ExpectGradients({{2, 3}, {2, 3}}, [](auto& x) { return x[0] * x[1] + x[0] / x[1] - x[1]; });
  ExpectGradients({{2, 3}, {3}}, [](auto& x) { return x[0] * x[1] - x[1]; });
  ExpectGradients({{2, 1, 3}, {4, 1}}, [](auto& x) { return x[0] * x[1]; });
  ExpectGradients({{5}, {}}, [](auto& x) { return x[0] * x[1] * 3.0; });
  ExpectGradients({{7}},
                  [](auto& x) { return tanh(x[0]) + exp(x[0]) * log(x[0]) + sigmoid(x[0]) + sqrt(x[0]); });
  ExpectGradients({{7}},
                  [](auto& x) { return x[0].pow(2.5) + x[0].square() + relu(x[0] - 0.5) + silu(x[0]); });
  ExpectGradients({{6}, {6}}, [](auto& x) { return where(x[0] > x[1], x[0] * 2.0, x[1]); });
}

TEST(Autograd, ViewsAndReductions) {
  ExpectGradients({{2, 3, 4}}, [](auto& x) { return x[0].permute({2, 0, 1}).reshape({4, 6}) * 2.0; });
  ExpectGradients({{2, 3}}, [](auto& x) { return x[0].transpose().reshape({6}).square(); });
  ExpectGradients({{4, 5}}, [](auto& x) { return x[0].slice(1, 1, 4).square() + x[0].slice(1, 0, 3); });
  ExpectGradients({{4, 5}}, [](auto& x) { return x[0][1] * x[0].select(0, 2); });
  ExpectGradients({{3, 1}}, [](auto& x) { return x[0].expand({2, 3, 4}).square(); });
  ExpectGradients({{2, 3, 4}}, [](auto& x) {
    return x[0].square().sum({0, 2}) + x[0].mean({0, 2}) + x[0].max({0, 2}) + x[0].min({0, 2});
  });
  ExpectGradients({{2, 3}, {2, 2}}, [](auto& x) {
    return concat(std::vector<Tensor>{x[0], x[1], x[0]}, {.dim = 1}).square();
  });
}

TEST(Autograd, ContractionsAndComposites) {
  ExpectGradients({{3, 4}, {4, 2}}, [](auto& x) { return matmul(x[0], x[1]); });
  ExpectGradients({{2, 3, 4}, {4, 2}}, [](auto& x) { return matmul(x[0], x[1]); });
  ExpectGradients({{3, 4}}, [](auto& x) { return softmax(x[0], {.dim = 1}); });
  ExpectGradients({{3, 4}}, [](auto& x) { return log_softmax(x[0], {.dim = 0}); });
}

TEST(Autograd, Images) {
  const ops::Conv2dAttrs conv{.stride = {2, 1}, .padding = {1, 0}};
  ExpectGradients({{2, 3, 5, 4}, {4, 3, 3, 2}}, [&](auto& x) { return conv2d(x[0], x[1], conv); });
  ExpectGradients({{1, 2, 4, 4}}, [](auto& x) { return max_pool2d(Bent(x[0]))[0]; });
  ExpectGradients({{2, 3, 2, 2}, {3}, {3}, {3}, {3}},
                  [](auto& x) { return batch_norm(std::vector<Tensor>{x[0], x[1], x[2], x[3], x[4]}); });
  ExpectGradients({{4, 3}}, [](auto& x) { return cross_entropy(x[0], tensor({0, 2, 1, 2})); });
}

TEST(Autograd, ImagesStayChannelsLast) {
  Tensor x = Input({2, 3, 5, 4}, 0).to(kFloat32).requires_grad_(), w = Input({4, 3, 3, 2}, 1).to(kFloat32).requires_grad_();
  Tensor y = relu(conv2d(x, w));
  const Shape channels_last = DenseStrides(y.shape(), std::vector<int>{0, 2, 3, 1});
  EXPECT_EQ(y.strides(), channels_last);
  EXPECT_EQ(max_pool2d(y, {.stride = {1, 1}})[0].strides()[1], 1);
  y.sum().backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
}

TEST(Autograd, AccumulatesAndClears) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  (x * 3.0).sum().backward();
  Tensor kept = x.grad();
  (x * 2.0).sum().backward();
  EXPECT_EQ(x.grad().ToVector<double>(), (Doubles{5, 5}));
  EXPECT_TRUE(kept.is(x.grad()));
  x.clear_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, GradientsOfTwoLeavesDontShareMemory) {
  Tensor x = ones({2}).requires_grad_(), y = ones({2}).requires_grad_();
  (x + y).sum().backward();
  x.grad().mul_(5);
  EXPECT_EQ(y.grad().ToVector<double>(), (Doubles{1, 1}));
}

TEST(Autograd, AValueUsedManyTimes) {
  Tensor x = tensor(3.0).requires_grad_();
  Tensor y = x * x;
  (y * y + y + y).backward();  // x^4 + 2 x^2
  EXPECT_EQ(x.grad().item<double>(), 4 * 27 + 4 * 3);
  Tensor z = tensor(2.0).requires_grad_();
  (z + z).backward();
  EXPECT_EQ(z.grad().item<double>(), 2);
}

TEST(Autograd, SeedsRetainAndSecondBackward) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  Tensor y = x * x;
  y.backward(tensor({1.0, 10.0}), {.retain_graph = true});
  EXPECT_EQ(x.grad().ToVector<double>(), (Doubles{2, 40}));
  y.backward(tensor({1.0, 10.0}));
  EXPECT_EQ(x.grad().ToVector<double>(), (Doubles{4, 80}));
  EXPECT_THROW(y.backward(tensor({1.0, 10.0})), Error);
}

TEST(Autograd, GradOfSelectedInputs) {
  Tensor x = tensor(2.0).requires_grad_(), w = tensor(5.0).requires_grad_();
  Tensor h = x * w, y = h * h * x;
  auto g = grad({y}, {h, x});
  EXPECT_EQ(g[0].item<double>(), 2 * 10 * 2);
  EXPECT_EQ(g[1].item<double>(), 2 * 10 * 2 * 5 + 100);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  Tensor other = tensor(1.0).requires_grad_();
  EXPECT_FALSE(grad({x * 1.0}, {other}, {}, {}, true)[0].defined());
}

TEST(Autograd, HigherDerivatives) {
  Tensor x = tensor({0.3, 0.7, -1.1}).to(kFloat64).requires_grad_();
  auto first = [&] { return grad({tanh(x).sum()}, {x}, {}, {.create_graph = true})[0]; };
  Tensor second = grad({first().sum()}, {x}, {}, {.create_graph = true})[0];
  Tensor third = grad({second.sum()}, {x})[0];
  for (int i = 0; i < 3; ++i) {
    const double t = std::tanh(x.ToVector<double>()[i]), s = 1 - t * t;
    EXPECT_NEAR(second.ToVector<double>()[i], -2 * t * s, 1e-12);
    EXPECT_NEAR(third.ToVector<double>()[i], -2 * s * s + 4 * t * t * s, 1e-12);
  }
  // Of a product, through backward().
  Tensor a = tensor(3.0).requires_grad_();
  (a * a * a).backward({}, {.create_graph = true});
  Tensor g = a.grad();
  a.clear_grad();
  g.backward();
  EXPECT_EQ(a.grad().item<double>(), 18);
}

TEST(Autograd, GradModes) {
  Tensor x = ones({2}).requires_grad_();
  {
    NoGradGuard off;
    EXPECT_FALSE((x * 2.0).requires_grad());
    EnableGradGuard on;
    EXPECT_TRUE((x * 2.0).requires_grad());
  }
  EXPECT_TRUE((x * 2.0).requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_FALSE((x > 0).requires_grad());
  EXPECT_FALSE(no_grad([&] { return x + 1; }).requires_grad());
}

TEST(Autograd, RetainGrad) {
  Tensor x = tensor(2.0).requires_grad_();
  Tensor h = x * 3.0;
  h.retain_grad();
  (h * h).backward();
  EXPECT_EQ(h.grad().item<double>(), 12);
  EXPECT_EQ(x.grad().item<double>(), 36);
}

TEST(Autograd, InPlaceTakesPart) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_(), w = tensor({3.0, 4.0}).requires_grad_();
  Tensor y = x * 2.0;
  y.mul_(w);  // the old y is needed for w
  y.add_(x);
  y.sum().backward();
  EXPECT_EQ(x.grad().ToVector<double>(), (Doubles{7, 9}));
  EXPECT_EQ(w.grad().ToVector<double>(), (Doubles{2, 4}));
  Tensor z = zeros({2});
  z.copy_(x);
  (z * z).sum().backward();
  EXPECT_EQ(x.grad().ToVector<double>(), (Doubles{9, 13}));
}

TEST(Autograd, SavedOnlyWhatIsRead) {
  const int64_t before = GetMemoryStats().current_bytes;
  Tensor x = ones({1000, 1000}).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = y + 1.0;             // nothing
  for (int i = 0; i < 3; ++i) y = y.transpose() * 2.0;  // the scalar
  y = y.sum();                                          // nothing
  EXPECT_LT(GetMemoryStats().current_bytes - before, 4'100'000);
  y.backward();
  EXPECT_EQ(x.grad().ToVector<float>()[5], 8);
}

TEST(Autograd, ChainsOfManyNodes) {
  const int64_t before = GetMemoryStats().current_bytes;
  {
    Tensor x = tensor(1.0).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = y + x;
    y.backward();
    EXPECT_EQ(x.grad().item<float>(), 100'001);
    Tensor dropped = x;
    for (int i = 0; i < 100'000; ++i) dropped = dropped * 1.0;
  }
  EXPECT_EQ(GetMemoryStats().current_bytes, before);
}

TEST(Autograd, OrderOfAccumulation) {
  // Contributions arrive from the last use to the first: ((c3 + c2) + c1), which these values tell from other
  // orders.
  Tensor x = tensor(1.0).requires_grad_();
  Tensor a = x * 1e8, b = x * -1e8, c = x * 1.0;
  (a + b + c).backward();
  EXPECT_EQ(x.grad().item<float>(), (1.0f + -1e8f) + 1e8f);
  EXPECT_NE(x.grad().item<float>(), 1.0f);
}

TEST(Autograd, CustomNodes) {
  class Triple final : public CustomBackward {
   public:
    std::vector<ImplPtr> Run(std::span<const ImplPtr> g, const std::vector<bool>&, bool) override {
      return {(Tensor(g[0]) * 3.0).impl_ptr()};
    }
    void Release() override { released = true; }
    bool released = false;
  };
  Tensor x = tensor(2.0).requires_grad_();
  Tensor y = no_grad([&] { return x * 3.0; });
  TensorImpl* in[] = {&x.impl()};
  ImplPtr out[] = {y.impl_ptr()};
  eager::NewCustomNode("triple", {eager::EdgeOf(*in[0])}, out, std::make_unique<Triple>());
  (y * y).backward();
  EXPECT_EQ(x.grad().item<float>(), 36);
}

}  // namespace
}  // namespace sinter
