// Graph text that someone else wrote: whatever is wrong with it, reading and compiling it give an Error at worst.
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/error.h"
#include "sinter/tests/codegen/op_runner.h"

namespace sinter::codegen::testing {
namespace {

// Programs of one op each, of all ops.
std::vector<std::string> Seeds() {
  std::vector<std::string> texts;
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    const Sample s = SamplesOf(*op).front();
    Graph g;
    std::vector<Value*> in;
    for (const Operand& o : MakeOperands(s)) in.push_back(g.AddArg(o.type, StrCat("x", in.size())));
    Node* node = g.AddNode(g.body, *op, s.attrs, in);
    std::vector<Value*> outputs;
    for (auto& o : node->outputs) outputs.push_back(o.get());
    g.SetOutputs(outputs);
    texts.push_back(Print(g));
  }
  texts.push_back("graph \"c\" numerics exact(%0 \"x\": float32[2])\n  outputs 1 {\n  %1 = full() {shape = <>, value = 1.0, dtype = float32} : float32[]\n"
                  "  %2 = mul(%0, %1) : float32[2]\n  yield %2\n}\n");
  const char* regions = R"(graph "main" numerics default(%0 "x": float32[n], %1 "y": float32[n])
  state(%2 "w": float32[1] trainable result 1)
  dim(n in [0, 100] multiple 4)
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
  const char* gradient = R"(graph "main" numerics default(%0 "x": float32[4, 3], %1 "t": int64[4])
  outputs 2 {
  %2 = cross_entropy(%0, %1) : float32[]
  %3 = mul(%2, %2) : float32[]
  %4 = gradient(%3, %0) {seeded = false, outputs = 1} : float32[4, 3]
  %5 = gradient(%2, %3, %2, %2, %0) {seeded = true, outputs = 2} : float32[4, 3]
  return %4, %5
}
)";
  for (int i = 0; i < 10; ++i) texts.insert(texts.end(), {regions, gradient});
  return texts;
}

std::string Mutate(std::string t, std::mt19937& rng) {
  auto pick = [&](std::string_view what) {
    std::vector<size_t> at;
    for (size_t i = t.find(what); i != std::string::npos; i = t.find(what, i + 1)) at.push_back(i);
    return at.empty() ? std::string::npos : at[rng() % at.size()];
  };
  for (int n = 1 + static_cast<int>(rng() % 3); n > 0; --n) {
    switch (rng() % 6) {
      case 0:  // attributes gone
        if (size_t i = pick("{"); i != std::string::npos && i > t.find('\n'))
          if (size_t e = t.find('}', i); e != std::string::npos && t.find('\n', i) > e) t.erase(i, e - i + 1);
        break;
      case 1:  // an operand gone
        if (size_t i = pick("%"); i != std::string::npos) t.erase(i, t.find_first_of(",)", i) - i);
        break;
      case 2: {  // another number
        const size_t i = t.find_first_of("0123456789", rng() % t.size());
        const char* numbers[] = {"-1", "0", "7", "99999999999", "-9223372036854775808", "1e999", "1"};
        if (i != std::string::npos) t.replace(i, t.find_first_not_of("0123456789", i) - i, numbers[rng() % 7]);
        break;
      }
      case 3:  // another type
        if (size_t i = pick("float32"); i != std::string::npos) t.replace(i, 7, rng() % 2 ? "int64" : "bool");
        break;
      case 4:  // a field gone
        if (size_t i = pick(" = "); i != std::string::npos) {
          const size_t from = t.find_last_of("{,", i), to = t.find_first_of(",}", i);
          if (from != std::string::npos && to != std::string::npos && to > from) t.erase(from + 1, to - from - 1);
        }
        break;
      default:
        if (size_t i = pick("["); i != std::string::npos) t.replace(i, t.find(']', i) - i, rng() % 2 ? "[" : "[3, 0, 2");
    }
    if (t.empty()) break;
  }
  return t;
}

TEST(HostileGraphs, CanOnlyFail) {
  const std::vector<std::string> seeds = Seeds();
  ASSERT_GT(seeds.size(), 60u);
  for (const std::string& text : seeds)
    if (text.find("while") != std::string::npos || text.find("gradient(") != std::string::npos) {
      SCOPED_TRACE(text);
      EXPECT_NO_THROW({ auto g = Parse(text); Verify(*g); Optimize(*g); CompileInterpreted(*g); });
    }
  std::mt19937 rng(7);
  int refused = 0, compiled = 0;
  for (int i = 0; i < 40000; ++i) {
    const std::string text = Mutate(seeds[rng() % seeds.size()], rng);
    try {
      std::unique_ptr<Graph> g = Parse(text);
      Verify(*g);
      Optimize(*g);
      CompileInterpreted(*g);
      ++compiled;
    } catch (const Error&) {
      ++refused;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(compiled, 100);
}

}  // namespace
}  // namespace sinter::codegen::testing
