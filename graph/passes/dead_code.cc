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

}  // namespace

bool EliminateDeadCode(Graph& graph) {
  std::unordered_set<const Value*> live;
  MarkBlock(graph.body, live);
  return Sweep(graph.body, live);
}

}  // namespace sinter
