#include "sinter/codegen/cuda/device_backend.h"

#include <algorithm>
#include <vector>

#include "sinter/graph/error.h"

namespace sinter::codegen::cuda {
namespace {

constexpr int64_t kMaxBlocks = 1 << 16;  // of a grid; its threads take turns beyond

class DeviceKernel final : public CompiledKernel {
 public:
  DeviceKernel(std::shared_ptr<Device> device, const Kernel& k) : device_(std::move(device)), buffers_(k.buffers), sizes_(k.RuntimeSizes()), source_(EmitCuda(k)) {
    function_ = device_->Load(source_);
  }

  bool Splits() const override { return false; }

  void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void*) const override {
    if (begin >= end) return;
    DeviceMemory memory(*device_);
    std::vector<uint64_t> table;
    int64_t local_bytes = 0;  // of one worker
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const size_t bytes = Bytes(buffers_[i], sizes);
      if (buffers_[i].role == BufferRole::kLocal) {
        local_bytes += static_cast<int64_t>((bytes + 63) / 64 * 64);
        table.push_back(0);
        continue;
      }
      // Results are copied in too: a kernel may do a part of them, and what it does not write stays.
      table.push_back(memory.AllocateCopy(buffers[i], bytes));
    }
    uint64_t device_table = memory.AllocateCopy(table.data(), table.size() * sizeof(uint64_t));
    uint64_t device_sizes = memory.AllocateCopy(sizes, sizes_.size() * sizeof(int64_t));
    const int64_t per_block = source_.points_per_block;
    int64_t blocks = std::min(kMaxBlocks, (end - begin + per_block - 1) / per_block);
    // A bound on what the local buffers of all workers take.
    const int64_t workers_per_block = per_block == 1 ? 1 : source_.threads;
    if (local_bytes > 0) blocks = std::max<int64_t>(1, std::min(blocks, (int64_t{1} << 28) / (local_bytes * workers_per_block)));
    uint64_t device_scratch = memory.Allocate(static_cast<size_t>(local_bytes * workers_per_block * blocks));
    int64_t stride = local_bytes;
    void* parameters[] = {&device_table, &device_sizes, &begin, &end, &device_scratch, &stride};
    device_->Launch(function_, blocks, source_.threads, parameters);
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].role == BufferRole::kOutput) device_->CopyOut(buffers[i], table[i], Bytes(buffers_[i], sizes));
  }

 private:
  size_t Bytes(const KernelBuffer& b, const int64_t* sizes) const {
    size_t n = static_cast<size_t>(ItemSize(b.dtype));
    for (Dim d : b.shape) n *= static_cast<size_t>(Value(d, sizes));
    return n;
  }
  int64_t Value(Dim d, const int64_t* sizes) const {
    if (d.is_const()) return d.value();
    auto it = std::find(sizes_.begin(), sizes_.end(), d);
    SINTER_CHECK(it != sizes_.end(), "a size that is no argument: " + d.ToString());
    return sizes[it - sizes_.begin()];
  }

  std::shared_ptr<Device> device_;
  std::vector<KernelBuffer> buffers_;
  std::vector<Dim> sizes_;
  CudaSource source_;
  const DeviceFunction* function_;
};

}  // namespace

KernelBackend DeviceBackend(std::shared_ptr<Device> device) {
  return [device](const Kernel& k) { return std::make_shared<DeviceKernel>(device, k); };
}

}  // namespace sinter::codegen::cuda
