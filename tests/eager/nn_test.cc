#include <gtest/gtest.h>

#include <cmath>

#include "sinter/sinter.h"

namespace sinter {
namespace {

std::vector<float> V(const Tensor& t) { return t.ToVector<float>(); }

struct Inner : nn::Module {
  nn::Linear fc{3, 2};
  SINTER_MODULE(fc)
  Tensor forward(const Tensor& x) { return fc(x); }
};
struct Outer : nn::Module {
  Inner inner;
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{0.5};
  std::vector<nn::Linear> list;
  Outer() { list.emplace_back(2, 2); }
  SINTER_MODULE(inner, norm, drop, list)
  Tensor forward(const Tensor& x) { return inner(x); }
};
struct Forgetful : nn::Module {
  nn::Linear a{1, 1}, b{1, 1};
  SINTER_MODULE(a)
  Tensor forward(const Tensor& x) { return b(a(x)); }
};

TEST(Module, NamesItsCells) {
  Outer m;
  std::vector<std::string> names;
  for (auto& [name, t] : m.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"inner.fc.weight", "inner.fc.bias", "norm.weight", "norm.bias", "list.0.weight", "list.0.bias"}));
  names.clear();
  for (auto& [name, t] : m.named_buffers()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm.running_mean", "norm.running_var"}));
  EXPECT_TRUE(m.named_parameters()[0].second.is(m.inner.fc.weight));
}

struct ForgetsParameter : nn::Module {
  nn::Linear a{1, 1};
  Parameter scale{ones({1})};
  SINTER_MODULE(a)
  Tensor forward(const Tensor& x) { return a(x) * scale; }
};
struct ForgetsBuffer : nn::Module {
  Buffer count{zeros({1})};
  SINTER_MODULE()
  Tensor forward(const Tensor& x) { return x + count; }
};
struct ForgetsDeep : nn::Module {
  std::vector<std::unique_ptr<ForgetsBuffer>> list;
  SINTER_MODULE(list)
  Tensor forward(const Tensor& x) { return x; }
};
struct ListsAll : nn::Module {
  nn::Linear a{1, 1};
  Parameter scale{ones({1})};
  Buffer count;
  Tensor scratch = zeros({2});  // a plain Tensor is nobody's state
  SINTER_MODULE(a, scale, count)
  Tensor forward(const Tensor& x) { return a(x) * scale; }
};

std::string WhyNot(nn::Module& m) {
  try {
    m.parameters();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Module, AForgottenMemberIsAnError) {
  Forgetful child;
  EXPECT_NE(WhyNot(child).find("a child module"), std::string::npos) << WhyNot(child);
  ForgetsParameter parameter;
  EXPECT_NE(WhyNot(parameter).find("ForgetsParameter has a Parameter"), std::string::npos) << WhyNot(parameter);
  ForgetsBuffer buffer;
  EXPECT_NE(WhyNot(buffer).find("a Buffer"), std::string::npos) << WhyNot(buffer);
  ForgetsDeep deep;
  EXPECT_EQ(WhyNot(deep), "");
  deep.list.push_back(std::make_unique<ForgetsBuffer>());
  EXPECT_NE(WhyNot(deep).find("ForgetsBuffer has a Buffer"), std::string::npos) << WhyNot(deep);
  ListsAll all;
  EXPECT_EQ(WhyNot(all), "");
  ListsAll moved = std::move(all);
  EXPECT_EQ(WhyNot(moved), "");
  EXPECT_EQ(moved.parameters().size(), 3u);
}

TEST(Module, MayBeMoved) {
  Outer a;
  const std::vector<float> weight = V(a.inner.fc.weight);
  Outer b = std::move(a);
  EXPECT_EQ(V(b.inner.fc.weight), weight);
  EXPECT_EQ(b.named_parameters().size(), 6u);
}

TEST(Module, TrainReachesChildren) {
  Outer m;
  EXPECT_TRUE(m.drop.training());
  m.eval();
  EXPECT_FALSE(m.drop.training());
  EXPECT_FALSE(m.inner.fc.training());
}

TEST(Module, CopyFromCopiesValues) {
  Outer a, b;
  b.copy_from(a);
  EXPECT_EQ(V(a.inner.fc.weight), V(b.inner.fc.weight));
  a.inner.fc.weight = zeros({3, 2});
  EXPECT_NE(V(a.inner.fc.weight), V(b.inner.fc.weight));
}

TEST(Layers, BatchNormNormalisesAndKeepsStatistics) {
  nn::BatchNorm2d norm(2);
  const Tensor x = from_vector(std::vector<float>{1, 3, 10, 30, 5, 7, 50, 70}, Shape{2, 2, 1, 2});
  const Tensor y = norm(x);
  // Channel 0: 1 3 5 7, mean 4, biased variance 5, unbiased 20/3.
  EXPECT_NEAR(V(y)[0], -3 / std::sqrt(5 + 1e-5), 1e-5);
  EXPECT_NEAR(V(norm.running_mean)[0], 0.4, 1e-6);
  EXPECT_NEAR(V(norm.running_var)[0], 0.9 + 0.1 * 20 / 3, 1e-5);
  norm.eval();
  EXPECT_NEAR(V(norm(x))[0], (1 - 0.4) / std::sqrt(0.9 + 2.0 / 3 + 1e-5), 1e-5);
}

TEST(Layers, DropoutKeepsTheMeanAndIsOffInEvaluation) {
  manual_seed(3);
  nn::Dropout drop(0.25);
  const Tensor x = ones({10000});
  EXPECT_NEAR(drop(x).mean().item<float>(), 1, 0.03);
  drop.eval();
  EXPECT_EQ(V(drop(x)), V(x));
  EXPECT_THROW(nn::Dropout(1.5), Error);
}

TEST(Layers, CrossEntropyChecksEagerTargets) {
  const Tensor logits = zeros({2, 3});
  EXPECT_NEAR(nn::cross_entropy(logits, tensor({0, 2})).item<float>(), std::log(3.0f), 1e-6);
  try {
    nn::cross_entropy(logits, tensor({0, 3}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("target 1 is 3"), std::string::npos) << e.what();
  }
}

TEST(Optim, SgdWithMomentum) {
  Parameter p(tensor({1.0}));
  optim::SGD sgd({p}, {.lr = 0.1, .momentum = 0.5});
  for (int i = 0; i < 2; ++i) {
    (p * 2.0f).sum().backward();
    sgd.step();
    sgd.clear_grad();
  }
  // v: 2, 3; p: 1 - 0.2 - 0.3
  EXPECT_NEAR(V(p)[0], 0.5, 1e-6);
}

TEST(Optim, AdamFollowsItsFormula) {
  Parameter p(tensor({1.0, -1.0}));
  optim::Adam adam({p}, {.lr = 0.01});
  double value[] = {1, -1}, m[] = {0, 0}, v[] = {0, 0};
  for (int t = 1; t <= 3; ++t) {
    (p * p).sum().backward();
    adam.step();
    adam.clear_grad();
    for (int i : {0, 1}) {
      const double g = 2 * value[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      value[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      EXPECT_NEAR(V(p)[static_cast<size_t>(i)], value[i], 1e-5);
    }
  }
}

struct SmallNet : nn::Module {
  nn::Conv2d conv{1, 4, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm{4};
  nn::MaxPool2d pool{2};
  nn::Dropout drop{0.3};
  nn::Linear fc{64, 5};
  SINTER_MODULE(conv, norm, pool, drop, fc)
  Tensor forward(const Tensor& x) { return fc(drop(pool(relu(norm(conv(x)))).flatten(1))); }
};

// Everything a step touches: loss, parameters, statistics, moments, random numbers.
TEST(TrainingStep, CapturedEqualsEagerBitForBit) {
  auto train = [](bool captured) {
    manual_seed(9);
    SmallNet net;
    optim::Adam adam(net.parameters(), {.lr = 1e-2});
    auto step = [&](const Tensor& x, const Tensor& y) {
      Tensor loss = nn::cross_entropy(net(x), y);
      loss.backward();
      adam.step();
      adam.clear_grad();
      return loss;
    };
    auto compiled = to_static(step, {InputSpec({6, 1, 8, 8}), InputSpec({6}, kInt64)}, {.numerics = Numerics::kExact});
    Generator data(4);
    std::vector<std::vector<float>> seen;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = data.rand({6, 1, 8, 8}), y = data.randint({6}, 0, 5);
      seen.push_back(V(captured ? compiled(x, y) : step(x, y)));
    }
    for (auto& [name, t] : net.named_parameters()) seen.push_back(V(t));
    for (auto& [name, t] : net.named_buffers()) seen.push_back(V(t));
    seen.push_back({static_cast<float>(default_generator().offset())});
    return seen;
  };
  EXPECT_EQ(train(false), train(true));
}

TEST(TrainingStep, SwitchingModesCompilesTwice) {
  SmallNet net;
  auto f = to_static(net, {InputSpec({kDynamic, 1, 8, 8})}, {.numerics = Numerics::kExact});
  NoGradGuard no_grad;
  const Tensor x = rand({3, 1, 8, 8});
  net.eval();
  EXPECT_EQ(V(f(x)), V(net(x)));
  net.train();
  f(x);
  net.eval();
  EXPECT_EQ(V(f(x)), V(net(x)));
  EXPECT_EQ(f.num_entries(), 2);
  EXPECT_NE(f.explain().find("train() and eval()"), std::string::npos) << f.explain();
}

TEST(ExpectSame, SaysWhereProgramsDiffer) {
  auto f = [](const Tensor& x) { return x + 1; };
  auto g = to_static(f, {InputSpec({"n"})}, {.numerics = Numerics::kExact});
  ExpectSame(f, g, rand({4}));
  EXPECT_THROW(ExpectSame([](const Tensor& x) { return x + 2; }, g, rand({4})), Error);
}

}  // namespace
}  // namespace sinter
