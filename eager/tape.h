#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "sinter/eager/compute.h"
#include "sinter/eager/tensor_impl.h"
#include "sinter/graph/op.h"

/// The tape: one node for each op whose result needs a gradient. Nodes point to the nodes of their operands,
/// and die with the last tensor that can still reach them.
namespace sinter {

/// Where the gradient of an operand goes: to result `index` of a node, or to a leaf; neither: nowhere.
struct TapeEdge {
  Ref<TapeNode> node;
  ImplPtr leaf;
  uint32_t index = 0;
  bool wanted() const { return node || leaf; }
};

/// A value as it was when the op ran. Rules that only look at the type find it here; the value is kept where
/// the rule reads it.
struct SavedTensor {
  ImplPtr value;
  uint64_t version = 0;
  ConcreteType type;  ///< set where there is no value
};

/// The backward of something that is not an op, such as a compiled function.
class CustomBackward {
 public:
  virtual ~CustomBackward() = default;
  /// Gradients of the operands from those of the results (null: zero); null for none. With `create_graph`
  /// what it computes must be on the tape. May be called again only if the graph is retained.
  virtual std::vector<ImplPtr> Run(std::span<const ImplPtr> result_gradients, const std::vector<bool>& wanted,
                                   bool create_graph) = 0;
  /// Drops what it saved.
  virtual void Release() = 0;
};

class TapeNode {
 public:
  const OpDef* op = nullptr;
  AttrPtr attrs;
  uint64_t sequence = 0;  ///< program order, over all threads
  bool released = false;  ///< a backward has consumed what was saved
  absl::InlinedVector<TapeEdge, 2> edges;
  absl::InlinedVector<SavedTensor, 2> inputs;
  absl::InlinedVector<SavedTensor, 1> outputs;
  std::unique_ptr<CustomBackward> custom;
  std::string custom_name;
  std::vector<std::pair<uint32_t, std::shared_ptr<ImplPtr>>> retained;  ///< results that keep their gradient
  std::vector<void*> stack;  ///< of the forward call, in anomaly mode

  std::string_view name() const {
    return op != nullptr ? std::string_view(op->name) : std::string_view(custom_name);
  }
  size_t num_outputs() const { return op != nullptr ? outputs.size() : custom_outputs; }
  size_t custom_outputs = 0;
  void ReleaseSaved();

  void Retain() noexcept { refs_.Increment(); }
  void Release() noexcept {
    if (refs_.Decrement()) Destroy(this);
  }

 private:
  static void Destroy(TapeNode* node) noexcept;
  RefCount refs_;
};

namespace eager {

/// Puts a computed op on the tape and makes its results point to it; or marks where the gradient is cut, if
/// the op has none.
void RecordOnTape(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out);
/// A new node for results that something else computed. `edges` say where the gradients of its operands go; some may go nowhere.
Ref<TapeNode> NewCustomNode(std::string name, std::vector<TapeEdge> edges, std::span<const ImplPtr> out,
                            std::unique_ptr<CustomBackward> backward);
/// Where the gradient of a tensor goes.
TapeEdge EdgeOf(TensorImpl& t);

}  // namespace eager
}  // namespace sinter
