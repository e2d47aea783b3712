#pragma once

#include "sinter/graph/op.h"

/// Ops with regions; graph.h says what the regions mean. Only graphs contain them, and Graph::AddIf and AddWhile make them.
namespace sinter::ops {

struct If {
  static constexpr OpInfo kInfo{.name = "if", .kind = OpKind::kControlFlow, .inputs = 1, .outputs = -1, .dtype = DTypeRule::kCustom};
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Fail("has regions and is made by Graph::AddIf"); }
};

struct While {
  static constexpr OpInfo kInfo{.name = "while", .kind = OpKind::kControlFlow, .inputs = -1, .outputs = -1, .dtype = DTypeRule::kCustom};
  struct Attrs {
    int64_t verified_turns = 0;  ///< turns that were compared with the function at capture; 0: any number is
    SINTER_FIELDS(verified_turns)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) { c.Fail("has regions and is made by Graph::AddWhile"); }
};

/// Gradients of a scalar with respect to values of the same graph: operands are the scalar, then the values; one result per value, zeros
/// where the scalar does not depend on it. Recorded by backward() in a capture, replaced by LowerGradients.
struct Gradient {
  static constexpr OpInfo kInfo{.name = "gradient", .kind = OpKind::kControlFlow, .inputs = -1, .outputs = -1, .dtype = DTypeRule::kCustom};
  struct Attrs {
    bool seeded = false;  ///< operand 1 is the gradient of the scalar (or of a tensor); otherwise it is 1
    SINTER_FIELDS(seeded)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const size_t first = c.template Attrs<Attrs>().seeded ? 2 : 1;
    c.out.resize(c.in.size() - first);
    for (size_t i = first; i < c.in.size(); ++i) c.out[i - first] = c.in[i];
  }
};

inline std::vector<const OpDef*> ControlFlowOps() { return OpFamily<If, While, Gradient>(); }

}  // namespace sinter::ops
