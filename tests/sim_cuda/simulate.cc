#include "sinter/tests/sim_cuda/simulate.h"

#include <algorithm>
#include <vector>

#include "sinter/codegen/cuda/emit_cuda.h"
#include "sinter/graph/error.h"

namespace sinter::sim_cuda {
namespace {

using codegen::BufferRole;
using codegen::Kernel;

class SimulatedKernel : public CompiledKernel {
 public:
  SimulatedKernel(const Kernel& k, const Grid& grid) : grid_(grid), sizes_(k.RuntimeSizes()) {
    for (const codegen::KernelBuffer& b : k.buffers)
      if (b.role == BufferRole::kLocal) locals_.push_back(b);
    handle_ = Announce(codegen::cuda::EmitCuda(k).text);
  }

  void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void*) const override {
    if (begin >= end) return;
    // Local buffers for every worker, filled with a pattern so that a read before a write shows.
    const int64_t stride = ScratchStride(sizes), workers = int64_t{grid_.blocks} * grid_.threads;
    std::vector<char> scratch(static_cast<size_t>(stride * workers + 64), '\x5a');
    char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    static_assert(sizeof(long long) == sizeof(int64_t));
    Launch(HostKernelOf(handle_), grid_, buffers, reinterpret_cast<const long long*>(sizes), begin, end, aligned, stride);
  }

 private:
  int64_t Value(Dim d, const int64_t* sizes) const {
    if (d.is_const()) return d.value();
    auto it = std::find(sizes_.begin(), sizes_.end(), d);
    SINTER_CHECK(it != sizes_.end());
    return sizes[it - sizes_.begin()];
  }
  int64_t ScratchStride(const int64_t* sizes) const {
    int64_t bytes = 0;
    for (const codegen::KernelBuffer& b : locals_) {
      int64_t n = ItemSize(b.dtype);
      for (Dim d : b.shape) n *= Value(d, sizes);
      bytes += (n + 63) / 64 * 64;
    }
    return bytes;
  }

  Grid grid_;
  std::vector<Dim> sizes_;
  std::vector<codegen::KernelBuffer> locals_;
  int handle_ = 0;
};

}  // namespace

std::shared_ptr<const CompiledKernel> SimulateCuda(const Kernel& kernel, const Grid& grid) { return std::make_shared<SimulatedKernel>(kernel, grid); }

codegen::KernelBackend SimulatorBackend(const Grid& grid) {
  return [grid](const Kernel& k) { return SimulateCuda(k, grid); };
}

}  // namespace sinter::sim_cuda
