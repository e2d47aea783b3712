#include "sinter/runtime/arena_plan.h"

#include <algorithm>
#include <numeric>

namespace sinter {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

bool Overlap(const ArenaBlock& a, const ArenaBlock& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

ArenaPlan PlanArena(std::span<const ArenaBlock> blocks) {
  ArenaPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<size_t> placed;  // sorted by offset
  for (size_t k : order) {
    const int64_t bytes = RoundUp(blocks[k].bytes);
    int64_t at = 0, best = -1, best_gap = INT64_MAX;
    for (size_t other : placed) {
      if (!Overlap(blocks[k], blocks[other])) continue;
      const int64_t gap = plan.offsets[other] - at;
      if (gap >= bytes && gap < best_gap) best = at, best_gap = gap;
      at = std::max(at, plan.offsets[other] + RoundUp(blocks[other].bytes));
    }
    plan.offsets[k] = best >= 0 ? best : at;
    plan.bytes = std::max(plan.bytes, plan.offsets[k] + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), k, [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }), k);
  }
  return plan;
}

int64_t ArenaLowerBound(std::span<const ArenaBlock> blocks) {
  int64_t bound = 0;
  for (const ArenaBlock& b : blocks) {
    // The peak is reached at the start of some block.
    int64_t alive = 0;
    for (const ArenaBlock& c : blocks)
      if (c.first <= b.first && b.first <= c.last) alive += RoundUp(c.bytes);
    bound = std::max(bound, alive);
  }
  return bound;
}

bool CheckArena(std::span<const ArenaBlock> blocks, const ArenaPlan& plan) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (plan.offsets[i] < 0 || plan.offsets[i] % 64 != 0 || plan.offsets[i] + blocks[i].bytes > plan.bytes) return false;
    for (size_t j = 0; j < i; ++j)
      if (Overlap(blocks[i], blocks[j]) && plan.offsets[i] < plan.offsets[j] + blocks[j].bytes &&
          plan.offsets[j] < plan.offsets[i] + blocks[i].bytes)
        return false;
  }
  return true;
}

}  // namespace sinter
