#include "absl/container/inlined_vector.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/compiled_backward.h"
#include "sinter/tracer/run_executable.h"
#include "sinter/tracer/static_core.h"
#include "sinter/tracer/verify.h"

// A call of a compiled program: results, then what it writes, all or nothing.
namespace sinter::tracer {
namespace {

// What a captured function can't do to its arguments, and an eager one would.
void CheckArguments(const Entry& entry, std::span<TensorImpl* const> arguments) {
  if (!entry.calls_backward && !entry.writes_state) return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorImpl& t = *arguments[i];
    if (entry.calls_backward && t.requires_grad)
      throw Error(ErrorCode::kUnimplemented,
                  StrCat(entry.graph->name, ": argument ", i,
                         " requires a gradient, and the function calls backward(), which collects gradients of parameters only; pass x.detach(), or return grad({loss}, {x})"));
    for (size_t s = 0; s < entry.graph->states.size(); ++s)
      if (entry.graph->states[s].result >= 0 && entry.externals[s].Current().storage == t.storage)
        throw Error(ErrorCode::kUnimplemented,
                    StrCat(entry.graph->name, ": argument ", i, " shares memory with the state '", entry.graph->states[s].name,
                           "', which the function writes; the write would have to show in the argument. Pass a clone()"));
  }
}

}  // namespace

std::vector<Tensor> StaticCore::RunEntry(const std::shared_ptr<Entry>& shared, std::span<const Tensor* const> arguments, const FlatFunction* verify) {
  Entry& entry = *shared;
  absl::InlinedVector<TensorImpl*, 16> inputs;
  bool wants = false;
  for (const Tensor* t : arguments) inputs.push_back(&t->impl());
  CheckArguments(entry, inputs);
  std::vector<ImplPtr> old_grads;  // the call replaces them; the tape still needs the operands
  for (const External& e : entry.externals) {
    inputs.push_back(&e.Current());
    if (e.owner) old_grads.emplace_back(inputs.back());
  }
  for (const TensorImpl* t : inputs) wants |= t->requires_grad;
  std::vector<ImplPtr> outputs = RunExecutable(*entry.executable, inputs, entry.verified_turns);
  if (verify) {
    std::vector<Tensor> copies;
    for (const Tensor* t : arguments) copies.push_back(*t);
    VerifyAgainstEager(entry, *verify, copies, outputs);
  }

  // From here on nothing throws: results, then state, then gradients are put in place.
  std::vector<Tensor> results;
  results.reserve(static_cast<size_t>(entry.num_results));
  for (int i = 0; i < entry.num_results; ++i) results.emplace_back(outputs[static_cast<size_t>(i)]);
  const bool differentiable = wants && GradEnabled();
  std::unique_ptr<CompiledBackward> backward;
  if (differentiable) {
    std::call_once(entry.differentiable_once, [&] { entry.differentiable = std::make_shared<Differentiable>(entry.graph->Clone(), entry.num_results); });
    backward = CompiledBackward::Make(entry.differentiable, inputs);
  }
  for (size_t s = 0; s < entry.graph->states.size(); ++s) {
    const StateSlot& slot = entry.graph->states[s];
    if (slot.result < 0) continue;
    Tensor cell(ImplPtr(&entry.externals[s].Current()));
    cell.set_data(Tensor(std::move(outputs[static_cast<size_t>(slot.result)])));
  }
  size_t grad = static_cast<size_t>(entry.num_results);
  for (const FinalGrad& g : entry.final_grads) {
    TensorImpl& cell = *entry.externals[static_cast<size_t>(g.external)].cell;
    cell.grad = g.cleared ? ImplPtr() : outputs[grad++];
  }
  if (backward) {
    std::vector<ImplPtr> attached;
    for (const Tensor& t : results) attached.push_back(t.impl_ptr());
    CompiledBackward::Attach(std::move(backward), attached);
  }
  return results;
}

}  // namespace sinter::tracer
