#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/eager/tape.h"
#include "sinter/eager/tensor.h"
#include "sinter/tracer/differentiable.h"

namespace sinter::tracer {

/// The gradient of a compiled call: one node of the tape. The backward program is derived from the captured graph and computes again what it
/// needs of the forward. With create_graph it is a node itself, so that gradients of any order work.
class CompiledBackward final : public CustomBackward {
 public:
  /// Keeps the inputs as they are now. To be made before state is written.
  static std::unique_ptr<CompiledBackward> Make(std::shared_ptr<Differentiable> program, std::span<TensorImpl* const> inputs);
  /// Puts the node on the tape: results get their history.
  static void Attach(std::unique_ptr<CompiledBackward> backward, std::span<const ImplPtr> results);

  std::vector<ImplPtr> Run(std::span<const ImplPtr> result_gradients, const std::vector<bool>& wanted, bool create_graph) override;
  void Release() override {
    inputs_.clear();
    edges_.clear();
  }

 private:
  explicit CompiledBackward(std::shared_ptr<Differentiable> program) : program_(std::move(program)) {}
  void Add(TensorImpl& input);
  void CheckVersions() const;

  std::shared_ptr<Differentiable> program_;
  std::vector<ImplPtr> inputs_;      // aliases of the inputs' memory
  std::vector<TapeEdge> edges_;      // where their gradients go
  std::vector<uint64_t> versions_;   // of their memory at the call
  std::vector<ConcreteType> results_;
};

}  // namespace sinter::tracer
