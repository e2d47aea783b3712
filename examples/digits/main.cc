// The main job: train a classifier of handwritten digits eagerly and as one compiled program, compile it for any batch size, save it, and
// serve it from another process.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "examples/digits/cuda.h"
#include "examples/digits/net.h"
#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/thread_pool.h"
#include "sinter/serialize/format/npy.h"

namespace digits {
namespace {

using namespace sinter;

constexpr int64_t kBatch = 32;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double Best(const std::function<void()>& f, int rounds = 30) {
  double best = 1e9;
  f();
  for (int i = 0; i < rounds; ++i) {
    const double start = Now();
    f();
    best = std::min(best, Now() - start);
  }
  return best;
}

double Accuracy(const Tensor& logits, const Tensor& labels) {
  const std::vector<int64_t> guess = logits.argmax(1).ToVector<int64_t>(), want = labels.ToVector<int64_t>();
  int64_t right = 0;
  for (size_t i = 0; i < guess.size(); ++i) right += guess[i] == want[i];
  return static_cast<double>(right) / static_cast<double>(guess.size());
}

void Progress(const char* what, int epoch, int epochs, int64_t step, int64_t steps, double loss) {
  const int width = 24, full = static_cast<int>((epoch * steps + step) * width / (epochs * steps));
  std::printf("\r%s [%.*s%.*s] epoch %d/%d loss %.4f ", what, full, "########################", width - full, "........................", epoch + 1, epochs, loss);
  std::fflush(stdout);
}

struct Run {
  Net net;
  std::vector<float> losses;
  double seconds = 0;  // of the steps, without the first
};

// Trains from a fixed seed. `wrap` makes the step that is called: the eager one, or its compiled form.
using Step = std::function<Tensor(const Tensor&, const Tensor&)>;
Run Train(const Data& data, int epochs, const char* what, const std::function<Step(Step)>& wrap) {
  manual_seed(42);
  Run run;
  run.net.train();
  optim::Adam adam(run.net.parameters(), {.lr = 2e-3});
  Step step = wrap([&](const Tensor& x, const Tensor& y) {
    Tensor loss = nn::cross_entropy(run.net(x), y);
    loss.backward();
    adam.step();
    adam.clear_grad();
    return loss;
  });
  Generator shuffle(7);
  const int64_t n = 1437, steps = n / kBatch;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<int64_t> order = shuffle.permutation(n);
    const float* pixels = data.train_x.data<float>();
    const int64_t* labels = data.train_y.data<int64_t>();
    for (int64_t s = 0; s < steps; ++s) {
      std::vector<float> x(kBatch * 64);
      std::vector<int64_t> y(kBatch);
      for (int64_t i = 0; i < kBatch; ++i) {
        const int64_t from = order[static_cast<size_t>(s * kBatch + i)];
        std::memcpy(x.data() + i * 64, pixels + from * 64, 64 * sizeof(float));
        y[static_cast<size_t>(i)] = labels[from];
      }
      const Tensor bx = from_vector(x, Shape{kBatch, 1, 8, 8}), by = from_vector(y);
      const double start = Now();
      const Tensor loss = step(bx, by);
      if (!run.losses.empty()) run.seconds += Now() - start;
      run.losses.push_back(loss.item<float>());
      if (s % 8 == 0 || s + 1 == steps) Progress(what, epoch, epochs, s + 1, steps, run.losses.back());
    }
  }
  std::puts("");
  run.net.eval();
  return run;
}

bool SameBits(const Tensor& a, const Tensor& b) { return DifferenceOf(a, b, Numerics::kExact).empty(); }

double LargestDifference(const Tensor& a, const Tensor& b) {
  return static_cast<double>((a - b).abs().max().item<float>());
}

// Trains again from the same seed, with the whole step captured.
bool TrainBothWays(const Data& data, int epochs, Run& eager) {
  NoGradGuard no_grad;
  const double accuracy = Accuracy(eager.net(data.test_x), data.test_y);
  std::printf("   test accuracy %.2f %% (seed 42: the same on every run)\n\n2. the same training, each step one compiled program (kExact)\n", 100 * accuracy);
  EnableGradGuard grad;
  std::string explain;
  Run compiled = Train(data, epochs, "   compiled", [&](Step s) -> Step {
    auto f = to_static(s, {InputSpec({kBatch, 1, 8, 8}), InputSpec({kBatch}, kInt64)}, {.numerics = Numerics::kExact, .name = "train_step"});
    return [f, &explain](const Tensor& x, const Tensor& y) {
      Tensor loss = f(x, y);
      if (explain.empty()) explain = f.explain();
      return loss;
    };
  });
  const bool same = eager.losses.size() == compiled.losses.size() && std::memcmp(eager.losses.data(), compiled.losses.data(), eager.losses.size() * sizeof(float)) == 0;
  bool weights = true;
  auto a = eager.net.named_parameters(), b = compiled.net.named_parameters();
  for (size_t i = 0; i < a.size(); ++i) weights = weights && SameBits(a[i].second, b[i].second);
  std::printf("   %zu losses: %s; weights after training: %s\n", eager.losses.size(), same ? "bit for bit the eager ones" : "DIFFERENT", weights ? "the same bits" : "DIFFERENT");
  std::printf("   eager %.3f ms a step, compiled %.3f ms: %.2f times as fast\n", 1e3 * eager.seconds / static_cast<double>(eager.losses.size() - 1),
              1e3 * compiled.seconds / static_cast<double>(compiled.losses.size() - 1), eager.seconds / compiled.seconds);
  const size_t line = explain.find("captured in");
  if (line != std::string::npos) std::printf("   %s\n", explain.substr(line, explain.find("\n  state", line) - line).c_str());
  return same && weights && accuracy >= 0.98;
}

bool CompareCompiled(const Data& data, Run& run) {
  std::puts("\n3. to_static with a dynamic batch");
  Net& net = run.net;
  auto exact = to_static(net, {InputSpec({kDynamic, 1, 8, 8}, kFloat32, "image")}, {.numerics = Numerics::kExact, .name = "digits"});
  auto relaxed = to_static(net, {InputSpec({kDynamic, 1, 8, 8}, kFloat32, "image")}, {.name = "digits"});
  bool ok = true;
  {
    NoGradGuard no_grad;
    for (int64_t n : {1, 7, 32, 360}) {
      const Tensor x = data.test_x.slice(0, 0, n).contiguous(), want = net(x);
      const bool same = SameBits(want, exact(x));
      std::printf("   batch %3lld: kExact %s, kDefault differs by at most %.2g\n", static_cast<long long>(n), same ? "the same bits" : "DIFFERENT", LargestDifference(want, relaxed(x)));
      ok = ok && same;
    }
  }
  std::printf("   programs compiled: %d\n", exact.num_entries());
  // Train on: the compiled function reads the parameters, not copies.
  net.train();
  optim::SGD sgd(net.parameters(), {.lr = 1e-2});
  nn::cross_entropy(net(data.train_x.slice(0, 0, 32).contiguous()), data.train_y.slice(0, 0, 32).contiguous()).backward();
  sgd.step();
  sgd.clear_grad();
  net.eval();
  NoGradGuard no_grad;
  const Tensor x = data.test_x.slice(0, 0, 7).contiguous();
  const bool seen = SameBits(net(x), exact(x));
  std::printf("   after one more training step the compiled function %s\n", seen ? "sees the new weights" : "is STALE");
  return ok && seen;
}

void Table(const Data& data, Run& run) {
  std::printf("\n4. figures (%s, %d threads)\n", GetCpuInfo().brand.c_str(), NumThreads());
  NoGradGuard no_grad;
  Net& net = run.net;
  codegen::ClearKernelCache(true);
  const double cold_start = Now();
  auto fused = to_static(net, {InputSpec({kDynamic, 1, 8, 8})}, {.name = "digits"});
  fused.compile();
  const double cold = Now() - cold_start;
  auto plain = to_static(net, {InputSpec({kDynamic, 1, 8, 8})}, {.fuse = false, .name = "digits_unfused"});
  plain.compile();
  codegen::ClearKernelCache(false);
  const double warm_start = Now();
  to_static(net, {InputSpec({kDynamic, 1, 8, 8})}, {.name = "digits"}).compile();
  const double warm = Now() - warm_start;
  auto kernels = [](const auto& f) { return f.core().entries()[0]->executable->NumKernels(); };
  std::printf("   kernels: %d before fusion, %d after; capture and compile: cold %.0f ms, warm (kernels from disk) %.0f ms\n", kernels(plain), kernels(fused), 1e3 * cold, 1e3 * warm);
  std::puts("   batch   eager ms   compiled ms   ratio   intermediates KiB: unplanned   planned");
  for (int64_t n : {1, 7, 32, 360}) {
    const Tensor x = data.test_x.slice(0, 0, n).contiguous();
    const double e = Best([&] { net(x); }), c = Best([&] { fused(x); });
    const Executable& program = *fused.core().entries()[0]->executable;
    DimEnv env;
    for (Dim d : fused.graph().Symbols()) env.Set(d, n);
    std::printf("   %5lld %10.3f %13.3f %7.2f %29.1f %9.1f\n", static_cast<long long>(n), 1e3 * e, 1e3 * c, e / c, static_cast<double>(program.PeakBytes(env, false)) / 1024,
                static_cast<double>(program.PeakBytes(env, true)) / 1024);
  }
}

bool Serve(const Data& data, Run& run, const std::string& sinter, const std::string& out) {
  std::puts("\n5. save, and serve from another process");
  NoGradGuard no_grad;
  auto f = to_static(run.net, {InputSpec({kDynamic, 1, 8, 8}, kFloat32, "image")}, {.numerics = Numerics::kExact, .name = "digits"});
  const Tensor logits = f(data.test_x).contiguous();
  jit::save(f, out, {.metadata = {{"labels", "0 1 2 3 4 5 6 7 8 9"}, {"preprocessing", "pixels / 16"}}});
  auto bytes = [](const Tensor& t) { return std::span(reinterpret_cast<const std::byte*>(t.impl().data()), static_cast<size_t>(t.numel()) * ItemSize(t.dtype())); };
  format::WriteNpy(out + "_test.npy", kFloat32, data.test_x.shape(), bytes(data.test_x));
  format::WriteNpy(out + "_labels.npy", kInt64, data.test_y.shape(), bytes(data.test_y));
  const TensorImpl& l = logits.impl();
  const std::string digest = DigestOf(TensorView{l.data(), l.dtype, l.shape, l.strides});
  std::printf("   here:  accuracy %.4f, logits %s\n", Accuracy(logits, data.test_y), digest.c_str());
  const std::string command = sinter + " run " + out + " --input " + out + "_test.npy --labels " + out + "_labels.npy";
  std::printf("   there: %s\n", command.c_str());
  std::fflush(stdout);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return false;
  std::string text;
  char line[512];
  while (std::fgets(line, sizeof line, pipe)) {
    std::printf("          %s", line);
    text += line;
  }
  const bool ok = pclose(pipe) == 0 && text.find(digest) != std::string::npos;
  std::printf("   %s\n", ok ? "the same digest" : "DIFFERENT");
  return ok;
}

int Main(int argc, char** argv) {
  std::string path = ".cache/digits.csv.gz", sinter = "bazel-bin/cli/sinter", out = ".cache/digits_model";
  int epochs = 15;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--data") path = argv[i + 1];
    else if (key == "--sinter") sinter = argv[i + 1];
    else if (key == "--out") out = argv[i + 1];
    else if (key == "--epochs") epochs = std::atoi(argv[i + 1]);
    else throw Error(ErrorCode::kInvalidArgument, "unknown option " + key);
  }
  const Data data = ReadDigits(path);
  std::puts("1. eager training");
  Run run = Train(data, epochs, "   eager   ", [](Step s) { return s; });
  bool ok = TrainBothWays(data, epochs, run);
  ok = CompareCompiled(data, run) && ok;
  Table(data, run);
  ok = Serve(data, run, sinter, out) && ok;
  std::puts("\n6. CUDA");
  NoGradGuard no_grad;
  auto f = to_static(run.net, {InputSpec({kDynamic, 1, 8, 8}, kFloat32, "image")}, {.numerics = Numerics::kExact, .name = "digits"});
  f.compile();
  ok = ShowCuda(*f.core().entries()[0]) && ok;
  std::puts(ok ? "\nall as promised" : "\nSOMETHING DIFFERS: see above");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  try {
    return digits::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
