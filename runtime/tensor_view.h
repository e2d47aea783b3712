#pragma once

#include <cstdint>
#include <span>

#include "sinter/graph/dtype.h"

namespace sinter {

/// A tensor in memory as kernels see it: not owned, strides in elements (0 for broadcast dimensions).
struct TensorView {
  void* data = nullptr;
  DType dtype = kFloat32;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;

  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : sizes) n *= d;
    return n;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// Copies `from` to `to`, which have equal sizes and element types and may have any strides (those of `to`
/// reach each element once). The memory must not overlap. Uses the pool's threads for large tensors.
void CopyView(const TensorView& from, const TensorView& to);

}  // namespace sinter
