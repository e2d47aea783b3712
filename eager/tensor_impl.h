#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sinter/eager/intrusive.h"
#include "sinter/eager/storage.h"
#include "sinter/graph/type.h"
#include "sinter/runtime/strides.h"

namespace sinter {

struct OpDef;
class TapeNode;

/// What a tensor stands for while its function is captured. `kind`, `index` and `epoch` belong to the
/// recorder, which made the value; nobody else reads them.
struct SymbolicValue {
  TensorType type;
  uint32_t kind = 0;
  uint32_t index = 0;
  uint64_t epoch = 0;
};

/// Why a result has no gradient although an operand wanted one.
struct GradientCut {
  enum Reason : uint8_t { kNoGradientOp, kGradModeOff, kDetached } reason;
  const OpDef* op = nullptr;  ///< the op that cut
  std::vector<void*> stack;   ///< where: of the call, or of the guard that turned gradients off
};

/// A tensor's identity: the cell that handles point to. Assigning a parameter or writing in place changes
/// what is in the cell, not which cell it is. Not thread-safe: concurrent readers are fine, a writer must be
/// alone.
struct TensorImpl {
  DType dtype = kFloat32;
  bool requires_grad = false;  ///< a leaf that collects a gradient, or the result of something that needs one
  bool is_view = false;        ///< made by an op whose result shares its operand's memory
  uint32_t output_index = 0;   ///< which result of `node`
  Ref<Storage> storage;        ///< null while symbolic
  int64_t offset = 0;          ///< first element, in elements
  Shape shape;                 ///< empty while symbolic
  Shape strides;               ///< in elements
  Ref<TapeNode> node;          ///< the op that made the value, where a gradient is wanted; null for a leaf
  Ref<TensorImpl> grad;        ///< of a leaf
  std::shared_ptr<Ref<TensorImpl>>
      retained_grad;  ///< of a result that keeps its gradient; shared with the node
  std::shared_ptr<const GradientCut> cut;
  std::unique_ptr<SymbolicValue> symbolic;

  TensorImpl();
  ~TensorImpl();
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;

  int rank() const { return symbolic ? symbolic->type.rank() : static_cast<int>(shape.size()); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  std::byte* data() const { return static_cast<std::byte*>(storage->data()) + offset * ItemSize(dtype); }
  ConcreteType type() const { return {dtype, shape}; }
  bool unique() const { return refs_.IsOne(); }
  void Retain() noexcept { refs_.Increment(); }
  void Release() noexcept {
    if (refs_.Decrement()) delete this;
  }

 private:
  RefCount refs_;
};
using ImplPtr = Ref<TensorImpl>;

/// The dimension order, outermost first, in which the layout is dense; false if in none.
bool DenseOrder(const Shape& shape, const Shape& strides, std::span<int> order);

/// A new cell with uninitialised row-major memory.
ImplPtr NewTensor(DType dtype, const Shape& shape);
/// The same with a given dense layout.
ImplPtr NewTensor(DType dtype, const Shape& shape, Shape strides);
/// A new cell on the memory of `base`, in base's element type; no gradient links.
ImplPtr NewAlias(const TensorImpl& base, Shape shape, Shape strides, int64_t offset);
/// A cell that is dense in row-major order: `t` itself, or a copy. No gradient is recorded.
ImplPtr RowMajor(const ImplPtr& t);
/// Writes the values of `from` into `to` (same sizes, converting the element type), wherever both lie.
void CopyValues(const TensorImpl& from, const TensorImpl& to);

/// The cell's type with constant sizes, or its symbolic type.
TensorType SymbolicTypeOf(const TensorImpl& t);

}  // namespace sinter
