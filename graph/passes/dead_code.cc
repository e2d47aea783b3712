#include <unordered_set>

#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

void Mark(Value* v, std::unordered_set<const Value*>& live);

void MarkBlock(const Block& b, std::unordered_set<const Value*>& live) {
  for (Value* v : b.results) Mark(v, live);
}

void Mark(Value* v, std::unordered_set<const Value*>& live) {
  if (!live.insert(v).second || v->node == nullptr) return;
  Node& n = *v->node;
  for (const auto& o : n.outputs) live.insert(o.get());
  for (Value* in : n.inputs) Mark(in, live);
  for (const auto& r : n.regions) MarkBlock(*r, live);
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

}  // namespace

bool EliminateDeadCode(Graph& graph) {
  bool changed = false;
  do {
    std::unordered_set<const Value*> live;
    MarkBlock(graph.body, live);
    changed |= Sweep(graph.body, live);
  } while (PruneIfResults(graph) && (changed = true));
  return changed;
}

}  // namespace sinter
