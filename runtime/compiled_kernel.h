#pragma once

#include <cstdint>

namespace sinter {

/// Machine code (or an interpreted program) for one kernel; immutable and thread-safe.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  /// Whether several threads may do parts of the points at once.
  virtual bool Splits() const { return true; }
  /// Does the points [begin, end) of the kernel's flattened outer domain. `buffers[i]` points to the data of buffer i (local buffers:
  /// ignored), `sizes` are the values of the kernel's run-time sizes, `scratch` holds the local buffers of one point.
  virtual void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) const = 0;
};

}  // namespace sinter
