#pragma once

#include <vector>

#include "sinter/graph/passes/pass_manager.h"

namespace sinter::codegen {

/// The pipeline, in order. What it does under kExact keeps every bit.
std::vector<Pass> Pipeline(Numerics numerics);

/// Runs the pipeline: gradients lowered, composites decomposed, ready for Compile.
std::vector<PassTiming> Optimize(Graph& graph);

}  // namespace sinter::codegen
