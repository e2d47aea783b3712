#include <unordered_set>

#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// Values that the results depend on. No recursion: a chain of values may be as long as the graph.
std::unordered_set<const Value*> Live(const Graph& graph) {
  std::unordered_set<const Value*> live;
  std::vector<Value*> waiting(graph.body.results.begin(), graph.body.results.end());
  while (!waiting.empty()) {
    Value* v = waiting.back();
    waiting.pop_back();
    if (!live.insert(v).second || v->node == nullptr) continue;
    const Node& n = *v->node;
    for (const auto& o : n.outputs) live.insert(o.get());
    waiting.insert(waiting.end(), n.inputs.begin(), n.inputs.end());
    for (const auto& r : n.regions) waiting.insert(waiting.end(), r->results.begin(), r->results.end());
  }
  return live;
}

bool Sweep(Block& b, const std::unordered_set<const Value*>& live) {
  bool changed = false;
  for (auto it = b.nodes.begin(); it != b.nodes.end();) {
    Node& n = **it;
    bool used = false;
    for (const auto& o : n.outputs) used |= live.contains(o.get());
    if (!used) {
      it = b.nodes.erase(it);
      changed = true;
      continue;
    }
    for (auto& r : n.regions) changed |= Sweep(*r, live);
    ++it;
  }
  return changed;
}

// Results of an `if` that nothing reads, and those that both branches give alike.
bool PruneIfResults(Graph& graph) {
  bool changed = false;
  auto uses = CountUses(graph);
  std::vector<Node*> ifs;
  ForEachNode(graph, [&](Node& n) {
    if (n.op == &DefOf<ops::If>()) ifs.push_back(&n);
  });
  for (Node* n : ifs) {
    for (size_t i = n->outputs.size(); i-- > 0;) {
      Value* out = n->out(static_cast<int>(i));
      Value *a = n->regions[0]->results[i], *b = n->regions[1]->results[i];
      auto it = uses.find(out);
      bool drop = it == uses.end() || it->second == 0;
      for (size_t k = 0; !drop && k < i; ++k) {
        if (n->regions[0]->results[k] != a || n->regions[1]->results[k] != b) continue;
        graph.ReplaceAllUses(out, n->out(static_cast<int>(k)));
        uses[n->out(static_cast<int>(k))] += it->second;
        drop = true;
      }
      if (!drop) continue;
      n->outputs.erase(n->outputs.begin() + static_cast<int64_t>(i));
      for (auto& r : n->regions) r->results.erase(r->results.begin() + static_cast<int64_t>(i));
      for (size_t k = i; k < n->outputs.size(); ++k) n->outputs[k]->index = static_cast<int>(k);
      changed = true;
    }
  }
  return changed;
}

// Carried values that are the same in every turn, and those that nothing reads.
bool PruneCarried(Graph& graph) {
  bool changed = false;
  std::vector<Node*> loops;
  ForEachNode(graph, [&](Node& n) {
    if (n.op == &DefOf<ops::While>()) loops.push_back(&n);
  });
  for (Node* n : loops)
    while (DropCarriedValue(graph, *n)) changed = true;
  return changed;
}

}  // namespace

bool DropCarriedValue(Graph& g, Node& loop) {
  const auto uses = CountUses(g);
  auto count = [&](const Value* v) {
    auto it = uses.find(v);
    return it == uses.end() ? 0 : it->second;
  };
  Block &condition = *loop.regions[0], &body = *loop.regions[1];
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    Value *p = body.params[i].get(), *next = body.results[i];
    const bool invariant = next == p || next == loop.inputs[i];
    const bool dead = count(condition.params[i].get()) == 0 && count(p) == (next == p ? 1 : 0) && count(loop.out(static_cast<int>(i))) == 0;
    if (!invariant && !dead) continue;
    if (invariant) {
      g.ReplaceAllUses(p, loop.inputs[i]);
      g.ReplaceAllUses(condition.params[i].get(), loop.inputs[i]);
      g.ReplaceAllUses(loop.out(static_cast<int>(i)), loop.inputs[i]);
    }
    auto erase = [&](auto& v) { v.erase(v.begin() + static_cast<int64_t>(i)); };
    erase(loop.inputs);
    erase(loop.outputs);
    erase(condition.params);
    erase(body.params);
    erase(body.results);
    for (size_t k = i; k < loop.inputs.size(); ++k)
      loop.outputs[k]->index = condition.params[k]->index = body.params[k]->index = static_cast<int>(k);
    return true;
  }
  return false;
}

bool EliminateDeadCode(Graph& graph) {
  bool changed = false;
  for (bool again = true; again;) {
    const std::unordered_set<const Value*> live = Live(graph);
    changed |= Sweep(graph.body, live);
    again = PruneIfResults(graph);
    again |= PruneCarried(graph);
    changed |= again;
  }
  return changed;
}

}  // namespace sinter
