#pragma once

#include <memory>
#include <vector>

#include "sinter/eager/tape.h"
#include "sinter/eager/tensor.h"
#include "sinter/runtime/executable.h"

namespace sinter::tracer {

struct Entry;

/// The gradient of a compiled call: one node of the tape. The backward program is derived from the captured graph and compiled when
/// first needed; it computes again what it needs of the forward.
class CompiledBackward final : public CustomBackward {
 public:
  /// Keeps the inputs as they are now. To be made before state is written.
  static std::unique_ptr<CompiledBackward> Make(std::shared_ptr<Entry> entry, const std::vector<TensorImpl*>& inputs, const std::vector<ImplPtr>& outputs);
  /// Puts the node on the tape: results get their history.
  static void Attach(std::unique_ptr<CompiledBackward> backward, const std::vector<TensorImpl*>& inputs, std::vector<Tensor>& results);

  std::vector<ImplPtr> Run(std::span<const ImplPtr> result_gradients, const std::vector<bool>& wanted, bool create_graph) override;
  void Release() override { inputs_.clear(); }

 private:
  explicit CompiledBackward(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  std::shared_ptr<const Executable> Program(const std::vector<bool>& wanted);

  std::shared_ptr<Entry> entry_;
  std::vector<ImplPtr> inputs_;     // aliases of the inputs' memory
  std::vector<uint64_t> versions_;  // of their memory at the call
  std::vector<ConcreteType> results_;
};

}  // namespace sinter::tracer
