#include <gtest/gtest.h>

#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/tests/codegen/op_runner.h"

// Every op of the registry on its own samples: the compiled code gives the bits of the interpreter.
namespace sinter::codegen::testing {
namespace {

TEST(OpKernels, CompiledEqualsInterpreted) {
  std::vector<CpuTarget> targets = {{8, false}, {16, GetCpuInfo().isa == IsaLevel::kV4}};
  int ops = 0;
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    ++ops;
    int number = 0;
    for (const Sample& s : SamplesOf(*op)) {
      SCOPED_TRACE(StrCat(op->name, " sample ", number++, " {", AttrsToString(s.attrs), "}"));
      const std::vector<Operand> operands = MakeOperands(s);
      const auto want = RunOp(*CompileOp(*op, s.attrs, operands, InterpretKernel, false), operands);
      for (const CpuTarget& target : targets) {
        const auto backend = [&](const Kernel& k) { return CompileCpuKernel(k, target); };
        const auto got = RunOp(*CompileOp(*op, s.attrs, operands, backend, target.width == 16), operands);
        EXPECT_TRUE(got == want) << "width " << target.width;
      }
    }
  }
  EXPECT_GT(ops, 60);
}

}  // namespace
}  // namespace sinter::codegen::testing
