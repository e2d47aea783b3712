#pragma once

#include "sinter/tracer/static_core.h"

namespace digits {

/// Emits the kernels of a captured program as CUDA C++, compiles each for NVIDIA devices where NVRTC is there, and runs the program, at a
/// batch of 7, on a simulated device. Prints what came of it; false if a kernel doesn't compile or the simulated results differ from
/// the CPU's by a bit.
bool ShowCuda(const sinter::tracer::Entry& entry);

}  // namespace digits
