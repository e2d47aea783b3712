#include "sinter/graph/ops/check.h"

namespace sinter::ops {

void Checked::Grad(GradCtx& c) {
  if (c.g()) c.grad_in[0] = checked(c.g(), c.in[1], c.Attrs<Attrs>());
}

void Checked::Samples(SampleSink& s) {
  const AttrPtr attrs = MakeAttrs(Attrs{"never"});
  s.Case({{{2, 3}}, {{4}, 1, 1, kBool}}, attrs).Case({{{}}, {{0}, 1, 1, kBool}}, attrs).Case({{{0, 2}}, {{}, 1, 1, kBool}}, attrs).MaxUlp(0);
  s.Reference([](std::span<const RefTensor> in, const AttrPtr&) { return std::vector{in[0]}; });
}

}  // namespace sinter::ops
