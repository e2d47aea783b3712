#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/codegen/kernel.h"
#include "sinter/graph/graph.h"

/// Fusion: which nodes of a block run in which kernel.
///
/// Every node that has an element rule can be part of a kernel. A value is either *inlined* (recomputed inside the expressions of its
/// users, never stored) or *stored* by the kernel of some group. A group has one outer domain, whose points are independent; its
/// stages run in order at each point. A stored value joins an earlier group when
///  - its dimensions in memory order begin with the group's outer domain (the rest become inner loops), or, for a reduction, its kept
///    dimensions are that domain,
///  - it reads what the group stores at its own outer point only, and
///  - everything else that it reads is computed before the group.
namespace sinter::codegen {

struct FusionOptions {
  bool enabled = true;       ///< false: one kernel per node
  int max_buffers = 48;      ///< of one kernel
  int max_stages = 16;
  /// Contractions as kernels of their own instead of calls of structured kernels.
  bool contractions_as_kernels = false;
};

/// A kernel and the values behind its buffers.
struct FusedKernel {
  Kernel kernel;
  std::vector<const Value*> values;  ///< by buffer; null for local ones
};

/// One step of a block, in order: a kernel, or a node that isn't one.
struct FusedStep {
  const Node* node = nullptr;  ///< structured, control flow or constant node; null for a kernel
  FusedKernel fused;
};

/// Why a value did not join a group or wasn't inlined; for explain().
struct FusionRefusal {
  std::string value;   ///< the op that makes it, and the user's line
  std::string reason;
};

struct FusedBlock {
  std::vector<FusedStep> steps;
  std::vector<FusionRefusal> refusals;
};

/// Memory order of every value of a graph (regions included): what structured kernels produce, and what follows from it.
using Layouts = std::unordered_map<const Value*, std::vector<int>>;
Layouts AssignLayouts(const Graph& graph, const FusionOptions& options);

/// Whether a node is done by a structured kernel of the runtime.
bool IsStructured(const Node& node, const FusionOptions& options);

/// Fuses one block.
FusedBlock FuseBlock(const Block& block, const Layouts& layouts, const FusionOptions& options);

}  // namespace sinter::codegen
