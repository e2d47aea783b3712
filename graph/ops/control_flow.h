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

/// Gradients of scalars (or of tensors with seeds) with respect to values of the same graph: operands are the `outputs` scalars, their seeds
/// if there are any, then the values; one result per value, zeros where nothing depends on it. Recorded by backward() in a capture, replaced by LowerGradients.
struct Gradient {
  static constexpr OpInfo kInfo{.name = "gradient", .kind = OpKind::kControlFlow, .inputs = -1, .outputs = -1, .dtype = DTypeRule::kCustom};
  struct Attrs {
    bool seeded = false;  ///< each output has a seed, its gradient; otherwise that is 1
    int64_t outputs = 1;
    SINTER_FIELDS(seeded, outputs)
  };
  /// Number of operands before the values.
  static size_t FirstInput(const Attrs& a) { return static_cast<size_t>(a.outputs) * (a.seeded ? 2 : 1); }
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    if (a.outputs < 1 || a.outputs > static_cast<int64_t>(c.in.size()) || FirstInput(a) > c.in.size()) c.Fail("has too few operands");
    const size_t first = FirstInput(a);
    c.out.resize(c.in.size() - first);
    for (size_t i = first; i < c.in.size(); ++i) c.out[i - first] = c.in[i];
  }
};

inline std::vector<const OpDef*> ControlFlowOps() { return OpFamily<If, While, Gradient>(); }

}  // namespace sinter::ops
