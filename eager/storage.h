#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sinter/eager/intrusive.h"

namespace sinter {

/// Memory that tensors share: a tensor and its views have one storage. Counted; the bytes are aligned to 64.
class Storage {
 public:
  /// Uninitialised memory of at least `bytes`.
  static Ref<Storage> Allocate(size_t bytes);
  /// Memory of someone else, which lives as long as `owner`. Never written by Sinter when `read_only`.
  static Ref<Storage> Borrow(void* data, size_t bytes, std::shared_ptr<void> owner, bool read_only);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool read_only() const { return read_only_; }

  /// A number that no other storage ever had, new after each write: equal versions mean equal contents.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  /// To be called by whoever writes, before readers look.
  void MarkWritten();

  /// A view of this storage takes part in a gradient: an in-place write that needs one is then refused.
  bool has_tracked_views() const { return tracked_views_.load(std::memory_order_relaxed); }
  void MarkTrackedView() { tracked_views_.store(true, std::memory_order_relaxed); }

  bool unique() const { return refs_.IsOne(); }
  void Retain() noexcept { refs_.Increment(); }
  void Release() noexcept {
    if (refs_.Decrement()) Destroy();
  }

 private:
  Storage() = default;
  ~Storage() = default;
  void Destroy() noexcept;

  RefCount refs_;
  bool read_only_ = false;
  std::atomic<bool> tracked_views_{false};
  std::atomic<uint64_t> version_{0};
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<std::shared_ptr<void>> owner_;
};

}  // namespace sinter
