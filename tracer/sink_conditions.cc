#include <algorithm>
#include <optional>

#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/passes/passes.h"
#include "sinter/tracer/structure.h"

namespace sinter::tracer {
namespace {

using Block = sinter::Block;

// Two computations side by side: `left` and `right` values that stand for one another (what a loop starts with and what its body
// hands on; what the branches of an `if` give), and the value that is either. Expresses another such pair by those.
class PairMatcher {
 public:
  PairMatcher(Graph& g, Block& out, const Block* right_block) : g_(g), out_(out), right_block_(right_block) {}

  void AddLeaf(Value* left, Value* right, Value* either) { known_.emplace_back(left, right, either); }

  // The value that is `left` or `right`; null if they are not the same expression. New nodes go to the end of `out`.
  Value* Match(Value* left, Value* right, int depth = 0) {
    for (auto& [a, b, v] : known_)
      if (a == left && b == right) return v;
    if (left == right) return left;  // defined outside of both
    if (depth > 64) return nullptr;
    const Node *a = left->node, *b = right->node;
    if (a == nullptr || b == nullptr || a->op != b->op || left->index != right->index || a->op->kind == OpKind::kControlFlow ||
        a->inputs.size() != b->inputs.size() || b->parent != right_block_ || !(left->type == right->type) ||
        !AttrsEqual(a->op->AttrsOrDefault(a->attrs), b->op->AttrsOrDefault(b->attrs)))
      return nullptr;
    std::vector<Value*> inputs;
    for (size_t i = 0; i < a->inputs.size(); ++i) {
      Value* v = Match(a->inputs[i], b->inputs[i], depth + 1);
      if (v == nullptr) return nullptr;
      inputs.push_back(v);
    }
    Value* v = g_.AddNode(out_, *a->op, a->attrs, std::move(inputs), b->stack)->out(left->index);
    known_.emplace_back(left, right, v);
    return v;
  }

 private:
  Graph& g_;
  Block& out_;
  const Block* right_block_;
  std::vector<std::tuple<Value*, Value*, Value*>> known_;
};

void DropNodesFrom(Block& block, size_t count) {
  while (block.nodes.size() > count) block.nodes.pop_back();
}

// What both branches compute alike from their other results is computed once after the `if`.
bool SinkIfResults(Graph& g, Node& n) {
  Block& block = *n.parent;
  Block &yes = *n.regions[0], &no = *n.regions[1];
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (yes.results[i]->node == nullptr || yes.results[i]->node->parent != &yes) continue;
    PairMatcher m(g, block, &no);
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (k != i) m.AddLeaf(yes.results[k], no.results[k], n.out(static_cast<int>(k)));
    const size_t before = block.nodes.size();
    Value* v = m.Match(yes.results[i], no.results[i]);
    if (v == nullptr || block.nodes.size() == before) {
      DropNodesFrom(block, before);
      continue;
    }
    auto at = std::find_if(block.nodes.begin(), block.nodes.end(), [&](const auto& x) { return x.get() == &n; });
    auto first = std::next(block.nodes.begin(), static_cast<int64_t>(before));
    if (std::next(at) != first) block.nodes.splice(std::next(at), block.nodes, first, block.nodes.end());
    g.ReplaceAllUses(n.out(static_cast<int>(i)), v);
    return true;
  }
  return false;
}

bool SinkOne(Graph& g, Node& loop) {
  bool changed = false;
  Block& condition = *loop.regions[0];
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    Value* param = condition.params[i].get();
    // Only values that nobody but the condition reads: the predicate.
    if (param->type.dtype != kBool || param->type.rank() != 0) continue;
    const auto uses = CountUses(g);
    auto count = [&](const Value* v) { auto it = uses.find(v); return it == uses.end() ? 0 : it->second; };
    if (count(param) == 0 || count(loop.regions[1]->params[i].get()) > 0 || count(loop.out(static_cast<int>(i))) > 0) continue;
    const size_t before = condition.nodes.size();
    Block& body = *loop.regions[1];
    PairMatcher m(g, condition, &body);
    for (size_t k = 0; k < loop.inputs.size(); ++k)
      if (k != i) m.AddLeaf(loop.inputs[k], body.results[k], condition.params[k].get());
    Value* v = m.Match(loop.inputs[i], body.results[i]);
    if (v == nullptr) {
      DropNodesFrom(condition, before);
      continue;
    }
    // Matched nodes were appended after a negation that reads the parameter: they must come first.
    auto first = std::next(condition.nodes.begin(), static_cast<int64_t>(before));
    if (first != condition.nodes.begin()) condition.nodes.splice(condition.nodes.begin(), condition.nodes, first, condition.nodes.end());
    g.ReplaceAllUses(param, v);
    changed = true;
  }
  return changed;
}

}  // namespace

bool SinkLoopConditions(Graph& graph) {
  bool changed = false;
  // What only the moved predicate needed is dropped after dead code is gone, which may free more.
  for (bool again = true; again;) {
    again = false;
    std::vector<Node*> loops, ifs;
    ForEachNode(graph, [&](Node& n) {
      if (n.op == &DefOf<ops::While>()) loops.push_back(&n);
      if (n.op == &DefOf<ops::If>()) ifs.push_back(&n);
    });
    for (Node* n : ifs) again |= SinkIfResults(graph, *n);
    for (Node* n : loops) {
      while (DropCarriedValue(graph, *n)) again = true;
      again |= SinkOne(graph, *n);
      while (DropCarriedValue(graph, *n)) again = true;
    }
    again |= EliminateDeadCode(graph);
    changed |= again;
  }
  return changed;
}

}  // namespace sinter::tracer
