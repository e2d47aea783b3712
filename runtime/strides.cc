#include "sinter/runtime/strides.h"

#include <algorithm>
#include <numeric>

namespace sinter {

Shape RowMajorStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

Shape DenseStrides(const Shape& shape, std::span<const int> order) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    step *= std::max<int64_t>(shape[order[k]], 1);
  }
  return strides;
}

bool IsRowMajor(const Shape& shape, const Shape& strides) {
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) return true;
    if (shape[d] == 1) continue;
    if (strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

std::vector<int> RowMajorOrder(int rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int> ChannelsLastOrder(int rank) {
  std::vector<int> order = RowMajorOrder(rank);
  if (rank >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

}  // namespace sinter
