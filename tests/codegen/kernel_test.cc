#include "sinter/codegen/kernel.h"

#include <gtest/gtest.h>

#include <functional>

#include "sinter/graph/num.h"

namespace sinter::codegen {
namespace {

// out[i] = x[i] * x[i] + sum of row i of y, for names and numbers as given.
Kernel Example(Dim n, Dim m, VectorAxis axis = VectorAxis::kOuter) {
  Kernel k;
  k.buffers = {{kFloat32, {n}, {0}},
               {kFloat32, {n, m}, {0, 1}},
               {kFloat32, {m, 3}, {0, 1}, BufferRole::kLocal},
               {kFloat32, {n}, {0}, BufferRole::kOutput}};
  k.outer.push_back({FreshIndex(), n});
  LoopVar l{FreshIndex(), m};
  const Expr i = Expr::Index(k.outer[0].id), x = Expr::Load(0, kFloat32, {i});
  const Expr sum = Expr::Reduce(ReduceKind::kSum, {l}, {Expr::Load(1, kFloat32, {i, Expr::Index(l.id)})});
  k.stages.push_back({{}, {{3, {i}, x * x + sum}}, axis});
  return k;
}

TEST(KernelText, DoesNotDependOnNames) {
  const Kernel a = Example(Dim::Symbol("text_a"), Dim::Symbol("text_b")),
               b = Example(Dim::Symbol("text_y"), Dim::Symbol("text_x"));
  EXPECT_EQ(a.ToString(), b.ToString());
}

TEST(KernelText, TellsKernelsApart) {
  const Dim n = Dim::Symbol("text_n"), m = Dim::Symbol("text_m");
  const std::string text = Example(n, m).ToString();
  EXPECT_NE(text, Example(n, n).ToString());
  EXPECT_NE(text, Example(n, 5).ToString());
  EXPECT_NE(text, Example(n, m, VectorAxis::kReduction).ToString());
  EXPECT_NE(text, Example(n, Dim::Symbol("text_even", {.multiple_of = 2})).ToString());
  Kernel other = Example(n, m);
  other.buffers[1].order = {1, 0};
  EXPECT_NE(text, other.ToString());
  other = Example(n, m);
  other.stages[0].stores[0].value = other.stages[0].stores[0].value + 1.0;
  EXPECT_NE(text, other.ToString());
}

// A value built twice is one value, however deep: in the text, in comparisons and when it is run.
TEST(KernelText, EqualValuesAreOne) {
  auto deep = [](Expr x) {
    for (int i = 0; i < 60; ++i) x = x * x + x;
    return x;
  };
  Kernel k = Example(7, 5);
  const Expr x = Expr::Load(0, kFloat32, {Expr::Index(k.outer[0].id)});
  const Expr a = deep(x), b = deep(x);
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == deep(x + 1.0));
  k.stages[0].stores[0].value = a + a;
  const std::string once = k.ToString();
  k.stages[0].stores[0].value = a + b;
  EXPECT_EQ(k.ToString(), once);
  EXPECT_NO_THROW(VerifyKernel(k));
  EXPECT_NE(InterpretKernel(k), nullptr);
}

TEST(KernelSizes, RunTimeSizesComeOnce) {
  const Dim n = Dim::Symbol("sizes_n"), m = Dim::Symbol("sizes_m");
  EXPECT_EQ(Example(n, m).RuntimeSizes(), (std::vector<Dim>{n, m}));
  EXPECT_EQ(Example(n, 4).RuntimeSizes(), std::vector<Dim>{n});
  EXPECT_TRUE(Example(3, 4).RuntimeSizes().empty());
}

TEST(KernelSizes, ScratchHoldsLocalBuffersRoundedUp) {
  EXPECT_EQ(ScratchBytes(Example(3, 5)), Dim(64));
  EXPECT_EQ(ScratchBytes(Example(3, 6)), Dim(128));
  EXPECT_EQ(OuterPoints(Example(3, 6)), Dim(3));
}

TEST(VerifyKernel, RefusesWhatIsMalformed) {
  EXPECT_NO_THROW(VerifyKernel(Example(3, 5)));
  auto refused = [](const std::function<void(Kernel&, KernelStore&, const Expr& i)>& damage) {
    Kernel k = Example(3, 5);
    damage(k, k.stages[0].stores[0], Expr::Index(k.outer[0].id));
    EXPECT_ANY_THROW(VerifyKernel(k));
  };
  refused([](Kernel& k, KernelStore&, const Expr&) { k.buffers[1].order = {0, 0}; });
  refused([](Kernel& k, KernelStore&, const Expr&) { k.buffers[1].order = {0}; });
  refused([](Kernel&, KernelStore& s, const Expr& i) { s.position.push_back(i); });
  refused([](Kernel&, KernelStore& s, const Expr&) { s.value = Expr::ConstInt(kInt32, 1); });
  refused([](Kernel&, KernelStore& s, const Expr&) { s.value = Expr::Input(0, kFloat32); });
  refused([](Kernel&, KernelStore& s, const Expr& i) { s.value = Expr::Load(0, kFloat32, {i, i}); });
  refused([](Kernel&, KernelStore& s, const Expr& i) { s.value = Expr::Load(9, kFloat32, {i}); });
  refused([](Kernel&, KernelStore& s, const Expr& i) {
    s.value = Expr::Convert(Expr::Load(0, kFloat64, {i}), kFloat32);
  });
  refused([](Kernel&, KernelStore& s, const Expr& i) {
    s.value = Expr::Load(3, kFloat32, {i});
  });  // not stored yet
  refused([](Kernel&, KernelStore& s, const Expr& i) { s.position = {Expr::Convert(i, kInt32)}; });
}

}  // namespace
}  // namespace sinter::codegen
