// A library may do a contraction under kDefault, within a stated bound, and never under kExact.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sinter/codegen/claims/claims.h"
#include "sinter/codegen/compile.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/runtime/cpu_info.h"

namespace sinter::codegen {
namespace {

std::vector<float> Product(Numerics numerics, const std::vector<float>& a, const std::vector<float>& b, int64_t n, bool transposed, CompileReport* report) {
  Graph g;
  g.numerics = numerics;
  Value *x = g.AddArg({kFloat32, {n, n}}, "a"), *y = g.AddArg({kFloat32, {n, n}}, "b");
  if (transposed) y = g.AddNode(g.body, GetOp("permute"), GetOp("permute").parse_attrs(std::vector<AttrField>{{"dims", std::vector<int64_t>{1, 0}}}), {y})->out();
  g.SetOutputs({g.AddNode(g.body, DefOf<ops::Matmul>(), nullptr, {x, y})->out()});
  CompileOptions o;
  o.backend = InterpretKernel;
  auto e = Compile(g, o, report);
  std::vector<float> c(a.size());
  const Shape shape = {n, n}, strides = {n, 1};
  const TensorView in[] = {{const_cast<float*>(a.data()), kFloat32, shape, strides}, {const_cast<float*>(b.data()), kFloat32, shape, strides}}, out[] = {{c.data(), kFloat32, shape, strides}};
  e->Run(in, out);
  return c;
}

TEST(Claims, StayWithinTheirBoundAndOutOfExactPrograms) {
  const int64_t n = 200;
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> u(-1, 1);
  std::vector<float> a(static_cast<size_t>(n * n)), b(a.size());
  for (float& v : a) v = u(rng);
  for (float& v : b) v = u(rng);
  for (bool transposed : {false, true}) {
    CompileReport exact_report, default_report;
    const std::vector<float> exact = Product(Numerics::kExact, a, b, n, transposed, &exact_report), claimed = Product(Numerics::kDefault, a, b, n, transposed, &default_report);
    EXPECT_TRUE(exact_report.claims.empty());
    EXPECT_EQ(default_report.claims.size(), ActiveIsa() == IsaLevel::kV4 ? 1u : 0u);
    // |error| <= 2 k eps sum |a b|, of both orders of summation together.
    for (size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(claimed[i], exact[i], 2 * 200 * 1.2e-7 * 200);
  }
  SetIsaOverride(IsaLevel::kV3);
  CompileReport report;
  EXPECT_EQ(Product(Numerics::kDefault, a, b, n, false, &report), Product(Numerics::kExact, a, b, n, false, nullptr));
  EXPECT_TRUE(report.claims.empty());
  SetIsaOverride(std::nullopt);
}

}  // namespace
}  // namespace sinter::codegen
