#pragma once

#include <vector>

#include "sinter/runtime/kernels/registry.h"

namespace sinter::kernels {

/// Matrix products and convolutions in f32 and f64. Other element types are done by the element rule.
std::vector<KernelRow> ContractionKernels();

}  // namespace sinter::kernels
