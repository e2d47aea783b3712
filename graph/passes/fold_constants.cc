#include <algorithm>

#include "sinter/graph/ops/constant.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

const TensorLiteral* Literal(const Value* v) {
  if (v->node == nullptr || v->node->op != &DefOf<ops::Constant>()) return nullptr;
  return &v->node->attrs->As<ops::Constant::Attrs>().value;
}

bool Small(const Value& v, int64_t max_bytes) {
  const Dim n = NumElements(v.type.shape);
  return n.is_const() && n.value() * ItemSize(v.type.dtype) <= max_bytes;
}

bool FoldBlock(Graph& graph, Block& block, ReplacedValues& replaced, const ConstantEvaluator& evaluate, int64_t max_bytes) {
  bool changed = false;
  for (auto it = block.nodes.begin(); it != block.nodes.end();) {
    Node* n = it->get();
    const auto here = it++;
    replaced.Apply(n->inputs);
    for (auto& r : n->regions) changed |= FoldBlock(graph, *r, replaced, evaluate, max_bytes);
    if (n->inputs.empty() || n->op->kind == OpKind::kControlFlow) continue;
    std::vector<TensorLiteral> inputs;
    for (const Value* v : n->inputs)
      if (const TensorLiteral* l = Literal(v)) inputs.push_back(*l);
    if (inputs.size() != n->inputs.size()) continue;
    if (!std::all_of(n->outputs.begin(), n->outputs.end(), [&](const auto& o) { return Small(*o, max_bytes); })) continue;
    std::vector<TensorLiteral> results = evaluate(*n, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      Value* c = graph.Constant(block, std::move(results[i]), n);
      c->node->stack = n->stack;
      c->node->source = n->source;
      c->node->origin = "fold_constants";
      replaced.Add(n->out(static_cast<int>(i)), c);
    }
    replaced.Keep(std::move(*here));
    block.nodes.erase(here);
    changed = true;
  }
  replaced.Apply(block.results);
  return changed;
}

}  // namespace

bool FoldConstants(Graph& graph, const ConstantEvaluator& evaluate, int64_t max_bytes) {
  ReplacedValues replaced;
  const bool changed = FoldBlock(graph, graph.body, replaced, evaluate, max_bytes);
  if (changed) EliminateDeadCode(graph);
  return changed;
}

}  // namespace sinter
