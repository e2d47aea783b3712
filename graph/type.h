#pragma once

#include <string>

#include "absl/container/inlined_vector.h"
#include "sinter/graph/dim.h"
#include "sinter/graph/dtype.h"

namespace sinter {

/// Sizes of a tensor, outermost first. Rank 0 is a scalar.
template <class D>
using ShapeVec = absl::InlinedVector<D, 6>;
using Shape = ShapeVec<int64_t>;
using SymShape = ShapeVec<Dim>;

/// The most dimensions that a tensor may have.
inline constexpr int kMaxRank = 8;

template <class D>
struct TypeOf {
  DType dtype = DType::kFloat32;
  ShapeVec<D> shape;
  friend bool operator==(const TypeOf& a, const TypeOf& b) { return a.dtype == b.dtype && a.shape == b.shape; }
  int rank() const { return static_cast<int>(shape.size()); }
};
/// Type of a graph value: element type and symbolic sizes.
using TensorType = TypeOf<Dim>;
/// Type of a concrete tensor.
using ConcreteType = TypeOf<int64_t>;

/// "[2, n + 1]"
std::string ShapeToString(const Shape& shape);
std::string ShapeToString(const SymShape& shape);
/// "float32[2, n + 1]"
std::string TypeToString(const TensorType& type);
std::string TypeToString(const ConcreteType& type);

/// Product of the sizes. Overflow of int64 is an Error.
int64_t NumElements(const Shape& shape);
Dim NumElements(const SymShape& shape);

/// Normalises a negative axis; out of range is an Error naming `op`.
int NormalizeAxis(int64_t axis, int rank, const char* what);

}  // namespace sinter
