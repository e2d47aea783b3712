#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// One element of a concat asks every operand in turn, and each operand is a buffer of its kernel.
constexpr size_t kWidest = 24;

}  // namespace

bool SplitWideConcats(Graph& graph) {
  std::vector<Node*> wide;
  ForEachNode(graph, [&](Node& n) {
    if (n.op == &DefOf<ops::Concat>() && n.inputs.size() > kWidest) wide.push_back(&n);
  });
  for (Node* n : wide) {
    GraphBuilder builder(*n->parent, n);
    builder.SetStack(n->stack, n->source, n->origin.empty() ? n->op->name : n->origin);
    const ops::Concat::Attrs& attrs = n->op->AttrsOrDefault(n->attrs)->As<ops::Concat::Attrs>();
    // Each element is converted once, whatever its part alone would be promoted to.
    const DType t = n->out()->type.dtype;
    std::vector<Var> parts;
    for (Value* v : n->inputs) {
      const Var x = builder.Wrap(v);
      parts.push_back(x.dtype() == t ? x : cast(x, {.dtype = t}));
    }
    while (parts.size() > kWidest) {
      std::vector<Var> joined;
      for (size_t i = 0; i < parts.size(); i += kWidest) {
        const std::vector<Var> some(parts.begin() + static_cast<int64_t>(i), parts.begin() + static_cast<int64_t>(std::min(parts.size(), i + kWidest)));
        joined.push_back(some.size() == 1 ? some[0] : concat(some, attrs));
      }
      parts = std::move(joined);
    }
    graph.ReplaceAllUses(n->out(), GraphBuilder::Unwrap(concat(parts, attrs)));
    graph.Erase(n);
  }
  return !wide.empty();
}

}  // namespace sinter
