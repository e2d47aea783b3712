#include "sinter/cli/doctor.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sinter/cli/commands.h"
#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/codegen/cuda/device.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/executable.h"

namespace sinter {
namespace {

// y = sum(a b), with the gradients of a and b: results y, da, db.
std::vector<std::vector<float>> MatmulWithGradient(bool compiled, int64_t n) {
  Graph g;
  g.numerics = Numerics::kExact;
  const TensorType t{kFloat32, {n, n}};
  Value *a = g.AddArg(t, "a"), *b = g.AddArg(t, "b");
  GraphBuilder builder(g.body);
  Value* y = GraphBuilder::Unwrap(sum(matmul(builder.Wrap(a), builder.Wrap(b))));
  Value* wrt[] = {a, b};
  std::vector<Value*> grads = Differentiate(g.body, y, nullptr, wrt);
  g.SetOutputs({y, grads[0], grads[1]});
  codegen::Optimize(g);
  codegen::CompileOptions o;
  o.fusion.enabled = compiled;
  o.backend = compiled ? codegen::CpuBackend() : codegen::KernelBackend(codegen::InterpretKernel);
  auto executable = codegen::Compile(g, o);
  std::vector<std::vector<float>> in(2, std::vector<float>(static_cast<size_t>(n * n))), out = {{0}, in[0], in[0]};
  for (size_t i = 0; i < in[0].size(); ++i) in[0][i] = static_cast<float>(static_cast<double>(i * 7919 % 1009) / 1009 - 0.5), in[1][i] = static_cast<float>(static_cast<double>(i * 104729 % 997) / 997 - 0.5);
  const Shape square = {n, n}, strides = {n, 1}, none;
  const TensorView inputs[] = {{in[0].data(), kFloat32, square, strides}, {in[1].data(), kFloat32, square, strides}};
  const TensorView outputs[] = {{out[0].data(), kFloat32, none, none}, {out[1].data(), kFloat32, square, strides}, {out[2].data(), kFloat32, square, strides}};
  executable->Run(inputs, outputs);
  return out;
}

}  // namespace

CheckResult run_check() {
  CheckResult r;
  const CpuInfo& cpu = GetCpuInfo();
  StrAppend(&r.report, "cpu       ", cpu.brand, ", ", AvailableCores(), " cores, ", ActiveIsa() == IsaLevel::kV4 ? "AVX-512 (x86-64-v4)" : "AVX2 (x86-64-v3)", "\n");
  const codegen::CpuTarget target = codegen::HostTarget();
  StrAppend(&r.report, "kernels   LLVM, vectors of ", target.width, " floats\n");
  const char* cache = std::getenv("SINTER_CACHE_DIR");
  const char* home = std::getenv("HOME");
  StrAppend(&r.report, "cache     ", cache ? (*cache ? cache : "off (SINTER_CACHE_DIR is empty)") : StrCat(home ? home : "", "/.cache/sinter"), "\n");
  StrAppend(&r.report, codegen::cuda::DescribeCuda());
  try {
    const auto plain = MatmulWithGradient(false, 37), compiled = MatmulWithGradient(true, 37);
    r.ok = true;
    for (size_t i = 0; i < plain.size(); ++i) r.ok = r.ok && std::memcmp(plain[i].data(), compiled[i].data(), plain[i].size() * sizeof(float)) == 0;
    StrAppend(&r.report, "check     matmul with gradient, op by op against compiled: ", r.ok ? "the same bits" : "DIFFERENT", "\n");
  } catch (const std::exception& e) {
    StrAppend(&r.report, "check     failed: ", e.what(), "\n");
  }
  return r;
}

namespace cli {

int Doctor(const std::vector<std::string>& args) {
  if (!args.empty()) throw Error(ErrorCode::kInvalidArgument, "doctor takes no arguments");
  const CheckResult r = run_check();
  std::fputs(r.report.c_str(), stdout);
  std::puts(r.ok ? "all is well" : "something is wrong: see above");
  return r.ok ? 0 : 1;
}

}  // namespace cli
}  // namespace sinter
