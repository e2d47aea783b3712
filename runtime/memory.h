#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sinter {

/// Host memory for tensors and scratch. Blocks are aligned to 64 bytes, sizes are rounded up to classes (at
/// most 25 % more), and freed blocks are kept in a bounded cache, so that a program that repeats its work
/// does not call malloc. All functions may be called from any thread. Built with AddressSanitizer the cache
/// is off, so that it sees every use after a free.

inline constexpr size_t kMemoryAlignment = 64;

/// Bytes as asked for, without the rounding.
struct MemoryStats {
  int64_t current_bytes = 0;  // handed out now
  int64_t peak_bytes = 0;     // most handed out at once since the last ResetPeakMemory
  int64_t cached_bytes = 0;   // held for reuse (rounded sizes)
  int64_t allocations = 0;    // calls of AllocateMemory
  int64_t cache_hits = 0;     // those served from the cache
};

/// At least `bytes` bytes, uninitialised; never null, also for 0. Throws Error(kResourceExhausted) when the
/// system or the limit refuses, after giving the cache back to the system.
void* AllocateMemory(size_t bytes);

/// Ends a block; `bytes` is what was asked for. A null block is ignored.
void FreeMemory(void* block, size_t bytes) noexcept;

MemoryStats GetMemoryStats();
void ResetPeakMemory();

/// Gives all cached blocks back to the system.
void ReleaseCachedMemory() noexcept;

/// The most the cache may hold; initially 1 GiB, or SINTER_MEMORY_CACHE_MB. Releases what is above.
void SetMemoryCacheLimit(size_t bytes);

/// The most that may be handed out at once, in bytes; initially no limit.
void SetMemoryLimit(size_t bytes);

/// count * item_size, where count >= 0. Throws Error(kResourceExhausted) when that exceeds what a block can
/// have.
size_t ByteCount(int64_t count, size_t item_size);

/// Owns one block.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  explicit MemoryBlock(size_t bytes) : data_(AllocateMemory(bytes)), bytes_(bytes) {}
  MemoryBlock(MemoryBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryBlock() { FreeMemory(data_, bytes_); }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sinter
