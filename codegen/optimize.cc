#include "sinter/codegen/optimize.h"

#include "sinter/codegen/compile.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/passes/passes.h"
#include "sinter/runtime/strides.h"

namespace sinter::codegen {
namespace {

// Constants are folded by the interpreter: the same bits as at run time.
std::vector<TensorLiteral> Evaluate(const Node& node, std::span<const TensorLiteral> inputs) {
  Graph g;
  std::vector<Value*> args, results;
  std::vector<Shape> strides;
  std::vector<TensorView> in;
  strides.reserve(inputs.size());
  for (const TensorLiteral& l : inputs) {
    args.push_back(g.AddArg({l.dtype, SymShape(l.shape.begin(), l.shape.end())}, ""));
    strides.push_back(RowMajorStrides(l.shape));
    in.push_back({const_cast<std::byte*>(l.bytes->data()), l.dtype, l.shape, strides.back()});
  }
  Node* n = g.AddNode(g.body, *node.op, node.attrs, args);
  for (const auto& o : n->outputs) results.push_back(o.get());
  g.SetOutputs(results);
  g.numerics = Numerics::kExact;  // no library: the bits of the rule
  auto executable = CompileInterpreted(g);
  const DimEnv env = executable->Bind(in);
  const HostOutputs made = AllocateOutputs(*executable, env);
  executable->Run(env, in, made.views);
  // Literals are row-major, whatever the layout of the op.
  std::vector<TensorLiteral> literals;
  for (const TensorView& v : made.views) {
    const Shape sizes(v.sizes.begin(), v.sizes.end()), dense = RowMajorStrides(sizes);
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(v.numel()) * ItemSize(v.dtype));
    CopyView(v, {bytes->data(), v.dtype, sizes, dense});
    literals.push_back({v.dtype, sizes, std::move(bytes)});
  }
  return literals;
}

}  // namespace

std::vector<Pass> Pipeline(Numerics numerics) {
  std::vector<Pass> passes = {
      {"lower_gradients", LowerGradients},
      {"dead_code", EliminateDeadCode},
  };
  if (numerics != Numerics::kExact) passes.push_back({"fold_batch_norm", FoldBatchNorm});
  passes.insert(passes.end(), {
                                  {"decompose", [](Graph& g) { return DecomposeComposites(g); }},
                                  {"split_concats", SplitWideConcats},
                                  {"algebra", SimplifyAlgebra},
                                  {"common_subexpressions", EliminateCommonSubexpressions},
                                  {"fold_constants", [](Graph& g) { return FoldConstants(g, Evaluate); }},
                                  {"algebra_again", SimplifyAlgebra},
                                  {"dead_code_again", EliminateDeadCode},
                              });
  return passes;
}

std::vector<PassTiming> Optimize(Graph& graph) { return RunPasses(graph, Pipeline(graph.numerics)); }

}  // namespace sinter::codegen
