#include <optional>

#include "sinter/graph/ops/basic.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// The value of every element, where a node's result has only one.
std::optional<double> Uniform(const Value* v) {
  if (v->node == nullptr) return std::nullopt;
  if (v->node->op == &DefOf<ops::Full>()) return v->node->attrs->As<ops::Full::Attrs>().value;
  return std::nullopt;
}

bool Is(const Value* v, double x) {
  std::optional<double> u = Uniform(v);
  return u.has_value() && *u == x && std::signbit(*u) == std::signbit(x);
}

Node* From(const Value* v, const OpDef& op) { return v->node != nullptr && v->node->op == &op ? v->node : nullptr; }

// `candidate` if it can stand for the node's result as it is.
Value* Same(const Node& n, Value* candidate) { return candidate->type == n.out()->type ? candidate : nullptr; }

// A row: nodes of `op` become what `rewrite` returns, if anything.
struct Row {
  const OpDef* op;
  const char* name;
  Value* (*rewrite)(const Node& n);
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {&DefOf<ops::Mul>(), "x * 1 = x", [](const Node& n) { return Is(n.inputs[1], 1) ? Same(n, n.inputs[0]) : nullptr; }},
      {&DefOf<ops::Mul>(), "1 * x = x", [](const Node& n) { return Is(n.inputs[0], 1) ? Same(n, n.inputs[1]) : nullptr; }},
      {&DefOf<ops::Div>(), "x / 1 = x", [](const Node& n) { return Is(n.inputs[1], 1) ? Same(n, n.inputs[0]) : nullptr; }},
      // x + 0 turns -0 into +0, x + -0 does not.
      {&DefOf<ops::Add>(), "x + -0 = x", [](const Node& n) { return Is(n.inputs[1], -0.0) ? Same(n, n.inputs[0]) : nullptr; }},
      {&DefOf<ops::Sub>(), "x - 0 = x", [](const Node& n) { return Is(n.inputs[1], 0.0) ? Same(n, n.inputs[0]) : nullptr; }},
      {&DefOf<ops::Neg>(), "-(-x) = x",
       [](const Node& n) {
         Node* inner = From(n.inputs[0], DefOf<ops::Neg>());
         return inner ? Same(n, inner->inputs[0]) : nullptr;
       }},
      {&DefOf<ops::Cast>(), "cast to the same type", [](const Node& n) { return Same(n, n.inputs[0]); }},
      {&DefOf<ops::Reshape>(), "reshape to the same shape", [](const Node& n) { return Same(n, n.inputs[0]); }},
      {&DefOf<ops::Reshape>(), "reshape of a reshape that restores",
       [](const Node& n) {
         Node* inner = From(n.inputs[0], DefOf<ops::Reshape>());
         return inner ? Same(n, inner->inputs[0]) : nullptr;
       }},
      {&DefOf<ops::Expand>(), "expand to the same shape", [](const Node& n) { return Same(n, n.inputs[0]); }},
      {&DefOf<ops::Permute>(), "permute that restores or keeps",
       [](const Node& n) -> Value* {
         const int rank = n.inputs[0]->type.rank();
         std::vector<int> order = ops::Permute::Order(n.attrs->As<ops::Permute::Attrs>(), rank);
         bool identity = true;
         for (int i = 0; i < rank; ++i) identity &= order[i] == i;
         if (identity) return n.inputs[0];
         Node* inner = From(n.inputs[0], DefOf<ops::Permute>());
         if (inner == nullptr) return nullptr;
         std::vector<int> first = ops::Permute::Order(inner->attrs->As<ops::Permute::Attrs>(), rank);
         for (int i = 0; i < rank; ++i)
           if (first[order[i]] != i) return nullptr;
         return inner->inputs[0];
       }},
      // Gradients are graphs of their own by now.
      {&DefOf<ops::StopGradient>(), "stop_gradient(x) = x", [](const Node& n) { return Same(n, n.inputs[0]); }},
      {&DefOf<ops::Where>(), "where of equal branches",
       [](const Node& n) { return n.inputs[1] == n.inputs[2] ? Same(n, n.inputs[1]) : nullptr; }},
  };
  return rows;
}

}  // namespace

bool SimplifyAlgebra(Graph& graph) {
  // A result that was replaced has no users left; dead code elimination takes its node.
  ReplacedValues replaced;
  ForEachNode(graph, [&](Node& n) {
    replaced.Apply(n.inputs);
    for (const Row& row : Rows()) {
      if (row.op != n.op) continue;
      Value* to = row.rewrite(n);
      if (to == nullptr || to == n.out()) continue;
      replaced.Add(n.out(), to);
      break;
    }
  });
  if (replaced.empty()) return false;
  replaced.Apply(graph.body);
  EliminateDeadCode(graph);
  return true;
}

}  // namespace sinter
