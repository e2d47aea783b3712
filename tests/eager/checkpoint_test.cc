// Training that stops, is saved, and goes on in new objects.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "sinter/sinter.h"

namespace sinter {
namespace {

std::string TempName(const std::string& name) { return std::string(std::getenv("TEST_TMPDIR")) + "/" + name; }

// Everything that a step can move: weights, running statistics, random numbers.
struct Net : nn::Module {
  nn::Conv2d conv{1, 2, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm{2};
  nn::Dropout drop{0.3};
  nn::Linear fc{32, 3};
  SINTER_MODULE(conv, norm, drop, fc)
  Tensor forward(const Tensor& x) { return fc(drop(relu(norm(conv(x))).flatten(1))); }
};

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

// One process of a training job.
struct Job {
  explicit Job(const MakeOptimizer& make, bool compiled) : optimizer(make(net.parameters())) {
    step = [this](const Tensor& x, const Tensor& y) {
      Tensor loss = nn::cross_entropy(net(x), y);
      loss.backward();
      optimizer->step();
      optimizer->clear_grad();
      return loss;
    };
    if (compiled) step = to_static(step, {InputSpec({4, 1, 4, 4}), InputSpec({4}, kInt64)}, {.numerics = Numerics::kExact});
  }
  void Train(int from, int to) {
    for (int i = from; i < to; ++i) {
      Generator data(static_cast<uint64_t>(100 + i));
      const Tensor x = data.rand({4, 1, 4, 4}), y = data.randint({4}, 0, 3);
      if (i == 3) optimizer->lr() = optimizer->lr() * 0.5;
      step(x, y);
    }
  }
  void Save(const std::string& name) {
    nn::save_state(net, name + ".net");
    optim::save_state(*optimizer, name + ".optim");
    save_tensors({{"generator", default_generator().state()}}, name + ".rest");
  }
  void Load(const std::string& name) {
    nn::load_state(net, name + ".net");
    optim::load_state(*optimizer, name + ".optim");
    default_generator().state() = load_tensors(name + ".rest").at("generator");
  }
  // All state, as bytes.
  std::vector<std::string> Bits() {
    std::vector<std::string> bits;
    auto cells = net.named_parameters();
    for (auto& c : net.named_buffers()) cells.push_back(c);
    for (auto& c : optimizer->named_state()) cells.push_back(c);
    cells.emplace_back("generator", default_generator().state());
    for (auto& [name, t] : cells) {
      const Tensor dense = t.contiguous();
      bits.push_back(name + std::string(reinterpret_cast<const char*>(dense.impl().data()), static_cast<size_t>(t.numel()) * ItemSize(t.dtype())));
    }
    return bits;
  }

  Net net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::function<Tensor(const Tensor&, const Tensor&)> step;
};

class Resume : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static std::unique_ptr<optim::Optimizer> Make(std::vector<Tensor> p) {
    switch (std::get<0>(GetParam())) {
      case 0: return std::make_unique<optim::SGD>(std::move(p), optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
      case 1: return std::make_unique<optim::Adam>(std::move(p), optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1, .decoupled = true});
      default: return std::make_unique<optim::SGD>(std::move(p), optim::SgdOptions{.lr = 0.1});
    }
  }
};

TEST_P(Resume, EqualsAnUninterruptedRunBitForBit) {
  const bool compiled = std::get<1>(GetParam());
  const std::string name = TempName("job" + std::to_string(std::get<0>(GetParam())) + (compiled ? "c" : "e"));
  manual_seed(1);
  std::vector<std::string> want;
  {
    Job whole(Make, compiled);
    whole.Train(0, 5);
    whole.Save(name);
    whole.Train(5, 9);
    want = whole.Bits();
  }
  manual_seed(77);  // other first weights
  Job fresh(Make, compiled);
  EXPECT_NE(fresh.Bits(), want);
  fresh.Load(name);
  fresh.Train(5, 9);
  EXPECT_EQ(fresh.Bits(), want);
  // And into objects whose step was compiled and run before.
  fresh.Load(name);
  fresh.Train(5, 9);
  EXPECT_EQ(fresh.Bits(), want);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resume, testing::Combine(testing::Values(0, 1, 2), testing::Bool()));

TEST(State, AnotherOptimizersFileIsRefused) {
  Net net;
  optim::SGD sgd(net.parameters(), {.momentum = 0.9});
  optim::Adam adam(net.parameters());
  optim::save_state(sgd, TempName("sgd"));
  try {
    optim::load_state(adam, TempName("sgd"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("'first.0'"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("'velocity.0'"), std::string::npos) << e.message();
  }
}

TEST(State, FilesAreNotForCapturedFunctions) {
  const std::string path = TempName("inside.npy");
  save_npy(ones({1}), path);
  auto refused = [](auto f) {
    try {
      to_static(f, {InputSpec({1})})(zeros({1}));
    } catch (const Error& e) {
      return e.message().find("while a function is captured") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused([&](const Tensor& x) { return x + load_npy(path); }));
  EXPECT_TRUE(refused([&](const Tensor& x) {
    save_npy(x, path);
    return x + 1;
  }));
  EXPECT_EQ(load_npy(path).item<float>(), 1);
}

TEST(State, WeightsOfASavedProgramGoIntoAModule) {
  Net net;
  net.eval();
  auto f = to_static(net, {InputSpec({kDynamic, 1, 4, 4})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("program");
  jit::save(f, name);
  Net other;
  other.eval();
  nn::load_state(other, name + ".safetensors");
  NoGradGuard no_grad;
  const Tensor x = rand({2, 1, 4, 4});
  EXPECT_EQ(other(x).ToVector<float>(), jit::load(name)(x).ToVector<float>());
}

}  // namespace
}  // namespace sinter
