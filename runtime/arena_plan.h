#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinter {

/// A block that lives during steps [first, last].
struct ArenaBlock {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  ///< by block; multiples of 64
  int64_t bytes = 0;
};

/// Places blocks so that those alive at the same time don't overlap: greedy by size, each into the tightest gap that fits.
ArenaPlan PlanArena(std::span<const ArenaBlock> blocks);
/// The most bytes alive at one step: no plan is smaller.
int64_t ArenaLowerBound(std::span<const ArenaBlock> blocks);
/// Whether a plan is sound; independent of how it was made.
bool CheckArena(std::span<const ArenaBlock> blocks, const ArenaPlan& plan);

}  // namespace sinter
