#include <gtest/gtest.h>

#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/codegen/cpu/jit.h"
#include "sinter/runtime/cpu_info.h"

namespace sinter::codegen::testing {
namespace {

std::vector<CpuTarget> Targets() {
  std::vector<CpuTarget> targets = {{8, false}, {16, false}};
  if (GetCpuInfo().isa == IsaLevel::kV4) targets.push_back({16, true}), targets.push_back({8, true});
  return targets;
}

class KernelCases : public ::testing::TestWithParam<KernelCase> {};

// Whatever axis the lanes run over, the bits are those of the interpreter.
TEST_P(KernelCases, CompiledEqualsInterpreted) {
  const Dim n = Dim::Symbol("kernel_case_n");
  const std::vector<CpuTarget> targets = Targets();
  int next = 0;
  for (int axis = -1; axis < 4; ++axis) {
    Kernel k = GetParam().make(n);
    if (axis >= 0)
      for (KernelStage& s : k.stages) s.vector = static_cast<VectorAxis>(axis);
    auto oracle = InterpretKernel(k);
    // As it is meant: on every target; with other axes: on one.
    for (size_t t = 0; t < (axis < 0 ? targets.size() : 1); ++t) {
      const CpuTarget target = axis < 0 ? targets[t] : targets[next++ % targets.size()];
      auto compiled = CompileCpuKernel(k, target);
      for (int64_t size : {0, 1, 7, 16, 17, 1000, 3001}) {
        DimEnv env;
        env.Set(n, size);
        const auto want = RunKernel(k, *oracle, env);
        for (int pieces : {1, 3})
          ASSERT_TRUE(RunKernel(k, *compiled, env, pieces) == want)
              << GetParam().name << " n=" << size << " width " << target.width << (target.avx512 ? " v4" : " v3") << " axis " << axis << " pieces " << pieces;
      }
    }
  }
}

TEST_P(KernelCases, ConstantSizes) {
  for (int64_t size : {1, 7, 16, 33, 1030}) {
    const Kernel k = GetParam().make(size);
    const auto want = RunKernel(k, *InterpretKernel(k), {});
    const CpuTarget target = Targets()[size % Targets().size()];
    ASSERT_TRUE(RunKernel(k, *CompileCpuKernel(k, target), {}) == want) << GetParam().name << " n=" << size << " width " << target.width;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelCases, ::testing::ValuesIn(AllKernelCases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter::codegen::testing
