#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

/// Appends to `block` (before `before`, or at the end) the nodes that compute the gradients of the values `of` with respect to `wrt`, in one
/// pass, and returns them; null where nothing of `of` depends on a value. `seeds` are the gradients of `of` (null: ones). Only nodes of `block` and of the blocks
/// around it are differentiated through; nodes inside the regions of `if` nodes too. A `while` on the path is an Error that names its line.
///
/// Order of accumulation, the same as of the eager tape: nodes in reverse program order, contributions to one value added in the order in
/// which they are produced, acc = acc + new; a branch goes on with the sums of the code after it.
std::vector<Value*> Differentiate(Block& block, std::span<Value* const> of, std::span<Value* const> seeds, std::span<Value* const> wrt, const Node* before = nullptr);
/// Of one value.
std::vector<Value*> Differentiate(Block& block, Value* of, Value* seed, std::span<Value* const> wrt, const Node* before = nullptr);

/// Replaces every `gradient` node (what backward() in a capture records), in program order, by the nodes that compute it. True if there was one.
bool LowerGradients(Graph& graph);

}  // namespace sinter
