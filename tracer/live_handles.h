#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sinter/eager/tensor.h"
#include "sinter/tracer/fiber.h"

namespace sinter::tracer {

/// The tensor handles of a captured function's variables during one run, and the caller's handles that it assigned.
class LiveHandles {
 public:
  explicit LiveHandles(const Fiber& fiber) : fiber_(fiber) {}
  /// Gives the caller's variables back what they held.
  ~LiveHandles();

  void Created(Tensor* handle) noexcept { live_[handle] = next_++; }
  void Destroyed(Tensor* handle) noexcept;
  /// False for a handle that was there before the function was called.
  bool Assigned(Tensor* handle) noexcept;
  /// All handles so far are the library's own.
  void Forget() noexcept { live_.clear(); }

  /// A live handle and where it is: an offset on the stack, or a number in the order of creation.
  struct Place {
    Tensor* handle;
    bool on_stack;
    size_t number;
    std::string ToString() const;
  };
  /// Those on the stack by address, then the others in order of creation.
  std::vector<Place> InOrder() const;
  const std::map<Tensor*, uint64_t>& all() const { return live_; }

 private:
  const Fiber& fiber_;
  std::map<Tensor*, uint64_t> live_;  // in which order they were made
  uint64_t next_ = 0;
  std::map<Tensor*, ImplPtr> outer_;  // what the caller's handles held
};

}  // namespace sinter::tracer
