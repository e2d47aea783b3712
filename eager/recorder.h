#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sinter/eager/tensor_impl.h"
#include "sinter/graph/attrs.h"
#include "sinter/graph/dim.h"

/// How a capture sees the eager world. While a recorder is installed on a thread, ops are handed to it
/// instead of being computed, and it is told of every tensor handle that is made, assigned or destroyed
/// there.
namespace sinter {

struct OpDef;
class Tensor;

/// Implemented by the tracer. All calls come from the thread on which it is installed.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// The recorder of this thread, or null.
  static Recorder* Current();

  /// An op on symbolic or concrete cells (a concrete one that is met becomes a state input). `types` are the
  /// results' types (shape rules have left their guards with the GuardSink); the cells returned are symbolic.
  virtual std::vector<ImplPtr> Record(const OpDef& op, const AttrPtr& attrs,
                                      std::span<TensorImpl* const> inputs,
                                      std::span<const TensorType> types) = 0;
  /// `if (tensor)`: the answer for this run.
  virtual bool Decide(TensorImpl& predicate) = 0;
  /// The host asks for values (`what`: "item()", "data()"). Either the cell is concrete afterwards, or this
  /// throws.
  virtual void HostRead(TensorImpl& t, std::string_view what) = 0;
  /// The host asks for a size as a number: `dim` is pinned by a guard, or this throws.
  virtual int64_t HostSize(const Dim& dim, std::string_view what) = 0;
  /// `value` becomes what is in `cell`: in-place writes and assigned parameters. Types are equal.
  virtual void Assign(TensorImpl& cell, TensorImpl& value) = 0;
  /// loss.backward(): the gradients of everything that `loss` depends on and that collects one are added to
  /// it. An empty seed is 1.
  virtual void Backward(TensorImpl& loss, TensorImpl* seed) = 0;
  /// Gradients of `outputs` with respect to `inputs`, which collect nothing. A seed may be null: 1.
  virtual std::vector<ImplPtr> Gradients(std::span<TensorImpl* const> outputs,
                                         std::span<TensorImpl* const> inputs,
                                         std::span<TensorImpl* const> seeds) = 0;
  /// `t.clear_grad()` or `t.set_grad(value)` (null: clear).
  virtual void AssignGrad(TensorImpl& t, TensorImpl* value) = 0;
  /// `t.grad()`: null where none is collected yet.
  virtual ImplPtr ReadGrad(TensorImpl& t) = 0;

  /// The function reads a host flag that may change between calls (a module's training mode): part of what the program is for.
  virtual void NoteFlag(const std::shared_ptr<const bool>& flag) = 0;

  /// A handle was constructed at this address, or is about to be destroyed, or is about to hold another cell.
  /// The cell of a live handle may be exchanged through Tensor::slot().
  virtual void HandleCreated(Tensor* handle) noexcept = 0;
  virtual void HandleDestroyed(Tensor* handle) noexcept = 0;
  virtual void HandleAssigned(Tensor* handle) noexcept = 0;
};

/// Installs a recorder (null: none) on this thread while in scope. Nests.
class ScopedRecorder {
 public:
  explicit ScopedRecorder(Recorder* recorder);
  ~ScopedRecorder();
  ScopedRecorder(const ScopedRecorder&) = delete;
  ScopedRecorder& operator=(const ScopedRecorder&) = delete;

 private:
  Recorder* previous_;
};

}  // namespace sinter
