#pragma once

#include <cstdint>
#include <memory>

#include "sinter/codegen/kernel.h"

/// Machine code for kernels on this CPU. Compiled kernels stay in memory for the life of the process and, as object files, in
/// $SINTER_CACHE_DIR or ~/.cache/sinter (folder `kernels`); an empty SINTER_CACHE_DIR keeps nothing on disk.
namespace sinter::codegen {

/// What code is made for. Results are the same for every target.
struct CpuTarget {
  int width = 8;        ///< lanes of the vectors in the code: 8 or 16; wider ones than the machine's are split
  bool avx512 = false;  ///< x86-64-v4 instead of v3
  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

/// 16 lanes of AVX-512 where the machine has it (and SINTER_ISA doesn't exclude it), else 8. SINTER_VECTOR_WIDTH=8|16 overrides the
/// width; another value is an Error.
CpuTarget HostTarget();

/// Compiles a kernel, or finds its code in the caches. Kernels of equal ToString() share code. Thread-safe; concurrent calls for one
/// kernel compile it once.
std::shared_ptr<const CompiledKernel> CompileCpuKernel(const Kernel& kernel, const CpuTarget& target = HostTarget());

struct KernelCacheStats {
  int64_t memory_hits = 0;
  int64_t disk_hits = 0;
  int64_t compiles = 0;
  int64_t damaged = 0;         ///< entries on disk that were ignored
  double compile_seconds = 0;  ///< spent emitting and generating code, summed over threads
};
/// Since the start of the process or ClearKernelCache.
KernelCacheStats GetKernelCacheStats();
/// Forgets kernels in memory (those in use stay valid) and resets the counters; with `disk` removes the files too.
void ClearKernelCache(bool disk = false);

}  // namespace sinter::codegen
