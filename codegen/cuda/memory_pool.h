#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace sinter::codegen::cuda {

/// Which blocks of device memory are in use and which wait for their next use; the memory itself is the caller's to allocate and free.
/// Thread-safe.
class MemoryPool {
 public:
  /// Blocks of up to `keep_bytes` in all wait; with 0 none do, and blocks have just the size asked for.
  explicit MemoryPool(size_t keep_bytes) : keep_bytes_(keep_bytes) {}

  /// The size of the block for an allocation: at least 1 byte and at most an eighth more than asked for, or 512 bytes, so that sizes that
  /// differ a little share blocks.
  size_t BlockSize(size_t bytes) const;
  /// A waiting block of that size, now in use; 0 if there is none.
  uint64_t Take(size_t size);
  /// A new block, in use.
  void Add(uint64_t address, size_t size);
  /// Ends a use. True if the caller must free the block.
  bool Release(uint64_t address) noexcept;
  /// The waiting blocks, for the caller to free.
  std::vector<uint64_t> Drain();
  size_t bytes_in_use() const;

 private:
  const size_t keep_bytes_;
  mutable std::mutex mutex_;
  std::map<uint64_t, size_t> used_;                  // address to size
  std::map<size_t, std::vector<uint64_t>> waiting_;  // by size
  size_t used_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace sinter::codegen::cuda
