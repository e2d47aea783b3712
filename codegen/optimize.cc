#include "sinter/codegen/optimize.h"

#include <algorithm>

#include "sinter/codegen/compile.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/passes/passes.h"

namespace sinter::codegen {
namespace {

// Constants are folded by the interpreter: the same bits as at run time.
std::vector<TensorLiteral> Evaluate(const Node& node, std::span<const TensorLiteral> inputs) {
  Graph g;
  std::vector<Value*> args;
  std::vector<Shape> strides;
  std::vector<TensorView> in, out;
  auto row_major = [](const Shape& shape) {
    Shape s(shape.size(), 0);
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) s[i] = stride, stride *= std::max<int64_t>(1, shape[i]);
    return s;
  };
  for (const TensorLiteral& l : inputs) {
    args.push_back(g.AddArg({l.dtype, SymShape(l.shape.begin(), l.shape.end())}, ""));
    strides.push_back(row_major(l.shape));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    in.push_back({const_cast<std::byte*>(inputs[i].bytes->data()), inputs[i].dtype, inputs[i].shape, strides[i]});
  Node* n = g.AddNode(g.body, *node.op, node.attrs, args);
  std::vector<Value*> results;
  for (const auto& o : n->outputs) {
    results.push_back(o.get());
  }
  g.SetOutputs(results);
  g.numerics = Numerics::kExact;  // no library: the bits of the rule
  auto executable = CompileInterpreted(g);
  // Literals are row-major, whatever the layout of the op.
  const Executable::Prepared prepared = executable->Prepare(in);
  std::vector<std::vector<std::byte>> made;
  std::vector<TensorView> dense;
  std::vector<TensorLiteral> literals;
  std::vector<std::shared_ptr<std::vector<std::byte>>> memory;
  std::vector<Shape> dense_strides;
  const size_t n_outputs = static_cast<size_t>(executable->num_outputs());
  made.reserve(n_outputs);
  dense_strides.reserve(n_outputs);
  for (size_t i = 0; i < n_outputs; ++i) {
    const DType t = results[i]->type.dtype;
    const Shape& sizes = prepared.OutputSizes(static_cast<int>(i));
    const size_t bytes = static_cast<size_t>(NumElements(sizes)) * ItemSize(t);
    made.emplace_back(bytes);
    memory.push_back(std::make_shared<std::vector<std::byte>>(bytes));
    literals.push_back({t, sizes, memory.back()});
    dense_strides.push_back(row_major(sizes));
    out.push_back({made.back().data(), t, sizes, prepared.OutputStrides(static_cast<int>(i))});
    dense.push_back({memory.back()->data(), t, sizes, dense_strides.back()});
  }
  executable->Run(prepared, in, out);
  for (size_t i = 0; i < n_outputs; ++i) CopyView(out[i], dense[i]);
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
