#include <algorithm>
#include <unordered_map>

#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// Nodes by hash, in the scopes that are open.
class Eliminator {
 public:
  explicit Eliminator(Graph& g) : graph_(g) {}

  bool Visit(Block& b) {
    std::vector<size_t> added;
    bool changed = false;
    for (auto it = b.nodes.begin(); it != b.nodes.end();) {
      Node* n = it->get();
      ++it;
      for (auto& r : n->regions) changed |= Visit(*r);
      if (n->op->kind == OpKind::kControlFlow) continue;
      const size_t h = Hash(*n);
      auto& bucket = nodes_[h];
      auto same = std::find_if(bucket.begin(), bucket.end(), [&](Node* x) { return Equal(*x, *n); });
      if (same == bucket.end()) {
        bucket.push_back(n);
        added.push_back(h);
        continue;
      }
      for (size_t i = 0; i < n->outputs.size(); ++i) graph_.ReplaceAllUses(n->outputs[i].get(), (*same)->outputs[i].get());
      graph_.Erase(n);
      changed = true;
    }
    for (auto h = added.rbegin(); h != added.rend(); ++h) nodes_[*h].pop_back();
    return changed;
  }

 private:
  static size_t Hash(const Node& n) {
    size_t h = std::hash<const void*>()(n.op) ^ (n.attrs ? n.attrs->Hash() : 0);
    for (const Value* v : n.inputs) h = h * 0x9e3779b97f4a7c15u + std::hash<const void*>()(v);
    return h;
  }
  static bool Equal(const Node& a, const Node& b) {
    return a.op == b.op && a.inputs == b.inputs && AttrsEqual(a.op->AttrsOrDefault(a.attrs), b.op->AttrsOrDefault(b.attrs));
  }

  Graph& graph_;
  std::unordered_map<size_t, std::vector<Node*>> nodes_;
};

}  // namespace

bool EliminateCommonSubexpressions(Graph& graph) { return Eliminator(graph).Visit(graph.body); }

}  // namespace sinter
