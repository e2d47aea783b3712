// What shares a kernel, and what can't.
#include <gtest/gtest.h>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen {
namespace {

// The most buffers of one kernel of a program of many arguments, after running it on arguments of i in [0, n) and checking the sum.
int WidestKernel(int n, DType last, const std::function<Var(std::vector<Var>)>& build, const std::function<void(const TensorView&)>& check) {
  Graph g;
  GraphBuilder b(g.body);
  std::vector<Var> args;
  for (int i = 0; i < n; ++i) args.push_back(b.Wrap(g.AddArg({i + 1 == n ? last : kFloat32, {Dim(3)}}, StrCat("x", i))));
  g.SetOutputs({GraphBuilder::Unwrap(build(args))});
  Optimize(g);
  auto executable = CompileInterpreted(g);
  std::vector<std::vector<float>> data(static_cast<size_t>(n));
  const std::vector<int32_t> ints(3, n - 1);
  const Shape sizes = {3}, strides = {1};
  std::vector<TensorView> in;
  for (int i = 0; i < n; ++i) {
    auto& d = data[static_cast<size_t>(i)];
    d.assign(3, static_cast<float>(i));
    in.push_back({i + 1 == n && last == kInt32 ? static_cast<void*>(const_cast<int32_t*>(ints.data())) : d.data(), i + 1 == n ? last : kFloat32, sizes, strides});
  }
  const DimEnv env = executable->Bind(in);
  const HostOutputs out = AllocateOutputs(*executable, env);
  executable->Run(env, in, out.views);
  check(out.views[0]);
  size_t most = 0;
  for (const PlanStep& s : executable->plan().steps)
    if (s.kind == PlanStep::Kind::kKernel) most = std::max(most, s.buffers.size());
  return static_cast<int>(most);
}

TEST(Fusion, KernelsHaveNoMoreBuffersThanTheyMay) {
  const int limit = FusionOptions().max_buffers;
  for (int n : {2, 47, 48, 49, 150, 700}) {
    EXPECT_LE(WidestKernel(n, kFloat32, [](std::vector<Var> x) {
      Var y = x[0];
      for (size_t i = 1; i < x.size(); ++i) y = add(y, x[i]);
      return y;
    }, [&](const TensorView& y) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(y.as<float>()[i], static_cast<float>(n * (n - 1) / 2));
    }), limit) << n;
    EXPECT_LE(WidestKernel(n, kInt32, [](std::vector<Var> x) { return concat(x, {.dim = 0}); }, [&](const TensorView& y) {
      for (int i = 0; i < 3 * n; ++i) EXPECT_EQ(y.as<float>()[i], static_cast<float>(i / 3));
    }), limit) << n;
    // Each operand of the concat reads several.
    EXPECT_LE(WidestKernel(n, kFloat32, [](std::vector<Var> x) {
      std::vector<Var> sums;
      for (size_t i = 0; i < x.size(); i += 10) {
        Var y = x[i];
        for (size_t k = i + 1; k < std::min(x.size(), i + 10); ++k) y = add(y, x[k]);
        sums.push_back(y);
      }
      return concat(sums, {.dim = 0});
    }, [&](const TensorView& y) {
      for (int i = 0; i < y.numel(); ++i) {
        float sum = 0;
        for (int k = i / 3 * 10; k < std::min(n, i / 3 * 10 + 10); ++k) sum += static_cast<float>(k);
        EXPECT_EQ(y.as<float>()[i], sum);
      }
    }), limit) << n;
  }
}

}  // namespace
}  // namespace sinter::codegen
