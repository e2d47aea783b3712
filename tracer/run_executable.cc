#include "sinter/tracer/run_executable.h"

#include "absl/container/inlined_vector.h"

namespace sinter::tracer {

std::vector<ImplPtr> RunExecutable(const Executable& executable, std::span<TensorImpl* const> inputs, int64_t verified_turns) {
  absl::InlinedVector<TensorView, 16> in, out;
  for (TensorImpl* t : inputs) in.push_back({t->data(), t->dtype, t->shape, t->strides});
  const DimEnv env = executable.Bind(in);
  std::vector<ImplPtr> results;
  results.reserve(static_cast<size_t>(executable.num_outputs()));
  for (int i = 0; i < executable.num_outputs(); ++i) {
    const ConcreteType type = executable.OutputType(i, env);
    results.push_back(NewTensor(type.dtype, type.shape, DenseStrides(type.shape, executable.OutputOrder(i))));
    TensorImpl& t = *results.back();
    out.push_back({t.data(), t.dtype, t.shape, t.strides});
  }
  executable.Run(env, in, out, verified_turns);
  return results;
}

}  // namespace sinter::tracer
