#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"
#include "sinter/tracer/capture_run.h"
#include "sinter/tracer/learner.h"

namespace sinter::tracer {

/// A captured function as a graph: outputs are the results, then the gradients that were left (in the order of
/// `final_grads`, which is set); states are the cells that it touched, in the order of `session.externals()`. Decisions become If and While.
/// An automaton that has no such form is an Error that names the line.
std::unique_ptr<Graph> BuildGraph(const Automaton& automaton, const CaptureSession& session, const std::string& name,
                                  const std::vector<std::string>& argument_names, const std::vector<std::string>& external_names,
                                  std::vector<FinalGrad>* final_grads);

/// Undoes the duplication that capture leaves: what both branches of an `if` compute alike moves behind it, and the condition of a loop,
/// which the code before the loop and the end of its body both compute, moves into the condition region.
bool SinkLoopConditions(Graph& graph);

}  // namespace sinter::tracer
