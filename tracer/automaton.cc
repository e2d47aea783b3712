#include "sinter/tracer/automaton.h"

#include <algorithm>

namespace sinter::tracer {
namespace {

// The decisions of a shortest way from a block to one that `wanted` holds for.
template <class Wanted>
std::optional<Path> Search(const Automaton& automaton, int from, Wanted wanted) {
  struct Step {
    int before = -2;  // not reached
    bool bit = false;
  };
  std::vector<Step> steps(automaton.blocks.size());
  std::vector<int> queue = {from};
  steps[static_cast<size_t>(from)].before = -1;
  for (size_t i = 0; i < queue.size(); ++i) {
    const Block& block = automaton.blocks[static_cast<size_t>(queue[i])];
    if (wanted(queue[i])) {
      Path path;
      for (int b = queue[i]; steps[static_cast<size_t>(b)].before >= 0; b = steps[static_cast<size_t>(b)].before) path.push_back(steps[static_cast<size_t>(b)].bit);
      std::reverse(path.begin(), path.end());
      return path;
    }
    if (block.arrival.kind != Segment::kBranch) continue;
    for (int a : {0, 1}) {
      Step& next = steps[static_cast<size_t>(block.target[a])];
      if (next.before != -2) continue;
      next = {queue[i], a != 0};
      queue.push_back(block.target[a]);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Path> Between(const Automaton& automaton, int from, int to) {
  return Search(automaton, from, [&](int b) { return b == to; });
}

std::optional<Path> WayOut(const Automaton& automaton, int from) {
  return Search(automaton, from, [&](int b) { return automaton.blocks[static_cast<size_t>(b)].arrival.kind != Segment::kBranch; });
}

std::vector<Cycle> CyclesOf(const Automaton& automaton) {
  std::vector<Cycle> cycles;
  for (size_t q = 0; q < automaton.blocks.size(); ++q) {
    const Block& block = automaton.blocks[q];
    if (block.arrival.kind != Segment::kBranch) continue;
    for (int a : {0, 1}) {
      std::optional<Path> back = Between(automaton, block.target[a], static_cast<int>(q));
      if (!back) continue;
      Cycle c{static_cast<int>(q), {a != 0}};
      c.steps.insert(c.steps.end(), back->begin(), back->end());
      cycles.push_back(std::move(c));
    }
  }
  return cycles;
}

}  // namespace sinter::tracer
