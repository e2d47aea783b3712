#include "sinter/tracer/flow_graph.h"

#include <algorithm>

namespace sinter::tracer {

FlowGraph::FlowGraph(const Automaton& a) {
  const size_t n = a.blocks.size();
  successors_.resize(n);
  predecessors_.resize(n);
  rank_.assign(n, -1);
  dominator_.assign(n, -1);
  forward_in_.assign(n, 0);
  for (size_t b = 0; b < n; ++b) {
    if (a.blocks[b].arrival.kind != Segment::kBranch) continue;
    for (int t : a.blocks[b].target) {
      successors_[b].push_back(t);
      predecessors_[static_cast<size_t>(t)].push_back(static_cast<int>(b));
    }
  }
  // Depth-first post-order, without recursion.
  std::vector<int> post;
  std::vector<bool> seen(n);
  std::vector<std::pair<int, size_t>> stack = {{a.entry, 0}};
  seen[static_cast<size_t>(a.entry)] = true;
  while (!stack.empty()) {
    auto& [b, next] = stack.back();
    if (next < successors_[static_cast<size_t>(b)].size()) {
      const int t = successors_[static_cast<size_t>(b)][next++];
      if (!seen[static_cast<size_t>(t)]) {
        seen[static_cast<size_t>(t)] = true;
        stack.emplace_back(t, 0);
      }
    } else {
      post.push_back(b);
      stack.pop_back();
    }
  }
  order_.assign(post.rbegin(), post.rend());
  for (size_t i = 0; i < order_.size(); ++i) rank_[static_cast<size_t>(order_[i])] = static_cast<int>(i);

  // Dominators (Cooper, Harvey, Kennedy 2001).
  dominator_[static_cast<size_t>(a.entry)] = a.entry;
  for (bool changed = true; changed;) {
    changed = false;
    for (int b : order_) {
      if (b == a.entry) continue;
      int d = -1;
      for (int p : predecessors_[static_cast<size_t>(b)]) {
        if (rank_[static_cast<size_t>(p)] < 0 || dominator_[static_cast<size_t>(p)] < 0) continue;
        if (d < 0) {
          d = p;
          continue;
        }
        int q = p;
        while (d != q) {
          while (Rank(d) > Rank(q)) d = dominator_[static_cast<size_t>(d)];
          while (Rank(q) > Rank(d)) q = dominator_[static_cast<size_t>(q)];
        }
      }
      if (d != dominator_[static_cast<size_t>(b)]) dominator_[static_cast<size_t>(b)] = d, changed = true;
    }
  }

  for (int b : order_)
    for (int t : successors_[static_cast<size_t>(b)]) {
      if (Rank(t) > Rank(b)) {
        ++forward_in_[static_cast<size_t>(t)];
        continue;
      }
      if (!Dominates(t, b)) {
        irreducible_ = t;
        continue;
      }
      // Back edge b -> t: everything that reaches b without passing t.
      std::set<int>& loop = loops_[t];
      loop.insert(t);
      std::vector<int> work = {b};
      while (!work.empty()) {
        const int x = work.back();
        work.pop_back();
        if (!loop.insert(x).second) continue;
        for (int p : predecessors_[static_cast<size_t>(x)]) work.push_back(p);
      }
    }
}

bool FlowGraph::Dominates(int a, int b) const {
  while (Rank(b) > Rank(a)) b = dominator_[static_cast<size_t>(b)];
  return a == b;
}

std::vector<int> FlowGraph::JoinsUnder(int b) const {
  std::vector<int> joins;
  for (int x : order_)
    if (x != b && dominator_[static_cast<size_t>(x)] == b && forward_in_[static_cast<size_t>(x)] >= 2) joins.push_back(x);
  return joins;
}

}  // namespace sinter::tracer
