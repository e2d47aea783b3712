// The digits net and small calls: eager against compiled. Compare rows of one run.
#include <benchmark/benchmark.h>

#include "sinter/sinter.h"

namespace {

using namespace sinter;

struct Net : nn::Module {
  nn::Conv2d conv1{1, 16, 3, {.padding = 1, .bias = false}}, conv2{16, 32, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm1{16}, norm2{32};
  nn::MaxPool2d pool{2};
  nn::Dropout drop{0.25};
  nn::Linear fc{128, 10};
  SINTER_MODULE(conv1, conv2, norm1, norm2, pool, drop, fc)
  Tensor forward(const Tensor& x) {
    Tensor h = pool(relu(norm1(conv1(x))));
    h = pool(relu(norm2(conv2(h))));
    return fc(drop(h.flatten(1)));
  }
};

void NetEager(benchmark::State& state) {
  Net net;
  net.eval();
  NoGradGuard no_grad;
  const Tensor x = rand({state.range(0), 1, 8, 8});
  for (auto _ : state) benchmark::DoNotOptimize(net(x));
}
BENCHMARK(NetEager)->Arg(1)->Arg(32)->Arg(360);

void NetCompiled(benchmark::State& state) {
  Net net;
  net.eval();
  NoGradGuard no_grad;
  auto f = to_static(net, {InputSpec({kDynamic, 1, 8, 8})});
  const Tensor x = rand({state.range(0), 1, 8, 8});
  f(x);
  // The sum of the steps' own times, on one thread.
  const tracer::Entry& e = *f.core().entries()[0];
  std::vector<TensorView> in = {{x.impl().data(), kFloat32, x.impl().shape, x.impl().strides}};
  for (const auto& s : e.externals) in.push_back({s.Current().data(), s.Current().dtype, s.Current().shape, s.Current().strides});
  Tensor y = f(x);
  const TensorView out[] = {{y.impl().data(), kFloat32, y.impl().shape, y.impl().strides}};
  double best = 1e9;
  for (int i = 0; i < 50; ++i) {
    double sum = 0;
    for (const StepProfile& p : e.executable->Profile(in, out)) sum += p.seconds;
    best = std::min(best, sum);
  }
  for (auto _ : state) benchmark::DoNotOptimize(f(x));
  state.counters["steps_us"] = 1e6 * best;
}
BENCHMARK(NetCompiled)->Arg(1)->Arg(32)->Arg(360);

template <bool compiled>
void TrainStep(benchmark::State& state) {
  Net net;
  optim::Adam adam(net.parameters());
  auto step = [&](const Tensor& x, const Tensor& y) {
    Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    adam.step();
    adam.clear_grad();
    return loss;
  };
  auto f = to_static(step, {InputSpec({32, 1, 8, 8}), InputSpec({32}, kInt64)}, {.numerics = Numerics::kExact});
  const Tensor x = rand({32, 1, 8, 8}), y = randint({32}, 0, 10);
  if (compiled) f(x, y);  // compiles
  for (auto _ : state) benchmark::DoNotOptimize(compiled ? f(x, y) : step(x, y));
}
BENCHMARK(TrainStep<false>)->Name("TrainStepEager");
BENCHMARK(TrainStep<true>)->Name("TrainStepCompiled");

void EagerAdd(benchmark::State& state) {
  NoGradGuard no_grad;
  const Tensor x = rand({16}), y = rand({16});
  for (auto _ : state) benchmark::DoNotOptimize(x + y);
}
BENCHMARK(EagerAdd);

void EagerAddWithGradient(benchmark::State& state) {
  Parameter x(rand({16}));
  const Tensor y = rand({16});
  for (auto _ : state) benchmark::DoNotOptimize(x + y);
}
BENCHMARK(EagerAddWithGradient);

void CompiledAdd(benchmark::State& state) {
  NoGradGuard no_grad;
  auto f = to_static([](const Tensor& x, const Tensor& y) { return x + y; }, {InputSpec({"n"}), InputSpec({"n"})});
  const Tensor x = rand({16}), y = rand({16});
  f(x, y);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
BENCHMARK(CompiledAdd);

void Matmul(benchmark::State& state) {
  NoGradGuard no_grad;
  const int64_t n = state.range(0);
  const Tensor a = rand({n, n}), b = rand({n, n});
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b));
  state.counters["GFLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(n * n * n) * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
}
BENCHMARK(Matmul)->Arg(256)->Arg(1024)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
