#pragma once

#include <span>
#include <vector>

#include "sinter/graph/type.h"

/// Layouts in memory: strides in elements, and orders of dimensions (outermost first).
namespace sinter {

/// Strides of a row-major layout.
Shape RowMajorStrides(const Shape& shape);
/// Strides of a dense layout with dimensions `order`.
Shape DenseStrides(const Shape& shape, std::span<const int> order);
/// Row-major without gaps. Strides of sizes 0 and 1 don't matter.
bool IsRowMajor(const Shape& shape, const Shape& strides);

/// 0, 1, ..., rank - 1
std::vector<int> RowMajorOrder(int rank);
/// Dimension 1 innermost; row-major below rank 3.
std::vector<int> ChannelsLastOrder(int rank);

}  // namespace sinter
