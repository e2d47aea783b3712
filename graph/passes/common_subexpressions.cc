#include <algorithm>
#include <unordered_map>

#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// Nodes by hash, in the scopes that are open.
class Eliminator {
 public:
  bool Visit(Block& b) {
    std::vector<size_t> added;
    bool changed = false;
    for (auto it = b.nodes.begin(); it != b.nodes.end();) {
      Node* n = it->get();
      const auto here = it++;
      replaced_.Apply(n->inputs);
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
      for (size_t i = 0; i < n->outputs.size(); ++i) replaced_.Add(n->outputs[i].get(), (*same)->outputs[i].get());
      replaced_.Keep(std::move(*here));
      b.nodes.erase(here);
      changed = true;
    }
    replaced_.Apply(b.results);
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

  ReplacedValues replaced_;
  std::unordered_map<size_t, std::vector<Node*>> nodes_;
};

}  // namespace

bool EliminateCommonSubexpressions(Graph& graph) { return Eliminator().Visit(graph.body); }

}  // namespace sinter
