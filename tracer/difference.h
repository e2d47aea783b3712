#pragma once

#include <string>

#include "sinter/eager/tensor.h"
#include "sinter/graph/graph.h"

namespace sinter {

/// Where two tensors differ: empty if not. Under kExact every bit counts; otherwise floating elements may differ by `tolerance` times the
/// largest finite magnitude of `want`, and infinities and NaNs must be the same.
std::string DifferenceOf(const Tensor& want, const Tensor& got, Numerics numerics, double tolerance = 1e-5);

}  // namespace sinter
