#pragma once

#include <vector>

#include "sinter/tracer/static_core.h"

namespace sinter::tracer {

/// Runs the function eagerly on the same arguments and from the same state and compares results, written state and gradients with
/// `outputs`, those of the compiled program. The state is afterwards as it was before. Throws Error where they differ: nothing that the
/// eager run reads is frozen, so it finds host values that changed since the capture, and paths that the capture took for others.
void VerifyAgainstEager(const Entry& entry, const FlatFunction& function, const std::vector<Tensor>& arguments, const std::vector<ImplPtr>& outputs);

}  // namespace sinter::tracer
