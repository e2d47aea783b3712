#pragma once

#include <memory>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/cuda/device.h"

namespace sinter::codegen::cuda {

/// Kernels on a GPU, as a backend for Compile: every kernel copies its operands to the device and its results back. For programs whose other
/// steps run on the CPU; the bits are those of every other backend.
KernelBackend DeviceBackend(std::shared_ptr<Device> device);

}  // namespace sinter::codegen::cuda
