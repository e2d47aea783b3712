#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <vector>

#include "sinter/eager/tensor.h"

/// Tensors from sizes, numbers and host data. While a function is captured they are constants of the program.
namespace sinter {

Tensor full(const Sizes& sizes, double value, DType dtype = kFloat32);
/// int64, exact for every value.
Tensor full_int(const Sizes& sizes, int64_t value);
inline Tensor zeros(const Sizes& sizes, DType dtype = kFloat32) { return full(sizes, 0, dtype); }
inline Tensor ones(const Sizes& sizes, DType dtype = kFloat32) { return full(sizes, 1, dtype); }
Tensor full_like(const Tensor& t, double value);
inline Tensor zeros_like(const Tensor& t) { return full_like(t, 0); }
inline Tensor ones_like(const Tensor& t) { return full_like(t, 1); }
/// 0, 1, ..., end - 1 as int64.
Tensor arange(const Int& end);
/// start, start + step, ... before end; element i is start + i * step.
Tensor arange(double start, double end, double step = 1, DType dtype = kFloat32);
/// `count` numbers from start to end, both included.
Tensor linspace(double start, double end, int64_t count, DType dtype = kFloat32);
/// The identity matrix.
Tensor eye(const Int& n, DType dtype = kFloat32);

/// A copy of `bytes` bytes of host memory, in row-major order. The bytes must be what sizes and dtype need.
Tensor from_blob(const void* data, const Shape& sizes, DType dtype);
/// A copy of host numbers; the element type is theirs.
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& sizes) {
  if (NumElements(sizes) != static_cast<int64_t>(values.size()))
    throw Error(ErrorCode::kInvalidArgument, "from_vector: " + std::to_string(values.size()) +
                                                 " values for shape " + ShapeToString(sizes));
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(values.begin(), values.end());
    return from_blob(bytes.data(), sizes, kBool);
  } else {
    return from_blob(values.data(), sizes, DTypeOf<T>::value);
  }
}
template <class T>
Tensor from_vector(const std::vector<T>& values) {
  return from_vector(values, Shape{static_cast<int64_t>(values.size())});
}

namespace eager_internal {

template <class T>
struct Literal {
  using Number = std::conditional_t<std::is_same_v<T, double>, float,
                                    std::conditional_t<std::is_same_v<T, int>, int64_t, T>>;
};
[[noreturn]] void FailRagged();

}  // namespace eager_internal

/// A tensor written down: `tensor({1.0, 2.5})`, `tensor({{1, 2}, {3, 4}})`. Numbers with a point give
/// float32, integers int64.
template <HostScalar T>
Tensor tensor(T value) {
  using N = typename eager_internal::Literal<T>::Number;
  return from_vector(std::vector<N>{static_cast<N>(value)}, Shape{});
}
template <HostScalar T>
Tensor tensor(std::initializer_list<T> values) {
  using N = typename eager_internal::Literal<T>::Number;
  return from_vector(std::vector<N>(values.begin(), values.end()));
}
template <HostScalar T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows) {
  using N = typename eager_internal::Literal<T>::Number;
  std::vector<N> values;
  const size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    if (row.size() != width) eager_internal::FailRagged();
    values.insert(values.end(), row.begin(), row.end());
  }
  return from_vector(values, Shape{static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)});
}

}  // namespace sinter
