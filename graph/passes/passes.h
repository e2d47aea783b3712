#pragma once

#include <functional>
#include <span>

#include "sinter/graph/graph.h"

/// Graph passes: one file and one function each. A pass returns whether it changed anything, keeps every value's bits (fold_batch_norm
/// excepted, which runs under Numerics::kDefault and looser), and leaves a graph that verifies.
namespace sinter {

/// Removes nodes without used results, and unused carried values of loops.
bool EliminateDeadCode(Graph& graph);

/// Drops one carried value of a loop that is the same in every turn or that nothing reads; false if there is none.
bool DropCarriedValue(Graph& graph, Node& loop);

/// One node for equal nodes (same op, attributes and operands) of a block or of the blocks around it.
bool EliminateCommonSubexpressions(Graph& graph);

/// Rewrites by the rows of a table: identities that hold bit for bit.
bool SimplifyAlgebra(Graph& graph);

/// Computes one node on literals: results by number. Given by whoever has kernels.
using ConstantEvaluator = std::function<std::vector<TensorLiteral>(const Node& node, std::span<const TensorLiteral> inputs)>;
/// Replaces nodes whose operands are all constants by their results, up to `max_bytes` each.
bool FoldConstants(Graph& graph, const ConstantEvaluator& evaluate, int64_t max_bytes = 1 << 16);

/// A concat of many tensors becomes a tree of concats.
bool SplitWideConcats(Graph& graph);

/// conv2d followed by batch_norm with read-only statistics becomes conv2d with a scaled weight, plus a bias: the scale is computed in
/// the graph from the states, so new weights are seen. Changes rounding: not for kExact.
bool FoldBatchNorm(Graph& graph);

}  // namespace sinter
