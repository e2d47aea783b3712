#pragma once

#include <optional>
#include <vector>

#include "sinter/tracer/trace.h"

/// What was learned of a function: its places of decision, and what it does between them.
namespace sinter::tracer {

struct Block {
  std::string key;
  Path access;          ///< decisions that lead here
  /// By decision (false, true): the segment that follows and where it arrives. Only of kBranch.
  Segment segment[2];
  int target[2] = {-1, -1};
  Segment arrival;      ///< the segment by which it was found
};

struct Automaton {
  Segment start;        ///< from the entry
  int entry = 0;        ///< block that it arrives at
  std::vector<Block> blocks;
  int runs = 0;
  int64_t verified_turns = 0;  ///< of every loop
};

/// Decisions that lead from one block to another, as few as possible.
std::optional<Path> Between(const Automaton& automaton, int from, int to);

/// Decisions that lead from a block out of the function, as few as possible; nothing where no way out is known.
std::optional<Path> WayOut(const Automaton& automaton, int from);

/// A way from a block back to it.
struct Cycle {
  int block;
  Path steps;
};

/// The shortest cycle through each decision that closes one.
std::vector<Cycle> CyclesOf(const Automaton& automaton);

}  // namespace sinter::tracer
