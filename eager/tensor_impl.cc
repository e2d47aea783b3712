#include "sinter/eager/tensor_impl.h"

#include <algorithm>
#include <numeric>

#include "sinter/eager/compute.h"
#include "sinter/eager/tape.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/tensor_view.h"

namespace sinter {

TensorImpl::TensorImpl() = default;
TensorImpl::~TensorImpl() = default;

bool DenseOrder(const Shape& shape, const Shape& strides, std::span<int> order) {
  std::iota(order.begin(), order.end(), 0);
  if (IsRowMajor(shape, strides)) return true;
  // Sizes of 1 take the place that a channels-last or row-major layout would give them: their strides are
  // made so.
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    const int d = order[k];
    if (shape[d] == 1) continue;
    if (strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

ImplPtr NewTensor(DType dtype, const Shape& shape) { return NewTensor(dtype, shape, RowMajorStrides(shape)); }

ImplPtr NewTensor(DType dtype, const Shape& shape, Shape strides) {
  ImplPtr t(new TensorImpl());
  t->dtype = dtype;
  t->storage = Storage::Allocate(ByteCount(NumElements(shape), ItemSize(dtype)));
  t->shape = shape;
  t->strides = std::move(strides);
  return t;
}

ImplPtr NewAlias(const TensorImpl& base, Shape shape, Shape strides, int64_t offset) {
  ImplPtr t(new TensorImpl());
  t->dtype = base.dtype;
  t->storage = base.storage;
  t->offset = offset;
  t->shape = std::move(shape);
  t->strides = std::move(strides);
  return t;
}

ImplPtr RowMajor(const ImplPtr& t) {
  if (IsRowMajor(t->shape, t->strides)) return t;
  ImplPtr copy = NewTensor(t->dtype, t->shape);
  CopyValues(*t, *copy);
  return copy;
}

void CopyValues(const TensorImpl& from, const TensorImpl& to) {
  if (from.dtype != to.dtype) return CopyValues(*eager::Converted(from, to.dtype), to);
  CopyView({from.data(), from.dtype, from.shape, from.strides}, {to.data(), to.dtype, to.shape, to.strides});
}

TensorType SymbolicTypeOf(const TensorImpl& t) {
  if (t.symbolic) return t.symbolic->type;
  return {t.dtype, SymShape(t.shape.begin(), t.shape.end())};
}

}  // namespace sinter
