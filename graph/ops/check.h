#pragma once

#include "sinter/graph/op.h"

namespace sinter::ops {

/// Operand 0, if every element of operand 1 (bool) holds; otherwise the call fails with kOutOfRange and `message`, and nothing of it is
/// committed. The gradient is checked in the same way, so that a step that does not use the value fails too.
struct Checked {
  static constexpr OpInfo kInfo{.name = "checked", .kind = OpKind::kOpaque, .inputs = 2, .dtype = DTypeRule::kFirst};
  struct Attrs {
    std::string message;
    SINTER_FIELDS(message)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    if (c.in[1].dtype != kBool) c.Fail("the condition must be bool");
    c.Out(ShapeVec<D>(c.in[0].shape));
  }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Checked, checked)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> CheckOps() { return OpFamily<Checked>(); }
}  // namespace sinter::ops
