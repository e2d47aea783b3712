// Kernels on one thread, compiled and interpreted: a sum and a chain of elementary functions, softmax of rows, sums of rows and of columns, next to
// memcpy of as many bytes. `bytes` counts what a kernel has to read and write at least; compile times are of kernels that no cache has.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/codegen/cpu/jit.h"
#include "sinter/codegen/kernel.h"
#include "sinter/graph/num.h"
#include "sinter/graph/ops/math.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/memory.h"

namespace sinter::benchmarks {
namespace {

using codegen::BufferRole;
using codegen::CpuTarget;
using codegen::Kernel;
using codegen::KernelStage;
using codegen::VectorAxis;

template <class T>
Expr CallOf(const Expr& x) { return CallExpr(DefOf<T>(), nullptr, {x}); }

// A kernel over x [rows, columns] with one result of that shape, or of one dimension.
struct Workload {
  Kernel kernel;
  int64_t bytes = 0;
};

codegen::KernelBuffer Buffer(SymShape shape, BufferRole role) {
  std::vector<int> order;
  for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int>(d));
  return {kFloat32, std::move(shape), std::move(order), role};
}

Expr Loop(std::vector<LoopVar>& loops, int64_t extent) {
  loops.push_back({FreshIndex(), extent});
  return Expr::Index(loops.back().id);
}

Workload Pointwise(int64_t n, int inputs, Expr (*body)(std::span<const Expr>)) {
  Kernel k;
  Expr i = Loop(k.outer, n);
  std::vector<Expr> x;
  for (int b = 0; b < inputs; ++b) {
    k.buffers.push_back(Buffer({n}, BufferRole::kInput));
    x.push_back(Expr::Load(b, kFloat32, {i}));
  }
  k.buffers.push_back(Buffer({n}, BufferRole::kOutput));
  k.stages.push_back({{}, {{inputs, {i}, ExpandCalls(body(x))}}, VectorAxis::kOuter});
  return {std::move(k), n * 4 * (inputs + 1)};
}

Expr AddBody(std::span<const Expr> x) { return x[0] + x[1]; }
Expr ExpBody(std::span<const Expr> x) { return CallOf<ops::Exp>(x[0]); }
Expr ChainBody(std::span<const Expr> x) { return CallOf<ops::Tanh>(CallOf<ops::Exp>(x[0] * 0.5) - 1.0) * CallOf<ops::Log>(num::Abs(x[0]) + 1.0); }

Workload Softmax(int64_t rows, int64_t columns) {
  Kernel k;
  Expr i = Loop(k.outer, rows);
  k.buffers = {Buffer({rows, columns}, BufferRole::kInput), Buffer({}, BufferRole::kLocal), Buffer({columns}, BufferRole::kLocal), Buffer({}, BufferRole::kLocal),
               Buffer({rows, columns}, BufferRole::kOutput)};
  auto reduce = [&](ReduceKind kind, bool input) {
    std::vector<LoopVar> loops;
    Expr j = Loop(loops, columns);
    Expr v = input ? Expr::Load(0, kFloat32, {i, j}) : Expr::Load(2, kFloat32, {j});
    return Expr::Reduce(kind, loops, {v});
  };
  k.stages.push_back({{}, {{1, {}, reduce(ReduceKind::kMax, true)}}, VectorAxis::kReduction});
  KernelStage e;
  Expr j = Loop(e.inner, columns);
  e.stores.push_back({2, {j}, ExpandCalls(CallOf<ops::Exp>(Expr::Load(0, kFloat32, {i, j}) - Expr::Load(1, kFloat32, {})))});
  k.stages.push_back(std::move(e));
  k.stages.push_back({{}, {{3, {}, reduce(ReduceKind::kSum, false)}}, VectorAxis::kReduction});
  KernelStage d;
  Expr h = Loop(d.inner, columns);
  d.stores.push_back({4, {i, h}, Expr::Load(2, kFloat32, {h}) / Expr::Load(3, kFloat32, {})});
  k.stages.push_back(std::move(d));
  return {std::move(k), rows * columns * 8};
}

Workload Sum(int64_t rows, int64_t columns, bool of_columns) {
  Kernel k;
  const int64_t results = of_columns ? columns : rows;
  Expr i = Loop(k.outer, results);
  k.buffers = {Buffer({rows, columns}, BufferRole::kInput), Buffer({results}, BufferRole::kOutput)};
  std::vector<LoopVar> loops;
  Expr j = Loop(loops, of_columns ? rows : columns);
  Expr v = Expr::Load(0, kFloat32, of_columns ? std::vector{j, i} : std::vector{i, j});
  k.stages.push_back({{}, {{1, {i}, Expr::Reduce(ReduceKind::kSum, loops, {v})}}, of_columns ? VectorAxis::kOuter : VectorAxis::kReduction});
  return {std::move(k), rows * columns * 4};
}

void Run(benchmark::State& state, const Workload& w, const CompiledKernel& code) {
  std::vector<MemoryBlock> memory;
  std::vector<void*> pointers;
  for (const auto& b : w.kernel.buffers) {
    int64_t n = 1;
    for (Dim d : b.shape) n *= d.value();
    memory.emplace_back(static_cast<size_t>(n * 4));
    float* x = memory.back().as<float>();
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 113) * 0.05f - 2.f;
    pointers.push_back(x);
  }
  MemoryBlock scratch(static_cast<size_t>(codegen::ScratchBytes(w.kernel).value()) + 64);
  const int64_t points = codegen::OuterPoints(w.kernel).value();
  for (auto _ : state) code.Run(pointers.data(), nullptr, 0, points, scratch.as<std::byte>());
  state.SetBytesProcessed(state.iterations() * w.bytes);
}

void Memcpy(benchmark::State& state, int64_t bytes) {
  MemoryBlock from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
  std::memset(from.as<char>(), 1, static_cast<size_t>(bytes));
  for (auto _ : state) {
    std::memcpy(to.as<char>(), from.as<char>(), static_cast<size_t>(bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes * 2);
}

void CompileTime(benchmark::State& state, const Workload& w, const CpuTarget& target) {
  size_t size = 0;
  for (auto _ : state) {
    const std::string object = codegen::cpu::CompileToObject(w.kernel, target);
    benchmark::DoNotOptimize(codegen::cpu::LoadObject(object));
    size = object.size();
  }
  state.counters["object_bytes"] = static_cast<double>(size);
}

void RegisterAll() {
  const std::vector<std::pair<std::string, Workload>> workloads = {
      {"add/16k", Pointwise(16384, 2, AddBody)},
      {"add/4M", Pointwise(1 << 22, 2, AddBody)},
      {"exp/16k", Pointwise(16384, 1, ExpBody)},
      {"chain/16k", Pointwise(16384, 1, ChainBody)},
      {"softmax/4096x1024", Softmax(4096, 1024)},
      {"softmax/4096x100", Softmax(4096, 100)},
      {"sum_rows/4096x1024", Sum(4096, 1024, false)},
      {"sum_columns/4096x1024", Sum(4096, 1024, true)},
  };
  std::vector<std::pair<std::string, CpuTarget>> targets = {{"v3w8", {8, false}}, {"v3w16", {16, false}}};
  if (GetCpuInfo().isa == IsaLevel::kV4) targets.push_back({"v4w16", {16, true}});
  for (const auto& [name, w] : workloads)
    benchmark::RegisterBenchmark((name + "/interpreted").c_str(), [w = w](benchmark::State& s) { Run(s, w, *codegen::InterpretKernel(w.kernel)); });
  for (const auto& [name, w] : workloads)
    for (const auto& [target_name, target] : targets) {
      benchmark::RegisterBenchmark((name + "/" + target_name).c_str(), [w = w, target = target](benchmark::State& s) { Run(s, w, *codegen::CompileCpuKernel(w.kernel, target)); });
      benchmark::RegisterBenchmark(("compile/" + name + "/" + target_name).c_str(), [w = w, target = target](benchmark::State& s) { CompileTime(s, w, target); })
          ->Unit(benchmark::kMillisecond);
    }
  for (int64_t bytes : {65536, 1 << 24}) benchmark::RegisterBenchmark(("memcpy/" + std::to_string(bytes)).c_str(), [bytes](benchmark::State& s) { Memcpy(s, bytes); });
}

}  // namespace
}  // namespace sinter::benchmarks

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  sinter::benchmarks::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
