#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace sinter {

/// Owning pointer to an object that counts its own references: T has `Retain() noexcept` and `Release()
/// noexcept`.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_ != nullptr) p_->Retain();
  }
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(const Ref& o) noexcept {
    Ref(o).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref(std::move(o)).swap(*this);
    return *this;
  }
  ~Ref() {
    if (p_ != nullptr) p_->Release();
  }

  /// Takes over a reference that was counted already.
  static Ref Adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.p_ == b.p_; }
  void swap(Ref& o) noexcept { std::swap(p_, o.p_); }
  void reset() noexcept { Ref().swap(*this); }

 private:
  T* p_ = nullptr;
};

/// The count; a new object has none.
class RefCount {
 public:
  void Increment() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether that was the last one.
  bool Decrement() noexcept { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// Only the holder of a reference may ask, and only `1` is more than a snapshot.
  bool IsOne() const noexcept { return count_.load(std::memory_order_acquire) == 1; }

 private:
  std::atomic<uint32_t> count_{0};
};

}  // namespace sinter
