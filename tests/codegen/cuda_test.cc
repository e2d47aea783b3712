#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <span>
#include <thread>

#include "sinter/codegen/cuda/emit_cuda.h"
#include "sinter/codegen/cuda/nvrtc.h"
#include "sinter/graph/error.h"
#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/tests/codegen/op_runner.h"
#include "sinter/tests/sim_cuda/simulate.h"

// The CUDA emitter: its kernels run on the simulated device with the bits of the interpreter, and compile for real devices.
namespace sinter::codegen::testing {
namespace {

using sim_cuda::Grid;
using sim_cuda::SimulateCuda;

const Dim kN = Dim::Symbol("kernel_case_n");

// Two devices that differ in the order of threads and in the shape of the grid: what races would differ.
const Grid kGrids[] = {{3, 64, 1}, {2, 96, 2}};

TEST(Cuda, HandWrittenKernelsEqualInterpreted) {
  struct Case {
    std::string name;
    Kernel kernel;
    std::vector<std::shared_ptr<const CompiledKernel>> simulated;
  };
  std::vector<Case> cases;
  for (const KernelCase& c : AllKernelCases()) {
    cases.push_back({c.name, c.make(kN), {}});
    for (const Grid& grid : kGrids) cases.back().simulated.push_back(SimulateCuda(cases.back().kernel, grid));
  }
  ASSERT_GE(cases.size(), 30u);
  for (const Case& c : cases) {
    const auto oracle = InterpretKernel(c.kernel);
    // Rows also so long that a block goes over them more than once.
    const bool rows = c.name == "softmax" || c.name.starts_with("rows");
    for (int64_t size : {0, 1, 7, 16, 17, 1000, 3001, 40000}) {
      if (size > 10000 && !rows) continue;
      DimEnv env;
      env.Set(kN, size);
      const auto want = RunKernel(c.kernel, *oracle, env);
      for (size_t i = 0; i < c.simulated.size(); ++i)
        EXPECT_TRUE(RunKernel(c.kernel, *c.simulated[i], env, i == 0 ? 1 : 3) == want) << c.name << " n=" << size << " grid " << i;
    }
  }
}

// The kernels of all ops on their samples, by content.
std::map<std::string, Kernel> OpKernels() {
  std::map<std::string, Kernel> kernels;
  const auto keep = [&](const Kernel& k) {
    kernels.emplace(k.ToString(), k);
    return InterpretKernel(k);
  };
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    for (const Sample& s : SamplesOf(*op)) CompileOp(*op, s.attrs, MakeOperands(s), keep, true);
  }
  return kernels;
}

TEST(Cuda, OpsEqualInterpreted) {
  struct Case {
    std::string name;
    std::vector<Operand> operands;
    std::shared_ptr<const Executable> simulated, interpreted;
  };
  // All are emitted first, then compiled for the host together.
  std::vector<Case> cases;
  std::set<std::string> ops;
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    ops.insert(std::string(op->name));
    int number = 0;
    for (const Sample& s : SamplesOf(*op)) {
      Case c{StrCat(op->name, " sample ", number++, " {", AttrsToString(s.attrs), "}"), MakeOperands(s), nullptr, nullptr};
      c.simulated = CompileOp(*op, s.attrs, c.operands, sim_cuda::SimulatorBackend(kGrids[number % 2]), true);
      c.interpreted = CompileOp(*op, s.attrs, c.operands, InterpretKernel, false);
      cases.push_back(std::move(c));
    }
  }
  for (const char* name : {"conv2d", "matmul", "softmax", "max_pool2d", "random_uniform", "cross_entropy"})
    EXPECT_EQ(ops.count(name), 1u) << name << " has no samples";
  for (const Case& c : cases) EXPECT_TRUE(RunOp(*c.simulated, c.operands) == RunOp(*c.interpreted, c.operands)) << c.name;
}

// Many kernels as one program, a namespace each: NVRTC's start costs more than most kernels.
cuda::CudaSource Together(std::span<const cuda::CudaSource> sources) {
  cuda::CudaSource all{"together", "", sources[0].threads};
  for (size_t i = 0; i < sources.size(); ++i)
    StrAppend(&all.text, "#define ", sources[i].name, " kernel_", i, "\nnamespace n", i, " {\n", sources[i].text, "\n}\n#undef ", sources[i].name,
              "\n");
  return all;
}

#define SINTER_NEEDS_NVRTC() \
  if (std::string why; !cuda::NvrtcAvailable(&why)) GTEST_SKIP() << "NOT TESTED: " << why

TEST(Cuda, KernelsCompileForDevices) {
  SINTER_NEEDS_NVRTC();
  const std::vector<int> archs = cuda::NvrtcArchs();
  ASSERT_FALSE(archs.empty());
  std::vector<cuda::CudaSource> sources;
  for (const KernelCase& c : AllKernelCases()) sources.push_back(cuda::EmitCuda(c.make(kN)));
  for (const auto& [content, kernel] : OpKernels()) sources.push_back(cuda::EmitCuda(kernel));
  EXPECT_GT(sources.size(), 150u);
  constexpr size_t kAtOnce = 40;
  std::vector<std::pair<int, size_t>> jobs;
  for (int sm : std::set<int>{80, 90, archs.back()})
    for (size_t from = 0; from < sources.size(); from += kAtOnce) jobs.emplace_back(sm, from);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t job; (job = next++) < jobs.size();) {
      const auto [sm, from] = jobs[job];
      const size_t count = std::min(kAtOnce, sources.size() - from);
      const cuda::CompiledCuda compiled = cuda::CompileCubin(Together(std::span(sources).subspan(from, count)), sm);
      EXPECT_EQ(compiled.cubin.substr(0, 4),
                "\x7f"
                "ELF")
          << "sm_" << sm;
      EXPECT_NE(compiled.ptx.find(StrCat(".target sm_", sm)), std::string::npos);
      EXPECT_EQ(compiled.log, "") << "sm_" << sm;
      for (size_t i = 0; i < count; ++i) EXPECT_NE(compiled.ptx.find(StrCat(".entry kernel_", i, "(")), std::string::npos) << sources[from + i].text;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

TEST(Cuda, NvrtcNamesTheFault) {
  SINTER_NEEDS_NVRTC();
  try {
    cuda::CompileCubin({"broken", "#line 12 \"model.cpp\"\nextern \"C\" __global__ void broken() { undeclared = 1; }\n", 256}, 80);
    FAIL() << "a fault in the source was not found";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(e.message().find("model.cpp(12)"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("undeclared"), std::string::npos) << e.message();
  }
}

// An fma that nobody wrote would change bits; the ones that are written must stay.
TEST(Cuda, NothingIsContracted) {
  SINTER_NEEDS_NVRTC();
  const std::string head = "extern \"C\" __global__ void sinter_kernel(float* x) { x[0] = ";
  const std::string apart = cuda::CompileCubin({"sinter_kernel", head + "x[1] * x[2] + x[3]; }", 256}, 90).ptx;
  EXPECT_EQ(apart.find("fma"), std::string::npos);
  // Where the driver compiles the PTX, what names no rounding may be contracted.
  for (const char* rounded : {"mul.rn.f32", "add.rn.f32"}) EXPECT_NE(apart.find(rounded), std::string::npos) << apart;
  EXPECT_NE(cuda::CompileCubin({"sinter_kernel", head + "fmaf(x[1], x[2], x[3]); }", 256}, 90).ptx.find("fma.rn.f32"), std::string::npos);
}

}  // namespace
}  // namespace sinter::codegen::testing
