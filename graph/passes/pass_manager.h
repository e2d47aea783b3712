#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

struct Pass {
  std::string name;
  std::function<bool(Graph&)> run;
};

struct PassTiming {
  std::string name;
  double seconds = 0;
  bool changed = false;
};

/// Runs passes in order, verifying after each. With SINTER_DUMP=1 the graph is printed to stderr after every pass that changed it, and
/// "(unchanged)" after the others; SINTER_DUMP=FOLDER writes numbered files there instead.
std::vector<PassTiming> RunPasses(Graph& graph, const std::vector<Pass>& passes);

}  // namespace sinter
