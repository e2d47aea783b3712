#include "sinter/tracer/run_executable.h"

#include "absl/container/inlined_vector.h"

namespace sinter::tracer {

std::vector<ImplPtr> RunExecutable(const Executable& executable, std::span<TensorImpl* const> inputs, int64_t verified_turns) {
  absl::InlinedVector<TensorView, 16> in, out;
  for (TensorImpl* t : inputs) in.push_back({t->data(), t->dtype, t->shape, t->strides});
  const Executable::Prepared prepared = executable.Prepare(in);
  const int n = executable.num_outputs();
  std::vector<ImplPtr> results;
  results.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const PlanBuffer& buffer = executable.plan().buffers[static_cast<size_t>(executable.plan().outputs[static_cast<size_t>(i)])];
    results.push_back(NewTensor(buffer.type.dtype, prepared.OutputSizes(i), prepared.OutputStrides(i)));
    TensorImpl& t = *results.back();
    out.push_back({t.data(), t.dtype, t.shape, t.strides});
  }
  executable.Run(prepared, in, out, verified_turns);
  return results;
}

}  // namespace sinter::tracer
