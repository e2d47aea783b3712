#pragma once

#include <vector>

#include "sinter/runtime/kernels/registry.h"

namespace sinter::kernels {
/// Constants of more than one element, which have no element rule.
std::vector<KernelRow> ConstantKernels();
}  // namespace sinter::kernels
