#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sinter/tracer/trace.h"

/// Learns the finite automaton behind a function from re-executions: which arrivals are the same place of the program. Call stacks
/// are hints; every claim is compared with real runs, and a difference splits what was taken for one.
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

struct LearnerOptions {
  int max_blocks = 400;
  int max_per_key = 48;    ///< variants of one decision
  int turns = 64;          ///< how often each loop is run to compare
  int counted_turns = 1100; ///< the same for loops in which a host variable changes from turn to turn
  int max_runs = 200000;
};

/// Throws Error where the function can't be captured soundly, naming the line.
Automaton Learn(Subject& subject, const LearnerOptions& options);

}  // namespace sinter::tracer
