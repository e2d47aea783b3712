#pragma once

#include <cstdint>

#include "sinter/tests/sim_cuda/host_compile.h"

/// A device of one multiprocessor: blocks one after another, the threads of a block between barriers one after another, both in an
/// order drawn from a seed. A kernel whose result depends on the order has a race; two seeds show it.
namespace sinter::sim_cuda {

struct Grid {
  int blocks = 1;
  int threads = 64;  ///< of a block, at most 1024
  unsigned seed = 1;
};

/// Runs the kernel on the calling thread until all blocks are done. Throws Error if threads wait for ones that don't come (a barrier
/// that some threads of a block or warp skip while others wait at another one).
void Launch(const HostKernel& kernel, const Grid& grid, void* const* buffers, const long long* sizes, long long begin, long long end, char* scratch,
            long long scratch_stride);

}  // namespace sinter::sim_cuda
