#pragma once

#include <span>
#include <vector>

#include "sinter/eager/tape.h"
#include "sinter/eager/tensor.h"

/// Reverse-mode differentiation over the tape. Nodes run in reverse program order; contributions to one value
/// are added in the order in which they are produced, `acc = acc + new`, within a node by operand. What a
/// leaf gets from one backward is summed first and then added to its gradient. Compiled programs keep the
/// same order.
namespace sinter::eager {

/// A starting point: a result and its gradient.
struct GradientSeed {
  TapeEdge edge;
  ImplPtr gradient;
};

/// Adds to the gradients of all leaves below. Nothing is added if it throws.
void RunBackward(std::vector<GradientSeed> seeds, BackwardOptions options);

/// The gradients of the places `targets`; null where none arrives.
std::vector<ImplPtr> RunGradients(std::vector<GradientSeed> seeds, std::span<const TapeEdge> targets,
                                  BackwardOptions options);

/// Ones of the type of `t`, which has one element.
ImplPtr OnesLike(const TensorImpl& t);

}  // namespace sinter::eager
