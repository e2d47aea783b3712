// Saved programs: round trips, damage of every kind, interrupted saves.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/nn/layers.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/serialize/format/graph_file.h"
#include "sinter/serialize/jit/jit.h"

namespace sinter {
namespace {

std::string TempName(const std::string& name) { return std::string(std::getenv("TEST_TMPDIR")) + "/" + name; }
std::vector<float> V(const Tensor& t) { return t.ToVector<float>(); }
void Put(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

struct Model {
  Parameter w{rand({6, 4})}, b{rand({4})};
  Tensor operator()(const Tensor& x) const { return softmax(relu(matmul(x, w) + b), {.dim = 1}); }
};

// A small net with a loop and a branch, so that every part of the format occurs.
Tensor Looped(Tensor x, const Tensor& y) {
  while (x.abs().max() > 1) {
    if (x.sum() > 0) x = x * 0.5f;
    else x = x + y;
  }
  return x;
}

struct WithDropout : nn::Module {
  nn::Linear fc{4, 4};
  nn::Dropout drop{0.5};
  SINTER_MODULE(fc, drop)
  Tensor forward(const Tensor& x) { return drop(fc(x)); }
};

// The program that is saved is the one for the module as it is, whatever was compiled before.
TEST(Jit, SavesTheProgramOfThePresentMode) {
  WithDropout m;
  auto f = to_static(m, {InputSpec({"n", 4})}, {.numerics = Numerics::kExact});
  const Tensor x = rand({3, 4});
  f(x);
  m.eval();
  const std::string name = TempName("present_mode");
  jit::save(f, name);
  auto g = jit::load(name);
  NoGradGuard no_grad;
  EXPECT_EQ(g(x).ToVector<float>(), m(x).ToVector<float>());
  EXPECT_EQ(g(x).ToVector<float>(), g(x).ToVector<float>());
}

// A state that a convolution gives (channels innermost) stays in the order of its dimensions from call to call.
TEST(Jit, WrittenStateKeepsItsOrder) {
  Buffer average(zeros({1, 2, 3, 4}));
  Parameter w(rand({2, 3, 1, 1}));
  auto step = [&](const Tensor& x) {
    average = conv2d(x, w, {}) * 0.1f + average * 0.9f;
    return average * 1;
  };
  auto f = to_static(step, {InputSpec({1, 3, 3, 4})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("average");
  jit::save(f, name);
  auto g = jit::load(name);
  NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = rand({1, 3, 3, 4});
    EXPECT_EQ(g(x).ToVector<float>(), step(x).ToVector<float>()) << i;
  }
}

// Sizes that a guard or an index check refuses are no reason to refuse the save; verify says where there is nothing to verify.
TEST(Jit, CertificatesMeetTheGuards) {
  Parameter w(rand({2, 3, 5, 5}));
  auto f = to_static([&](const Tensor& x) { return conv2d(x, w, {}); }, {InputSpec({"n", 3, "h", "w"})}, {.numerics = Numerics::kExact});
  jit::save(f, TempName("guarded"));
  jit::load(TempName("guarded"), {.verify = true});
  auto loss = to_static([&](const Tensor& x, const Tensor& t) { return cross_entropy(x, t); }, {InputSpec({"n", 3}), InputSpec({"n"}, kInt64)},
                        {.numerics = Numerics::kExact});
  jit::save(loss, TempName("loss"));
  auto g = to_static([&](const Tensor& x) { return x * 2; }, {InputSpec({"n"})});
  jit::save(g, TempName("uncertified"));
  jit::load(TempName("uncertified"));
  try {
    jit::load(TempName("uncertified"), {.verify = true});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("carries no certificate"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("capture with kExact"), std::string::npos) << e.what();
  }
}

TEST(Jit, SeveralProgramsAreAnError) {
  auto f = to_static([](const Tensor& x, bool twice) { return twice ? x * 2 : x; }, {InputSpec({"n"})});
  f(ones({2}), true);
  const std::string name = TempName("several");
  jit::save(f, name);
  f(ones({2}), false);
  try {
    jit::save(f, name);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("several programs"), std::string::npos) << e.what();
  }
}

TEST(Jit, SavedAndLoadedGiveTheSameBits) {
  Model m;
  auto f = to_static([&m](const Tensor& x) { return m(x); }, {InputSpec({"n", 6}, kFloat32, "features")}, {.numerics = Numerics::kExact});
  const std::string name = TempName("net");
  jit::save(f, name, {.metadata = {{"labels", "a,b,c,d"}}});
  auto g = jit::load(name, {.verify = true});
  for (int64_t n : {0, 1, 7, 32}) {
    Tensor x = rand({n, 6});
    NoGradGuard no_grad;
    EXPECT_EQ(V(g(x)), V(m(x)));
  }
  EXPECT_NE(g.model().info().find("a,b,c,d"), std::string::npos);
  EXPECT_NE(g.model().info().find("features"), std::string::npos);
  EXPECT_THROW(g(rand({3, 5})), Error);
  auto interpreted = jit::load(name, {.interpret = true});
  Tensor x = rand({5, 6});
  EXPECT_EQ(V(interpreted(x)), V(g(x)));
}

TEST(Jit, ControlFlowIsSavedToo) {
  auto f = to_static(Looped, {InputSpec({"n"}), InputSpec({"n"})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("loop");
  jit::save(f, name);
  auto g = jit::load(name);
  EXPECT_EQ(Print(g.model().graph()), Print(f.graph()));
  for (double s : {0.5, 20.0, -3.0}) {
    const Tensor x = tensor({s, 0.25 * s, 0.1}), y = tensor({1.0, 1.0, 1.0});
    EXPECT_EQ(V(g(x, y)), V(Looped(x, y)));
  }
}

TEST(Jit, LoopsBeyondTheVerifiedTurnsAreRefusedUnlessAllowed) {
  auto f = to_static([](Tensor x) {
    while (x.sum() < 500) x = x + 1;
    return x;
  }, {InputSpec({1})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("long");
  jit::save(f, name);
  EXPECT_THROW(jit::load(name)(tensor({0.0})), Error);
  EXPECT_EQ(V(jit::load(name, {.unverified_trips = UnverifiedTrips::kAllow})(tensor({0.0}))), (std::vector<float>{500}));
}

TEST(Jit, TheNameMayCarryItsSuffix) {
  Model m;
  auto f = to_static([&m](const Tensor& x) { return m(x); }, {InputSpec({"n", 6})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("suffix");
  jit::save(f, name + ".sgraph");
  EXPECT_FALSE(format::FileExists(name + ".sgraph.sgraph"));
  const Tensor x = rand({2, 6});
  EXPECT_EQ(V(jit::load(name)(x)), V(jit::load(name + ".sgraph")(x)));
}

class Damage : public testing::Test {
 protected:
  void SetUp() override {
    name_ = TempName(testing::UnitTest::GetInstance()->current_test_info()->name());
    auto f = to_static([this](const Tensor& x) { return model_(x); }, {InputSpec({"n", 6})}, {.numerics = Numerics::kExact});
    jit::save(f, name_);
    for (const char* ext : {".sgraph", ".safetensors", ".json"}) files_.push_back(format::ReadFile(name_ + ext));
  }
  std::string Failure() {
    try {
      jit::load(name_);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  Model model_;
  std::string name_;
  std::vector<std::string> files_;
};

TEST_F(Damage, MissingFiles) {
  unlink((name_ + ".json").c_str());
  EXPECT_EQ(Failure(), "");  // made again
  EXPECT_EQ(format::ReadFile(name_ + ".json"), files_[2]);
  unlink((name_ + ".safetensors").c_str());
  EXPECT_NE(Failure().find(".safetensors"), std::string::npos);
  Put(name_ + ".safetensors", files_[1]);
  unlink((name_ + ".sgraph").c_str());
  EXPECT_NE(Failure().find(".sgraph"), std::string::npos);
}

TEST_F(Damage, EveryFileCutOffOrWithAFlippedBit) {
  const char* extensions[] = {".sgraph", ".safetensors", ".json"};
  std::mt19937 rng(3);
  for (size_t f = 0; f < 3; ++f) {
    const std::string path = name_ + extensions[f];
    for (size_t n : {size_t{0}, size_t{7}, files_[f].size() / 2, files_[f].size() - 1}) {
      Put(path, files_[f].substr(0, n));
      EXPECT_NE(Failure().find(extensions[f]), std::string::npos) << extensions[f] << " " << n << ": " << Failure();
    }
    for (int i = 0; i < 60; ++i) {
      std::string b = files_[f];
      b[rng() % b.size()] ^= static_cast<char>(1 << rng() % 8);
      Put(path, b);
      EXPECT_NE(Failure().find(extensions[f]), std::string::npos) << extensions[f];
    }
    Put(path, files_[f]);
    EXPECT_EQ(Failure(), "");
  }
}

// An attacker makes the checksum right: only a sound program may come out.
TEST_F(Damage, HostileProgramsCanOnlyFail) {
  std::string body = files_[0].substr(0, files_[0].size() - 64);
  std::mt19937 rng(4);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string b = body;
    for (int k = static_cast<int>(rng() % 3); k >= 0; --k) b[8 + rng() % (b.size() - 8)] = static_cast<char>(rng());
    b += format::Sha256(b);
    try {
      format::ProgramFile p = format::ReadProgram({reinterpret_cast<const std::byte*>(b.data()), b.size()}, "hostile");
      for (const auto& g : p.entries) Verify(*g);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(Damage, AFailedSaveLeavesTheOldModelWhole) {
  auto f = to_static([](const Tensor& x) { return x + 1; }, {InputSpec({"n", 6})}, {.numerics = Numerics::kExact});
  // A folder stands where the new program must go.
  const std::string name = TempName("blocked");
  mkdir((name + ".sgraph").c_str(), 0755);
  Put(name + ".sgraph/file", "x");
  EXPECT_THROW(jit::save(f, name), Error);
  EXPECT_FALSE(format::FileExists(name + ".safetensors.staged"));
  EXPECT_THROW(jit::save(f, "/proc/none/model"), Error);
  EXPECT_EQ(Failure(), "");
  EXPECT_EQ(format::ReadFile(name_ + ".sgraph"), files_[0]);
}

TEST_F(Damage, ASaveThatStoppedAfterItsCommitLoads) {
  // As if the process died before the weights took their plain name: the old plain file belongs to another program.
  Model other;
  auto f = to_static([&](const Tensor& x) { return other(x); }, {InputSpec({"n", 6})}, {.numerics = Numerics::kExact});
  const std::string name = TempName("stopped");
  jit::save(f, name);
  const std::string weights = format::ReadFile(name + ".safetensors");
  format::RenameFile(name + ".safetensors", name + ".safetensors." + format::Sha256(weights).substr(0, 16));
  Put(name + ".safetensors", files_[1]);
  unlink((name + ".json").c_str());
  const Tensor x = rand({3, 6});
  NoGradGuard no_grad;
  EXPECT_EQ(V(jit::load(name)(x)), V(other(x)));
}

}  // namespace
}  // namespace sinter
