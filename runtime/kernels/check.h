#pragma once

#include <vector>

#include "sinter/runtime/kernels/registry.h"

namespace sinter::kernels {

/// Checks of data.
std::vector<KernelRow> CheckKernels();

}  // namespace sinter::kernels
