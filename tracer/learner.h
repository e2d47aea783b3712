#pragma once

#include "sinter/tracer/automaton.h"

/// Learns the finite automaton behind a function from re-executions: which arrivals are the same place of the program. Call stacks
/// are hints; every claim is compared with real runs, and a difference splits what was taken for one.
namespace sinter::tracer {

struct LearnerOptions {
  int max_blocks = 400;
  int max_per_key = 48;    ///< variants of one decision
  int max_growth = 96;     ///< how often one decision may have more live tensors than the time before
  int turns = 64;          ///< how often each loop is run to compare
  int counted_turns = 1100; ///< the same for loops in which a host variable changes from turn to turn
  int max_runs = 200000;
};

/// Throws Error where the function can't be captured soundly, naming the line.
Automaton Learn(Subject& subject, const LearnerOptions& options);

/// Runs every loop of what was learned for `turns` turns and compares; Error where the function does something else.
void CheckLongRuns(Subject& subject, const Automaton& automaton, int64_t turns);

}  // namespace sinter::tracer
