// Matrix products and convolutions against the FMA peak of this machine, measured in the same run: at every
// ISA level and with 1 and 2 threads. `peak` is the share of it; counters are those of the fastest sample, so
// that a busy machine disturbs little. Run with --benchmark_filter='fma_peak|gemm/1024.*' and the like:
// fma_peak must run first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/kernels/conv.h"
#include "sinter/runtime/kernels/gemm.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::benchmarks {
namespace {

using kernels::Gemm;
using kernels::GemmArgs;

struct Machine {
  IsaLevel isa;
  int threads;
  void Use() const {
    SetIsaOverride(isa);
    SetNumThreads(threads);
  }
  std::string Name() const { return std::string(IsaLevelName(isa)) + "/threads:" + std::to_string(threads); }
  auto Key() const { return std::pair(isa, threads); }
};

/// The best rate seen so far for a machine, in flop/s.
std::map<std::pair<IsaLevel, int>, double> peaks;

double Peak(const Machine& machine) { return peaks[machine.Key()]; }

void MeasurePeak(benchmark::State& state, const Machine& machine) {
  machine.Use();
  const auto rounds = machine.isa == IsaLevel::kV4 ? FmaRoundsV4 : FmaRoundsV3;
  double operations = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    int64_t done = 0;
    ParallelFor(machine.threads, [&](int64_t i) {
      const int64_t n = rounds(200000);
      if (i == 0) done = n * machine.threads;
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double& best = peaks[machine.Key()];
    best = std::max(best, static_cast<double>(done) / seconds);
    operations += static_cast<double>(done);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(operations / 1e9, benchmark::Counter::kIsRate);
  state.counters["best"] = Peak(machine) / 1e9;
}

MemoryBlock Filled(int64_t count) {
  MemoryBlock block(ByteCount(count, sizeof(float)));
  for (int64_t i = 0; i < count; ++i)
    block.as<float>()[i] = static_cast<float>(i * 2654435761u >> 20 & 4095) / 4096 - 0.5f;
  return block;
}

/// Times `work` of `flops` each; besides the mean reports the best of many short samples, for noisy machines.
void Measure(benchmark::State& state, const Machine& machine, double flops,
             const std::function<void()>& work) {
  machine.Use();
  work();
  const int repeat = std::max(1, static_cast<int>(2e7 / flops));
  double best = 1e30;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeat; ++i) work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(time.count() / repeat);
    best = std::min(best, time.count() / repeat);
  }
  state.counters["us"] = best * 1e6;
  state.counters["GFLOP/s"] = flops / best / 1e9;
  state.counters["peak"] = flops / best / Peak(machine);
}

enum class RightOperand { kPacked, kRows, kTransposed };

void MeasureGemm(benchmark::State& state, const Machine& machine, int64_t m, int64_t n, int64_t k,
                 RightOperand form) {
  const MemoryBlock a = Filled(m * k), b = Filled(k * n), c = Filled(m * n);
  MemoryBlock packed(ByteCount(kernels::PackedGemmBElements<float>(k, n), sizeof(float)));
  kernels::PackGemmB(b.as<float>(), n, 1, k, n, packed.as<float>());
  GemmArgs<float> args;
  args.m = m, args.n = n, args.k = k;
  args.a = a.as<float>(), args.a_row = k;
  args.b = b.as<float>(), args.b_row = n;
  args.c = c.as<float>(), args.c_row = n;
  if (form == RightOperand::kPacked) args.packed_b = packed.as<float>();
  if (form == RightOperand::kTransposed) args.b_row = 1, args.b_column = k;
  Measure(state, machine, 2.0 * m * n * k, [&] { Gemm(args); });
}

struct ConvCase {
  const char* name;
  int64_t n, size, c, oc, kernel, stride, pad, groups;
};

constexpr ConvCase kConvCases[] = {{"1x64x56x56_3x3_64", 1, 56, 64, 64, 3, 1, 1, 1},
                                   {"1x128x28x28_3x3_128", 1, 28, 128, 128, 3, 1, 1, 1},
                                   {"1x256x14x14_3x3_256", 1, 14, 256, 256, 3, 1, 1, 1},
                                   {"1x512x7x7_3x3_512", 1, 7, 512, 512, 3, 1, 1, 1},
                                   {"1x3x224x224_7x7_64_stride2", 1, 224, 3, 64, 7, 2, 3, 1},
                                   {"1x256x56x56_1x1_64", 1, 56, 256, 64, 1, 1, 0, 1},
                                   {"1x64x112x112_3x3_depthwise", 1, 112, 64, 64, 3, 1, 1, 64}};

void MeasureConv(benchmark::State& state, const Machine& machine, const ConvCase& c,
                 const std::string& pass) {
  kernels::Conv2dShape s;
  s.n = c.n, s.h = s.w = c.size, s.c = c.c, s.oc = c.oc, s.kh = s.kw = c.kernel, s.groups = c.groups;
  s.stride_h = s.stride_w = c.stride;
  s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = c.pad;
  const int64_t inner = s.c / s.groups, positions = s.kh * s.kw, out_pixels = s.n * s.out_h() * s.out_w();
  const MemoryBlock x = Filled(s.n * s.h * s.w * s.c), w = Filled(s.oc * inner * positions),
                    y = Filled(out_pixels * s.oc);
  MemoryBlock packed(ByteCount(kernels::PackedConvWeightElements<float>(s), sizeof(float)));
  const kernels::ConvWeight<const float> weight{w.as<float>(), inner * positions, positions, s.kw, 1};
  kernels::PackConvWeight(s, weight, packed.as<float>());
  Measure(state, machine, 2.0 * static_cast<double>(out_pixels * s.oc * positions * inner), [&] {
    if (pass == "forward") {
      kernels::Conv2dForward<float>(
          {s, x.as<float>(), s.c, weight, packed.as<float>(), y.as<float>(), s.oc, {}});
    } else if (pass == "data_gradient") {
      kernels::Conv2dBackwardData<float>({s, y.as<float>(), s.oc, weight, x.as<float>(), s.c, {}});
    } else {
      const kernels::ConvWeight<float> dw{w.as<float>(), inner * positions, positions, s.kw, 1};
      kernels::Conv2dBackwardWeight<float>({s, x.as<float>(), s.c, y.as<float>(), s.oc, dw});
    }
  });
}

void RegisterAll() {
  std::vector<Machine> machines;
  for (int threads : {1, 2}) {
    machines.push_back({IsaLevel::kV3, threads});
    if (GetCpuInfo().isa == IsaLevel::kV4) machines.push_back({IsaLevel::kV4, threads});
  }
  auto add = [](const std::string& name, auto run) {
    return benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->MinTime(0.1);
  };
  for (const Machine& machine : machines) {
    benchmark::RegisterBenchmark(("fma_peak/" + machine.Name()).c_str(),
                                 [machine](benchmark::State& state) { MeasurePeak(state, machine); })
        ->MinTime(0.2)
        ->UseRealTime();
  }
  struct Shape {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Shape{256, 256, 256},
                                {1024, 1024, 1024},
                                {128, 3072, 768},
                                {128, 768, 3072},
                                {128, 768, 768},
                                {64, 512, 512},
                                {32, 256, 256},
                                {8, 128, 128},
                                {1, 256, 784},
                                {1, 512, 512},
                                {50, 64, 64}}) {
    for (const auto& [form, suffix] : {std::pair(RightOperand::kPacked, "packed"),
                                       {RightOperand::kRows, "rows"},
                                       {RightOperand::kTransposed, "transposed"}}) {
      for (const Machine& machine : machines) {
        const std::string name = "gemm/" + std::to_string(m) + "x" + std::to_string(n) + "x" +
                                 std::to_string(k) + "/" + suffix + "/" + machine.Name();
        add(name, [=, form = form, m = m, n = n, k = k](benchmark::State& state) {
          MeasureGemm(state, machine, m, n, k, form);
        });
      }
    }
  }
  for (const ConvCase& c : kConvCases) {
    for (const char* pass : {"forward", "data_gradient", "weight_gradient"}) {
      for (const Machine& machine : machines) {
        add(std::string("conv/") + c.name + "/" + pass + "/" + machine.Name(),
            [=](benchmark::State& state) { MeasureConv(state, machine, c, pass); });
      }
    }
  }
}

}  // namespace
}  // namespace sinter::benchmarks

int main(int argc, char** argv) {
  sinter::benchmarks::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
