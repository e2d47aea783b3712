#pragma once

#include <string>

#include "sinter/tests/sim_cuda/shim.h"

/// CUDA C++ as functions of this process.
namespace sinter::sim_cuda {

using SimKernelFn = void (*)(void* const* buffers, const long long* sizes, long long begin, long long end, char* scratch, long long scratch_stride);

struct HostKernel {
  SimKernelFn function = nullptr;
  SimState* (*state)() = nullptr;  ///< of the calling thread
  bool waits = false;              ///< threads wait for one another: they need stacks of their own
};

/// Announces a text (of a kernel named `sinter_kernel`) that HostKernelOf will be asked for: what has been announced is compiled
/// together. Returns the handle for it; equal texts have one handle. Thread-safe.
int Announce(const std::string& text);

/// The kernel of a handle, compiled with the system's g++ with everything announced so far. Throws Error with the compiler's
/// messages. Thread-safe.
HostKernel HostKernelOf(int handle);

}  // namespace sinter::sim_cuda
