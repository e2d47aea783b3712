#include "sinter/tracer/compiled_backward.h"

#include "sinter/eager/creation.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/run_executable.h"

namespace sinter::tracer {

// Assigning a parameter gives it other memory, so an alias of the present one is the value as it is now.
void CompiledBackward::Add(TensorImpl& input) {
  inputs_.push_back(NewAlias(input, input.shape, input.strides, input.offset));
  edges_.push_back(eager::EdgeOf(input));
  versions_.push_back(input.storage->version());
}

std::unique_ptr<CompiledBackward> CompiledBackward::Make(std::shared_ptr<Differentiable> program, std::span<TensorImpl* const> inputs) {
  std::unique_ptr<CompiledBackward> b(new CompiledBackward(std::move(program)));
  for (TensorImpl* t : inputs) b->Add(*t);
  return b;
}

void CompiledBackward::Attach(std::unique_ptr<CompiledBackward> backward, std::span<const ImplPtr> results) {
  for (const ImplPtr& t : results) backward->results_.push_back(t->type());
  const std::string name = backward->program_->graph().name;
  std::vector<TapeEdge> edges = backward->edges_;
  eager::NewCustomNode(name, std::move(edges), results, std::move(backward));
}

void CompiledBackward::CheckVersions() const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i]->storage->version() != versions_[i])
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat("backward: the gradient of the compiled function '", program_->graph().name, "' needs its input '", program_->graph().body.params[i]->name, "' (",
                         TypeToString(inputs_[i]->type()), "), which was overwritten after the call; write to a clone(), or use the op that makes a new tensor"));
}

std::vector<ImplPtr> CompiledBackward::Run(std::span<const ImplPtr> result_gradients, const std::vector<bool>& wanted, bool create_graph) {
  CheckVersions();
  std::vector<ImplPtr> seeds;
  for (size_t i = 0; i < results_.size(); ++i)
    seeds.push_back(result_gradients[i] ? result_gradients[i] : sinter::full(results_[i].shape, 0, results_[i].dtype).impl_ptr());
  std::vector<TensorImpl*> operands;
  for (const ImplPtr& t : inputs_) operands.push_back(t.get());
  for (const ImplPtr& t : seeds) operands.push_back(t.get());
  const std::shared_ptr<Differentiable> program = program_->Backward(wanted);
  std::vector<ImplPtr> made = RunExecutable(*program->executable(), operands);
  if (create_graph) {
    std::unique_ptr<CompiledBackward> second(new CompiledBackward(program));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      second->inputs_.push_back(inputs_[i]);
      second->edges_.push_back(edges_[i]);
      second->versions_.push_back(versions_[i]);
    }
    for (const ImplPtr& t : seeds) second->Add(*t);
    Attach(std::move(second), made);
  }
  std::vector<ImplPtr> grads(wanted.size());
  size_t k = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) grads[i] = made[k++];
  return grads;
}

}  // namespace sinter::tracer
