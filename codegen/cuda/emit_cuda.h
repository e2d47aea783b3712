#pragma once

#include <string>

#include "sinter/codegen/kernel.h"

/// Kernel IR as CUDA C++: readable text without headers, the same bits as the interpreter (compile with --fmad=false).
namespace sinter::codegen::cuda {

struct CudaSource {
  std::string name;   ///< of the kernel function
  std::string text;   ///< of the translation unit
  int threads = 256;  ///< of a block; fixed in the text
  int points_per_block = 256;  ///< 1: a block has a row
};

/// A kernel function `extern "C" __global__ void NAME(void* const* buffers, const long long* sizes, long long begin, long long end, char* scratch,
/// long long scratch_stride)`. A grid of any size covers the outer points [begin, end): one thread each where the points are many and small; one
/// block each, with its threads over the inner loops and reductions, where a point is a row. `scratch` holds scratch_stride bytes of local
/// buffers for every thread or block of the grid. User lines are `#line` directives.
CudaSource EmitCuda(const Kernel& kernel);

}  // namespace sinter::codegen::cuda
