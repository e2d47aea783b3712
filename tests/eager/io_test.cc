// Tensors and checkpoints in files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "sinter/eager/creation.h"
#include "sinter/eager/io/io.h"
#include "sinter/eager/nn/layers.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/activations.h"

namespace sinter {
namespace {

std::string Path(const std::string& name) { return std::string(std::getenv("TEST_TMPDIR")) + "/" + name; }
std::vector<float> V(const Tensor& t) { return t.ToVector<float>(); }

struct Net : nn::Module {
  nn::Linear a{4, 6}, b{6, 2};
  nn::BatchNorm2d norm{3};
  SINTER_MODULE(a, b, norm)
  Tensor forward(const Tensor& x) { return b(relu(a(x))); }
};

std::string WhyNot(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Io, NpyRoundTrip) {
  for (DType t : {kFloat32, kFloat64, kInt32, kInt64, kBool}) {
    const Tensor x = (rand({3, 4}) * 10).to(t).transpose(0, 1);  // not dense
    save_npy(x, Path("x.npy"));
    const Tensor y = load_npy(Path("x.npy"));
    EXPECT_EQ(y.dtype(), t);
    EXPECT_EQ(y.shape(), x.shape());
    EXPECT_EQ(y.ToVector<double>(), x.ToVector<double>());
  }
  const Tensor scalar = tensor(2.5);
  save_npy(scalar, Path("s.npy"));
  EXPECT_EQ(load_npy(Path("s.npy")).item<float>(), 2.5f);
  const std::string why = WhyNot([] { load_npy(Path("nothing.npy")); });
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
  EXPECT_EQ(why.find("folder"), std::string::npos) << why;
  EXPECT_NE(WhyNot([] { load_npy(Path("no/such/x.npy")); }).find("the folder does not exist"), std::string::npos);
}

TEST(Io, SafetensorsRoundTrip) {
  save_tensors({{"b", ones({2})}, {"a", zeros({0, 3}, kInt64)}}, Path("t.safetensors"), {{"what", "test"}});
  auto t = load_tensors(Path("t.safetensors"));
  ASSERT_EQ(t.size(), 2u);
  EXPECT_EQ(V(t["b"]), (std::vector<float>{1, 1}));
  EXPECT_EQ(t["a"].shape(), (Shape{0, 3}));
  EXPECT_NE(WhyNot([] { save_tensors({{"a", ones({1})}, {"a", ones({1})}}, Path("u.safetensors")); }).find("two tensors are named 'a'"), std::string::npos);
}

TEST(Io, WhatWasLoadedCanBeSaved) {
  save_tensors({{"a", ones({2})}, {"b", zeros({1})}}, Path("m.safetensors"));
  save_tensors(load_tensors(Path("m.safetensors")), Path("n.safetensors"));
  EXPECT_EQ(load_tensors(Path("n.safetensors")).size(), 2u);
  EXPECT_NE(WhyNot([] { save_tensors({{"a", ones({1})}, {"b", Tensor()}}, Path("n.safetensors")); }).find("'b' is undefined"), std::string::npos);
  EXPECT_EQ(load_tensors(Path("n.safetensors")).size(), 2u);
}

TEST(Io, ModulesAllOrNothing) {
  Net a, b;
  nn::save_state(a, Path("net.safetensors"));
  nn::load_state(b, Path("net.safetensors"));
  EXPECT_EQ(V(a.a.weight), V(b.a.weight));
  struct Other : nn::Module {
    nn::Linear a{4, 6}, b{6, 3}, c{1, 1};
    Other() = default;
    void VisitMembers(nn::MemberVisitor& v) override {
      v.Child("a", a);
      v.Child("b", b);
      v.Child("c", c);
    }
    size_t ObjectSize() const override { return sizeof(*this); }
  } other;
  const std::vector<float> before = V(other.a.weight);
  const std::string why = WhyNot([&] { nn::load_state(other, Path("net.safetensors")); });
  for (const char* part : {"'b.weight' is float32[6, 2] in the file, float32[6, 3] here", "'c.bias' (float32[1]) is missing", "'norm.running_mean' is in the file and unknown here",
                           "nothing was changed"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  EXPECT_EQ(V(other.a.weight), before);
}

// Training that was interrupted goes on with the same bits.
TEST(Io, TrainingResumes) {
  auto step = [](Net& net, optim::Optimizer& o, const Tensor& x) {
    net(x).square().sum().backward();
    o.step();
    o.clear_grad();
  };
  for (int kind = 0; kind < 2; ++kind) {
    auto make = [&](Net& net) -> std::unique_ptr<optim::Optimizer> {
      if (kind == 0) return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.01});
      return std::make_unique<optim::SGD>(net.parameters(), optim::SgdOptions{.lr = 0.01, .momentum = 0.9});
    };
    Net whole, resumed;
    auto o = make(whole);
    const Tensor x = rand({5, 4});
    for (int i = 0; i < 3; ++i) step(whole, *o, x);
    o->lr() = full({}, 0.005);
    nn::save_state(whole, Path("resume.safetensors"));
    optim::save_state(*o, Path("resume.optim.safetensors"));
    auto p = make(resumed);
    nn::load_state(resumed, Path("resume.safetensors"));
    optim::load_state(*p, Path("resume.optim.safetensors"));
    for (int i = 0; i < 3; ++i) step(whole, *o, x), step(resumed, *p, x);
    EXPECT_EQ(V(whole.a.weight), V(resumed.a.weight)) << kind;
    EXPECT_EQ(V(whole.b.bias), V(resumed.b.bias)) << kind;
  }
}

}  // namespace
}  // namespace sinter
