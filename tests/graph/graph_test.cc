// Text form, verifier, passes and gradients of graphs.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/graph.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

constexpr char kLoop[] = R"(graph "main" numerics default(%0 "x": float32[n], %1 "y": float32[n])
  state(%2 "w": float32[1] trainable result 1)
  dim(n in [0, 100] multiple 4)
  guard(1, 1, n, "not \"empty\"")
  outputs 1 {
  %3 = while(%0) {verified_turns = 64} : float32[n] (%4: float32[n]) {
    %5 = sum(%4) {axes = [], keepdim = false} : float32[]
    %6 = constant() {value = tensor(float32[] 0x0000803f)} : float32[]
    %7 = greater(%5, %6) : bool[]
    return %7
  } (%8: float32[n]) {
    %9 = sum(%8) {axes = [], keepdim = false} : float32[]
    %10 = full() {shape = <>, value = -0.5, dtype = float32} : float32[]
    %11 = less(%9, %10) : bool[]
    %12 = if(%11) : float32[n] () {
      %13 = mul(%8, %10) : float32[n]
      return %13
    } () {
      %14 = tanh.d0[g,y](%8, %1) : float32[n]
      return %14
    }
    return %12
  }
  %15 = reshape(%3) {shape = <floordiv(n, 4), 4>} : float32[floordiv(n, 4), 4]
  return %15, %2
}
)";

TEST(Text, ParseAndPrintAreInverse) {
  auto g = Parse(kLoop);
  EXPECT_EQ(Print(*g), kLoop);
  EXPECT_EQ(Print(*Parse(Print(*g))), kLoop);
  EXPECT_EQ(Print(*g->Clone()), kLoop);
  EXPECT_EQ(HashGraph(*g), HashGraph(*g->Clone()));
}

// A derivative that reads its operand or doesn't, as the attributes say.
struct Modal {
  static constexpr OpInfo kInfo{.name = "modal", .kind = OpKind::kPointwise};
  struct Attrs {
    bool squared = true;
    SINTER_FIELDS(squared)
  };
  template <Number X>
  static X Body(const X& x, const Attrs& a) { return a.squared ? x * x : x * num::Const(x, 3); }
};

TEST(Text, DerivativesReadWhatTheirAttributesSay) {
  RegisterOp(DefOf<Modal>());
  auto program = [](const char* op, const char* attrs) {
    return std::string("graph \"main\" numerics default(%0 \"x\": float32[n], %1 \"g\": float32[n])\n  dim(n in [0, 9] multiple 1)\n  outputs 1 {\n  %2 = ") + op +
           " {squared = " + attrs + "} : float32[n]\n  return %2\n}\n";
  };
  // Not made in this process before: found by the name alone.
  for (const std::string& text : {program("modal.d0[g](%1)", "false"), program("modal.d0[g,x0](%1, %0)", "true")}) {
    auto g = Parse(text);
    Verify(*g);
    EXPECT_NO_THROW(codegen::CompileInterpreted(*g)) << text;
  }
  EXPECT_THROW(Parse(program("modal.d0[g](%1)", "true")), Error);
}

TEST(Text, FaultsNameLineAndCause) {
  const std::pair<const char*, const char*> faults[] = {
      {"%13 = mul(%8, %10)", "%13 = mul(%8, %99)"},   {"mul(%8, %10)", "mull(%8, %10)"},      {": float32[floordiv(n, 4), 4]\n", ": float32[q, 4]\n"},
      {"keepdim = false", "keepdim = 3.5"},           {"axes = []", "axen = []"},              {"return %12\n", "return\n"},
      {"outputs 1", "outputs 7"},                     {"result 1", "result 9"},                {"%7 = greater(%5, %6) : bool[]", "%7 = greater(%5, %6) : float32[]"},
      {"0x0000803f", "0x00"},                         {"multiple 4", "multiple 0"},            {"numerics default", "numerics loose"},
      {"%11 = less(%9, %10) : bool[]", "%11 = less(%8, %8) : bool[n]"}, {"return %15, %2", "return %12, %2"}, {"tanh.d0[g,y]", "tanh.d0[y]"}};
  for (const auto& [from, to] : faults) {
    std::string text = kLoop;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::strlen(from), to);
    EXPECT_THROW(Parse(text), Error) << to;
  }
  try {
    std::string text = kLoop;
    text.replace(text.find("mul(%8"), 3, "muk");
    Parse(text);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'mul'"), std::string::npos) << e.what();
  }
}

TEST(Text, HostileTextsCanOnlyFail) {
  std::mt19937 rng(2);
  const std::string good = kLoop;
  for (size_t n = 0; n < good.size() - 2; n += 3) EXPECT_THROW(Parse(good.substr(0, n)), Error);
  for (int i = 0; i < 2000; ++i) {
    std::string b = good;
    for (int k = 0; k < 3; ++k) b[rng() % b.size()] = static_cast<char>(32 + rng() % 95);
    try {
      Verify(*Parse(b));
    } catch (const Error&) {
    }
  }
}

TEST(Verifier, RefusesDamage) {
  auto damaged = [](auto damage) {
    auto g = Parse(kLoop);
    damage(*g);
    try {
      Verify(*g, "some_pass");
    } catch (const InternalError& e) {
      return std::string(e.what()).find("some_pass") != std::string::npos;
    }
    return false;
  };
  auto last = [](Graph& g) -> Node& { return *g.body.nodes.back(); };
  EXPECT_TRUE(damaged([&](Graph& g) { last(g).inputs[0] = nullptr; }));
  EXPECT_TRUE(damaged([&](Graph& g) { last(g).inputs.clear(); }));
  EXPECT_TRUE(damaged([&](Graph& g) { last(g).out()->type.dtype = kInt32; }));
  EXPECT_TRUE(damaged([&](Graph& g) { last(g).op = nullptr; }));
  EXPECT_TRUE(damaged([&](Graph& g) { last(g).parent = nullptr; }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.body.results.pop_back(); }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.num_args = 1; }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.states[0].param = 0; }));
  EXPECT_TRUE(damaged([&](Graph& g) { std::swap(g.body.nodes.front(), g.body.nodes.back()); }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.body.results[0] = g.body.nodes.front()->regions[0]->params[0].get(); }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.body.nodes.front()->regions[1]->results.clear(); }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.body.nodes.front()->regions.pop_back(); }));
  EXPECT_TRUE(damaged([&](Graph& g) { g.body.nodes.front()->regions[0]->results[0] = g.body.nodes.front()->regions[0]->params[0].get(); }));
  EXPECT_FALSE(damaged([&](Graph&) {}));
}

std::string After(const std::string& text, bool (*pass)(Graph&)) {
  auto g = Parse(text);
  pass(*g);
  Verify(*g, "pass");
  return Print(*g);
}

TEST(Passes, DeadCodeAndUnusedBranchResults) {
  const std::string text = R"(graph "main" numerics default(%0 "x": float32[3], %1 "p": bool[])
  outputs 1 {
  %2 = exp(%0) : float32[3]
  %3, %4 = if(%1) : float32[3], float32[3] () {
    %5 = tanh(%0) : float32[3]
    %6 = neg(%0) : float32[3]
    return %5, %6
  } () {
    return %0, %0
  }
  return %4
}
)";
  EXPECT_EQ(After(text, EliminateDeadCode), R"(graph "main" numerics default(%0 "x": float32[3], %1 "p": bool[])
  outputs 1 {
  %2 = if(%1) : float32[3] () {
    %3 = neg(%0) : float32[3]
    return %3
  } () {
    return %0
  }
  return %2
}
)");
}

TEST(Passes, CommonSubexpressionsAndAlgebra) {
  const std::string text = R"(graph "main" numerics default(%0 "x": float32[3])
  outputs 1 {
  %1 = exp(%0) : float32[3]
  %2 = exp(%0) : float32[3]
  %3 = add(%1, %2) : float32[3]
  return %3
}
)";
  EXPECT_EQ(After(text, EliminateCommonSubexpressions), R"(graph "main" numerics default(%0 "x": float32[3])
  outputs 1 {
  %1 = exp(%0) : float32[3]
  %2 = add(%1, %1) : float32[3]
  return %2
}
)");
  auto simplified = [](const std::string& node) {
    return After("graph \"main\" numerics default(%0 \"x\": float32[2, 3])\n  outputs 1 {\n  %1 = full() {shape = <>, value = 1.0, dtype = float32} : float32[]\n"
                 "  %2 = full() {shape = <>, value = 0.0, dtype = float32} : float32[]\n  %3 = full() {shape = <>, value = -0.0, dtype = float32} : float32[]\n  " +
                     node + "\n  return %4\n}\n",
                 SimplifyAlgebra)
               .find("return %0") != std::string::npos;
  };
  EXPECT_TRUE(simplified("%4 = mul(%0, %1) : float32[2, 3]"));
  EXPECT_TRUE(simplified("%4 = div(%0, %1) : float32[2, 3]"));
  EXPECT_TRUE(simplified("%4 = sub(%0, %2) : float32[2, 3]"));
  EXPECT_TRUE(simplified("%4 = add(%0, %3) : float32[2, 3]"));
  EXPECT_FALSE(simplified("%4 = add(%0, %2) : float32[2, 3]"));  // -0 + 0 is +0
  EXPECT_FALSE(simplified("%4 = sub(%0, %3) : float32[2, 3]"));
  EXPECT_TRUE(simplified("%4 = cast(%0) {dtype = float32} : float32[2, 3]"));
  EXPECT_TRUE(simplified("%4 = permute(%0) {dims = [0, 1]} : float32[2, 3]"));
  EXPECT_FALSE(simplified("%4 = permute(%0) {dims = [1, 0]} : float32[3, 2]"));
}

TEST(Passes, ConstantsAreFolded) {
  auto g = Parse(R"(graph "main" numerics exact(%0 "x": float32[2])
  outputs 1 {
  %1 = constant() {value = tensor(float32[2] 0x0000803f00000040)} : float32[2]
  %2 = mul(%1, %1) : float32[2]
  %3 = add(%0, %2) : float32[2]
  return %3
}
)");
  codegen::Optimize(*g);
  EXPECT_NE(Print(*g).find("tensor(float32[2] 0x0000803f00008040)"), std::string::npos) << Print(*g);
  EXPECT_EQ(g->NumNodes(), 2);
}

TEST(Gradient, IsAGraphTransform) {
  auto g = Parse(R"(graph "main" numerics exact(%0 "x": float32[n])
  dim(n in [0, 100] multiple 1)
  outputs 2 {
  %1 = tanh(%0) : float32[n]
  %2 = sum(%1) {axes = [], keepdim = false} : float32[]
  %3 = gradient(%2, %0) {seeded = false} : float32[n]
  return %2, %3
}
)");
  EXPECT_TRUE(LowerGradients(*g));
  Verify(*g, "lower_gradients");
  EXPECT_EQ(Print(*g).find("gradient("), std::string::npos);
  EXPECT_NE(Print(*g).find("tanh.d0[g,y]"), std::string::npos) << Print(*g);
}

TEST(Gradient, OfALoopNamesItsLine) {
  auto g = Parse(R"(graph "main" numerics exact(%0 "x": float32[2])
  outputs 1 {
  %1 = while(%0) : float32[2] (%2: float32[2]) {
    %3 = sum(%2) {axes = [], keepdim = false} : float32[]
    %4 = full() {shape = <>, value = 0.0, dtype = float32} : float32[]
    %5 = greater(%3, %4) : bool[]
    return %5
  } (%6: float32[2]) {
    %7 = neg(%6) : float32[2]
    return %7
  }
  %8 = sum(%1) {axes = [], keepdim = false} : float32[]
  %9 = gradient(%8, %0) {seeded = false} : float32[2]
  return %9
}
)");
  EXPECT_THROW(LowerGradients(*g), Error);
}

}  // namespace
}  // namespace sinter
