#pragma once

#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "sinter/eager/compute.h"
#include "sinter/eager/tensor.h"

/// The one way through which every op on tensors goes, in this order: observer, autocast, then either the
/// recorder of a capture, or computation and the tape.
namespace sinter {

/// Sees every op of a thread, composites whole and then their parts: profilers.
class DispatchObserver {
 public:
  virtual ~DispatchObserver() = default;
  virtual void Begin(const OpDef& op, const AttrPtr& attrs, std::span<TensorImpl* const> inputs) = 0;
  /// Also after an exception; `outputs` is empty then.
  virtual void End(const OpDef& op, std::span<const ImplPtr> outputs) = 0;
};

/// Changes the element types in which ops compute.
class AutocastHook {
 public:
  virtual ~AutocastHook() = default;
  /// The type to which floating operands of `op` are cast first; nothing: as they are.
  virtual std::optional<DType> OperandTypeFor(const OpDef& op, std::span<TensorImpl* const> inputs) const = 0;
};

/// Installs an observer (null: none) on this thread while in scope.
class ScopedObserver {
 public:
  explicit ScopedObserver(DispatchObserver* observer);
  ~ScopedObserver();
  ScopedObserver(const ScopedObserver&) = delete;
  ScopedObserver& operator=(const ScopedObserver&) = delete;

 private:
  DispatchObserver* previous_;
};

/// Installs an autocast (null: none) on this thread while in scope.
class ScopedAutocast {
 public:
  explicit ScopedAutocast(const AutocastHook* hook);
  ~ScopedAutocast();
  ScopedAutocast(const ScopedAutocast&) = delete;
  ScopedAutocast& operator=(const ScopedAutocast&) = delete;

 private:
  const AutocastHook* previous_;
};

namespace eager {

/// Carries out an op on cells; results are appended to `out`.
void Dispatch(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out);
/// The same for one result.
ImplPtr Dispatch1(const OpDef& op, const AttrPtr& attrs, Operands in);
/// op(cell, operands...) whose result, of the cell's type, becomes the cell's value: in-place arithmetic.
void DispatchInPlace(const OpDef& op, const AttrPtr& attrs, Operands in);
/// Puts `value` into `cell`, an in-place write: the memory is kept. Types are equal.
void WriteInPlace(TensorImpl& cell, TensorImpl& value);

}  // namespace eager
}  // namespace sinter
