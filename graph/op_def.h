#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/graph/op_rules.h"
#include "sinter/graph/samples.h"

/// The type-erased definition of an op, the registry, and how a struct becomes a definition.
namespace sinter {

/// Everything known of one op. Immutable, lives as long as the process.
struct OpDef {
  std::string name;
  OpKind kind = OpKind::kOpaque;
  int since = 1;
  int inputs = 1;
  int outputs = 1;
  DTypeRule dtype_rule = DTypeRule::kPromote;
  /// Defined here and not in Sinter: by the program (see RegisterOp).
  bool user_defined = false;

  std::function<void(ShapeCtx<int64_t>&)> shape;      ///< never empty (control flow excepted)
  std::function<void(ShapeCtx<Dim>&)> sym_shape;
  /// Pointwise: the body over operands that have the compute type already.
  std::function<Expr(std::span<const Expr>, const AttrBox*)> body;
  /// One element of a result. Set for every op that is not composite, control flow or opaque; pointwise ops get it from the body.
  std::function<Expr(ElementCtx&)> element;
  std::function<bool(ViewCtx&)> view;            ///< kView ops whose result may share the operand's memory
  std::function<void(DecomposeCtx&)> decompose;  ///< composites
  /// Gradient rule; empty for composites without one of their own (their parts are differentiated) and for no_grad ops.
  std::function<void(GradCtx&)> grad;
  bool no_grad = false;  ///< declared to have no gradient (comparisons, integer results)
  /// Pointwise with a better-conditioned derivative than that of the body: d result / d operand i, given operands and result.
  std::function<Expr(int i, std::span<const Expr> x, const Expr& y, const AttrBox*)> derivative;
  std::function<AttrPtr(std::span<const AttrField>)> parse_attrs;
  AttrPtr default_attrs;
  std::function<void(SampleSink&)> samples;

  const AttrPtr& AttrsOrDefault(const AttrPtr& a) const { return a ? a : default_attrs; }
};

/// Dtype of the operands as the op computes them, before ComputeType: their common type under the op's rule.
DType OperandType(const OpDef& op, std::span<const DType> in);
/// Result types of a call. Wrong operands are an Error with the op, the operand types and the cause.
absl::InlinedVector<ConcreteType, 2> InferTypes(const OpDef& op, std::span<const ConcreteType> in, const AttrPtr& attrs);
std::vector<TensorType> InferTypes(const OpDef& op, std::span<const TensorType> in, const AttrPtr& attrs);

/// The op whose result is the product of a gradient with d(op)/d(operand): body g * derivative. Operands are g, then the
/// operands (and the result, if the derivative uses it) that its expression reads; `operands` says which: -1 = g, 0.. = operand, n = result.
/// Its name says the same, e.g. "tanh.d0[g,y]", so that a file can name it. An empty `op` means the derivative is zero.
struct DerivedOp {
  const OpDef* op = nullptr;
  std::vector<int> operands;
  bool identity = false;  ///< the derivative is 1: the product is g itself
};
DerivedOp DerivativeOf(const OpDef& op, int operand, const AttrPtr& attrs);

/// Carries out the gradient rule of any differentiable op: its own, or the derived ones of a pointwise op with sums over
/// broadcast dimensions.
void ApplyGradRule(GradCtx& ctx);
/// Sums `g` over the dimensions that broadcasting added or stretched to get from `target` to g's shape.
Var SumToShape(Var g, const SymShape& target);

// Registry -------------------------------------------------------------------------------------------------------

/// Every op of Sinter and of the program, by name. Derivative ops are found by their names too and made on demand.
const OpDef* FindOp(std::string_view name);
/// The same; a missing op is an Error that names it and the nearest known name.
const OpDef& GetOp(std::string_view name);
/// All registered ops, in the order of registration, without derived ones.
std::vector<const OpDef*> AllOps();
/// Makes a program's own op known under its name; a name that is taken by another definition is an Error.
const OpDef& RegisterOp(OpDef def);

// From a struct to an OpDef --------------------------------------------------------------------------------------

namespace op_internal {

template <class T>
struct AttrsOf { using type = NoAttrs; };
template <class T>
  requires requires { typename T::Attrs; }
struct AttrsOf<T> { using type = typename T::Attrs; };

template <class T, size_t... I>
Expr CallBody(std::span<const Expr> x, const AttrBox* attrs, std::index_sequence<I...>) {
  using A = typename AttrsOf<T>::type;
  if constexpr (std::is_same_v<A, NoAttrs>) return T::Body(x[I]...);
  else return T::Body(x[I]..., attrs->As<A>());
}

void FinishDef(OpDef& def);

// Rules are found by name and signature, so that one with a slip in either would be left out in silence: a struct that has a member of
// a rule's name must be callable as that rule, and each kind must have the rules that it can't do without.
template <class T>
constexpr void CheckRules() {
  using A = typename AttrsOf<T>::type;
  constexpr OpInfo info = T::kInfo;
  constexpr bool infer = requires(ShapeCtx<Dim>& c) { T::Infer(c); } && requires(ShapeCtx<int64_t>& c) { T::Infer(c); };
  constexpr bool element = requires(ElementCtx& c) { { T::Element(c) } -> std::convertible_to<Expr>; };
  constexpr bool view = requires(ViewCtx& c) { { T::View(c) } -> std::convertible_to<bool>; };
  constexpr bool decompose = requires(DecomposeCtx& c) { T::Decompose(c); };
  constexpr bool grad = requires(GradCtx& c) { T::Grad(c); };
  constexpr bool derivative = requires(int i, std::span<const Expr> x, const Expr& y) { T::Derivative(i, x, y); } ||
                              requires(int i, std::span<const Expr> x, const Expr& y, const A& a) { T::Derivative(i, x, y, a); };
  constexpr bool samples = requires(SampleSink& s) { T::Samples(s); };
  static_assert(infer || !requires { &T::template Infer<Dim>; }, "Infer is a template over D that takes ShapeCtx<D>&");
  static_assert(element || !requires { &T::Element; }, "Element takes ElementCtx& and gives an Expr");
  static_assert(view || !requires { &T::View; }, "View takes ViewCtx& and gives a bool");
  static_assert(decompose || !requires { &T::Decompose; }, "Decompose takes DecomposeCtx&");
  static_assert(grad || !requires { &T::Grad; }, "Grad takes GradCtx&");
  static_assert(derivative || !requires { &T::Derivative; }, "Derivative takes int, span<const Expr>, const Expr& and the attributes, if it reads them");
  static_assert(samples || !requires { &T::Samples; }, "Samples takes SampleSink&");

  constexpr bool pointwise = info.kind == OpKind::kPointwise, composite = info.kind == OpKind::kComposite;
  constexpr bool regions = info.kind == OpKind::kControlFlow, opaque = info.kind == OpKind::kOpaque;
  static_assert(!pointwise || info.inputs > 0, "a pointwise op has operands");
  static_assert(pointwise || infer, "an op that isn't pointwise needs Infer, the types of its results");
  static_assert(infer || info.dtype != DTypeRule::kCustom, "Infer sets the type that DTypeRule::kCustom leaves open");
  static_assert(pointwise || composite || regions || opaque || element, "an op of this kind needs Element, the rule of one element");
  static_assert(composite == decompose, "Decompose is the rule of composites");
  static_assert(pointwise || !derivative, "Derivative is the rule of pointwise ops; others have Grad");
  static_assert(pointwise || composite || regions || grad || requires { T::kNoGrad; }, "an op needs Grad, or says kNoGrad");
}

template <class T>
OpDef MakeDef() {
  CheckRules<T>();
  using A = typename AttrsOf<T>::type;
  constexpr OpInfo info = T::kInfo;
  OpDef d;
  d.name = std::string(info.name);
  d.kind = info.kind;
  d.since = info.since;
  d.inputs = info.inputs;
  d.outputs = info.outputs;
  d.dtype_rule = info.dtype;
  if constexpr (requires(ShapeCtx<Dim>& c) { T::Infer(c); }) {
    d.shape = [](ShapeCtx<int64_t>& c) { T::Infer(c); };
    d.sym_shape = [](ShapeCtx<Dim>& c) { T::Infer(c); };
  }
  if constexpr (info.kind == OpKind::kPointwise) {
    d.body = [](std::span<const Expr> x, const AttrBox* a) { return CallBody<T>(x, a, std::make_index_sequence<info.inputs>()); };
  }
  if constexpr (requires(ElementCtx& c) { T::Element(c); }) d.element = [](ElementCtx& c) { return T::Element(c); };
  if constexpr (requires(ViewCtx& c) { T::View(c); }) d.view = [](ViewCtx& c) { return T::View(c); };
  if constexpr (requires(DecomposeCtx& c) { T::Decompose(c); }) d.decompose = [](DecomposeCtx& c) { T::Decompose(c); };
  if constexpr (requires(GradCtx& c) { T::Grad(c); }) d.grad = [](GradCtx& c) { T::Grad(c); };
  if constexpr (requires { T::kNoGrad; }) d.no_grad = T::kNoGrad;
  if constexpr (requires(int i, std::span<const Expr> x, const Expr& y) { T::Derivative(i, x, y); })
    d.derivative = [](int i, std::span<const Expr> x, const Expr& y, const AttrBox*) { return T::Derivative(i, x, y); };
  else if constexpr (requires(int i, std::span<const Expr> x, const Expr& y, const A& a) { T::Derivative(i, x, y, a); })
    d.derivative = [](int i, std::span<const Expr> x, const Expr& y, const AttrBox* a) { return T::Derivative(i, x, y, a->As<A>()); };
  d.parse_attrs = [](std::span<const AttrField> fields) { return AttrsFromFields<A>(fields); };
  d.default_attrs = MakeAttrs(A{});
  if constexpr (requires(SampleSink& s) { T::Samples(s); }) d.samples = [](SampleSink& s) { T::Samples(s); };
  FinishDef(d);
  return d;
}

}  // namespace op_internal

/// The definition behind an op struct.
template <class T>
const OpDef& DefOf() {
  static const OpDef def = op_internal::MakeDef<T>();
  return def;
}

/// A family of ops; each family file ends in one, and graph/ops/all_ops.cc lists the families.
template <class... Ts>
std::vector<const OpDef*> OpFamily() { return {&DefOf<Ts>()...}; }

}  // namespace sinter
