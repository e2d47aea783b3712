#pragma once

#include <memory>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/kernel.h"
#include "sinter/tests/sim_cuda/sim_device.h"

/// Kernels through the CUDA emitter, run on the simulated device: a kernel backend without a GPU.
namespace sinter::sim_cuda {

/// Emits the kernel; it is compiled for the host, together with others that were emitted before, when the first of them runs. Thread-safe.
std::shared_ptr<const CompiledKernel> SimulateCuda(const codegen::Kernel& kernel, const Grid& grid = {3, 64, 1});

/// SimulateCuda as a backend for Compile.
codegen::KernelBackend SimulatorBackend(const Grid& grid = {3, 64, 1});

}  // namespace sinter::sim_cuda
