// Results that are the same on every machine, whatever its vector width, thread count or instruction set: digests that are kept in
// golden.txt. A new op needs no entry; what has one must match. SINTER_GOLDEN_OUT=FILE writes the digests of this machine to FILE.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "sinter/codegen/cpu/backend.h"
#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/nn/layers.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/optim/optim.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/runtime/thread_pool.h"
#include "sinter/serialize/format/file_io.h"
#include "sinter/serialize/format/served_model.h"
#include "sinter/tests/codegen/op_runner.h"
#include "sinter/tracer/static_function.h"

namespace sinter {
namespace {

using Digests = std::map<std::string, std::string>;

std::string Short(const std::string& digest) { return digest.substr(0, 24); }

std::string DigestOfBytes(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& p : parts) all += std::to_string(p.size()) + ":" + p;
  return Short(format::Sha256(all));
}

std::string DigestOfTensor(const Tensor& t) {
  const TensorImpl& i = t.impl();
  return Short(DigestOf(TensorView{i.data(), i.dtype, i.shape, i.strides}));
}

// Every sample of every op, as fused machine code.
void Ops(Digests& d) {
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    std::vector<std::string> results;
    for (const Sample& s : codegen::testing::SamplesOf(*op)) {
      const auto operands = codegen::testing::MakeOperands(s);
      const auto executable = codegen::testing::CompileOp(*op, s.attrs, operands, codegen::CpuBackend(), true);
      for (std::string& r : codegen::testing::RunOp(*executable, operands)) results.push_back(std::move(r));
    }
    d["op " + op->name] = DigestOfBytes(results);
  }
}

// The kernels of contractions, at sizes that fill no tile.
void Contractions(Digests& d) {
  NoGradGuard no_grad;
  manual_seed(3);
  for (DType t : {kFloat32, kFloat64}) {
    const std::string name(DTypeName(t));
    for (auto [m, k, n] : {std::array{1, 300, 70}, std::array{37, 1030, 65}, std::array{130, 64, 257}})
      d["matmul " + name + " " + std::to_string(m)] = DigestOfTensor(matmul(rand({m, k}, t), rand({k, n}, t)));
    d["conv2d " + name] = DigestOfTensor(conv2d(rand({2, 19, 13, 11}, t), rand({23, 19, 3, 3}, t), {.stride = {2, 1}, .padding = {1, 1}}));
    d["conv2d depthwise " + name] = DigestOfTensor(conv2d(rand({2, 18, 9, 9}, t), rand({18, 1, 3, 3}, t), {.padding = {1, 1}, .groups = 18}));
  }
}

struct Net : nn::Module {
  nn::Conv2d conv{1, 9, 3, {.padding = 1}};
  nn::BatchNorm2d norm{9};
  nn::MaxPool2d pool{2};
  nn::Dropout drop{0.3};
  nn::Linear fc{9 * 16, 10};
  SINTER_MODULE(conv, norm, pool, drop, fc)
  Tensor forward(const Tensor& x) { return fc(drop(pool(relu(norm(conv(x)))).flatten(1))); }
};

// Steps of training, eagerly or captured: the weights afterwards.
std::string Train(bool captured) {
  manual_seed(5);
  Net net;
  optim::Adam adam(net.parameters(), {.lr = 1e-2});
  auto step = [&](const Tensor& x, const Tensor& y) {
    Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    adam.step();
    adam.clear_grad();
    return loss;
  };
  auto compiled = to_static(step, {InputSpec({"n", 1, 8, 8}), InputSpec({"n"}, kInt64)}, {.numerics = Numerics::kExact});
  std::vector<std::string> digests;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = rand({13, 1, 8, 8}), y = (rand({13}) * 10).to(kInt64);
    digests.push_back(DigestOfTensor(captured ? compiled(x, y) : step(x, y)));
  }
  for (const Tensor& p : net.parameters()) digests.push_back(DigestOfTensor(p));
  for (const auto& [name, b] : net.named_buffers()) digests.push_back(DigestOfTensor(b));
  return DigestOfBytes(digests);
}

void Training(Digests& d) {
  d["training"] = Train(false);
  EXPECT_EQ(Train(true), d["training"]);
}

Digests Read(const std::string& path) {
  Digests d;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (const size_t at = line.rfind(' '); at != std::string::npos) d[line.substr(0, at)] = line.substr(at + 1);
  return d;
}

TEST(Golden, DigestsHoldOnThisMachine) {
  Digests now;
  Ops(now);
  Contractions(now);
  Training(now);
  if (const char* out = std::getenv("SINTER_GOLDEN_OUT")) {
    std::ofstream file(out);
    for (const auto& [name, digest] : now) file << name << " " << digest << "\n";
  }
  const Digests golden = Read("tests/golden/golden.txt");
  EXPECT_GT(golden.size(), 60u);
  for (const auto& [name, digest] : golden) {
    if (!now.contains(name)) {
      ADD_FAILURE() << "'" << name << "' is no longer computed";
      continue;
    }
    EXPECT_EQ(now.at(name), digest) << name;
  }
}

// Splitting the work among threads changes nothing either.
TEST(Golden, ThreadsDontMatter) {
  const int before = NumThreads();
  Digests want;
  SetNumThreads(1);
  Contractions(want);
  Training(want);
  for (int threads : {2, 5}) {
    SetNumThreads(threads);
    Digests got;
    Contractions(got);
    Training(got);
    EXPECT_EQ(got, want) << threads;
  }
  SetNumThreads(before);
}

}  // namespace
}  // namespace sinter
