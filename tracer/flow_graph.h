#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sinter/tracer/learner.h"

namespace sinter::tracer {

/// The blocks of an automaton as a control-flow graph: order, dominators, natural loops.
class FlowGraph {
 public:
  explicit FlowGraph(const Automaton& a);

  /// Position in reverse post-order.
  int Rank(int b) const { return rank_[static_cast<size_t>(b)]; }
  bool Dominates(int a, int b) const;
  bool IsLoopHead(int b) const { return loops_.contains(b); }
  /// The blocks of the natural loop of a head.
  const std::set<int>& Loop(int head) const { return loops_.at(head); }
  /// Blocks immediately dominated by `b` that two or more forward edges enter, in reverse post-order.
  std::vector<int> JoinsUnder(int b) const;
  /// A block that a loop is entered at beside its head; nothing if there is none.
  std::optional<int> IrreducibleBlock() const { return irreducible_; }

 private:
  std::vector<std::vector<int>> successors_, predecessors_;
  std::vector<int> rank_, order_, dominator_;
  std::map<int, std::set<int>> loops_;
  std::vector<int> forward_in_;
  std::optional<int> irreducible_;
};

}  // namespace sinter::tracer
