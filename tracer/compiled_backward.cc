#include "sinter/tracer/compiled_backward.h"

#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/optimize.h"
#include "sinter/eager/creation.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/run_executable.h"
#include "sinter/tracer/static_core.h"

namespace sinter::tracer {

std::unique_ptr<CompiledBackward> CompiledBackward::Make(std::shared_ptr<Entry> entry, const std::vector<TensorImpl*>& inputs, const std::vector<ImplPtr>& outputs) {
  std::unique_ptr<CompiledBackward> b(new CompiledBackward(std::move(entry)));
  // Assigning a parameter gives it other memory, so an alias of the present one is the value as it is now.
  for (TensorImpl* t : inputs) {
    b->inputs_.push_back(NewAlias(*t, t->shape, t->strides, t->offset));
    b->versions_.push_back(t->storage->version());
  }
  for (int i = 0; i < b->entry_->num_results; ++i) b->results_.push_back(outputs[static_cast<size_t>(i)]->type());
  return b;
}

void CompiledBackward::Attach(std::unique_ptr<CompiledBackward> backward, const std::vector<TensorImpl*>& inputs, std::vector<Tensor>& results) {
  std::vector<ImplPtr> out;
  for (const Tensor& t : results) out.push_back(t.impl_ptr());
  const std::string name = backward->entry_->graph->name;
  eager::NewCustomNode(name, inputs, out, std::move(backward));
}

// The captured function with its inputs as arguments and a seed for each result; results are the gradients of the wanted inputs.
std::shared_ptr<const Executable> CompiledBackward::Program(const std::vector<bool>& wanted) {
  std::lock_guard lock(entry_->backward_mutex);
  std::shared_ptr<const Executable>& program = entry_->backward[wanted];
  if (program) return program;
  const Graph& forward = *entry_->graph;
  Graph g;
  g.name = forward.name + ".backward";
  g.numerics = forward.numerics;
  g.guards = forward.guards;
  std::unordered_map<const Value*, Value*> map;
  for (const auto& p : forward.body.params) map[p.get()] = g.AddArg(p->type, p->name);
  std::vector<Value*> seeds;
  for (int i = 0; i < entry_->num_results; ++i) seeds.push_back(g.AddArg(forward.body.results[static_cast<size_t>(i)]->type, StrCat("seed", i)));
  std::vector<Value*> results = CloneInto(forward.body, g.body, map);
  std::vector<Value*> wrt;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) wrt.push_back(g.body.params[i].get());
  g.SetOutputs(results);  // keeps them alive while gradients are made
  LowerGradients(g);
  GraphBuilder builder(g.body);
  std::vector<Value*> of, of_seeds;
  for (int i = 0; i < entry_->num_results; ++i) {
    if (!IsFloating(g.body.results[static_cast<size_t>(i)]->type.dtype)) continue;
    of.push_back(g.body.results[static_cast<size_t>(i)]);
    of_seeds.push_back(seeds[static_cast<size_t>(i)]);
  }
  std::vector<Value*> total = Differentiate(g.body, of, of_seeds, wrt);
  for (size_t k = 0; k < wrt.size(); ++k)
    if (total[k] == nullptr) total[k] = GraphBuilder::Unwrap(FullLike(builder.Wrap(wrt[k]), 0));
  g.SetOutputs(total);
  codegen::Optimize(g);
  codegen::CompileOptions o;
  o.backend = codegen::CpuBackend();
  program = codegen::Compile(g, o);
  return program;
}

std::vector<ImplPtr> CompiledBackward::Run(std::span<const ImplPtr> result_gradients, const std::vector<bool>& wanted, bool create_graph) {
  if (create_graph)
    throw Error(ErrorCode::kUnimplemented, StrCat("second derivatives through the compiled function '", entry_->graph->name,
                                                  "': call the function itself, or take the gradient inside of the captured function"));
  std::vector<TensorImpl*> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]->storage->version() != versions_[i])
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat("backward: the gradient of the compiled function '", entry_->graph->name, "' needs its input '", entry_->graph->body.params[i]->name, "' (",
                         TypeToString(inputs_[i]->type()), "), which was overwritten after the call; write to a clone(), or use the op that makes a new tensor"));
    inputs.push_back(inputs_[i].get());
  }
  std::vector<ImplPtr> zeros;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (result_gradients[i]) {
      inputs.push_back(result_gradients[i].get());
      continue;
    }
    Tensor zero = sinter::full(results_[i].shape, 0, results_[i].dtype);
    zeros.push_back(zero.impl_ptr());
    inputs.push_back(zeros.back().get());
  }
  std::vector<ImplPtr> made = RunExecutable(*Program(wanted), inputs);
  std::vector<ImplPtr> grads(wanted.size());
  size_t k = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) grads[i] = made[k++];
  return grads;
}

}  // namespace sinter::tracer
