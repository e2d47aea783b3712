#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sinter/graph/attrs.h"
#include "sinter/graph/dim_cond.h"
#include "sinter/graph/error.h"
#include "sinter/graph/expr.h"
#include "sinter/graph/num.h"
#include "sinter/graph/var.h"

/// What an op is. A struct in a family file under graph/ops carries everything about one op; `OpDef` is the same,
/// type-erased, and the only thing that the rest of Sinter sees. See graph/ops/README.md for how to add one.
namespace sinter {

enum class OpKind : uint8_t {
  kPointwise,    ///< Body over the elements of broadcast operands
  kView,         ///< same elements at other positions
  kReduce,       ///< one kReduce of the operand, perhaps with arithmetic around it
  kContraction,  ///< kReduce of kind kContract
  kGather,       ///< reads at positions that are data
  kWindow,       ///< reduction over a sliding window
  kRandom,       ///< counter-based random numbers
  kConstant,     ///< no operands
  kComposite,    ///< decomposes into other ops
  kControlFlow,  ///< has regions
  kOpaque,       ///< a library call or a special algorithm, no expression
};

/// How the element type of the result follows from those of the operands.
enum class DTypeRule : uint8_t {
  kPromote,       ///< operands convert to their common type, the result has it
  kPromoteFloat,  ///< the same, but integers and bool become f32 first
  kCompare,       ///< operands convert to their common type, the result is bool
  kLogical,       ///< operands convert to bool, the result is bool
  kFirst,         ///< the type of the first operand
  kCustom,        ///< the shape rule sets it
};

struct OpInfo {
  std::string_view name;
  OpKind kind;
  int since = 1;                ///< version of the definition; a change of meaning raises it
  int inputs = 1;               ///< number of operands; -1: any number
  int outputs = 1;
  DTypeRule dtype = DTypeRule::kPromote;
};

// Shape rules ----------------------------------------------------------------------------------------------------

/// What a shape rule sees and fills in. One template serves eager calls (D = int64_t) and graphs (D = Dim).
template <class D>
struct ShapeCtx {
  const OpDef& op;
  std::span<const TypeOf<D>> in;
  const AttrBox* attrs = nullptr;
  absl::InlinedVector<TypeOf<D>, 2> out;  ///< dtype preset by the dtype rule unless kCustom

  template <class A>
  const A& Attrs() const { return attrs->As<A>(); }
  /// A requirement on sizes: false is an Error saying what `message()` says with the operand types; what can't be decided
  /// during a capture becomes a guard.
  template <class Message>
  void Require(const CondOf<D>& condition, Message&& message) const {
    std::optional<bool> known = Decide(condition);
    if (known.has_value() && *known) return;
    if (known.has_value()) Fail(message());
    Guard(condition, message());
  }
  [[noreturn]] void Fail(std::string message) const;
  void Guard(const CondOf<D>& condition, std::string message) const;
  /// A size given as an attribute, as D; eager attributes are constants.
  static D Size(Dim d) {
    if constexpr (std::is_same_v<D, Dim>) return d;
    else return d.value();
  }
  /// Sets the only result's shape.
  void Out(ShapeVec<D> shape) { out[0].shape = std::move(shape); }
  /// Broadcasts `b` into `a` by the usual rule: sizes are equal or 1, aligned at the end. Two distinct symbols are guarded equal.
  ShapeVec<D> Broadcast(const ShapeVec<D>& a, const ShapeVec<D>& b) const;
};

/// Receives the guards of symbolic shape rules. The capture in progress on this thread installs one; without any,
/// an undecided requirement is kept by the graph under construction or refused.
class GuardSink {
 public:
  virtual ~GuardSink() = default;
  virtual void AddGuard(const DimCond& condition, std::string message) = 0;
};
/// Installs `sink` for this thread while in scope.
class ScopedGuardSink {
 public:
  explicit ScopedGuardSink(GuardSink* sink);
  ~ScopedGuardSink();
  static GuardSink* Current();

 private:
  GuardSink* previous_;
};

// Element rules --------------------------------------------------------------------------------------------------

/// What an element rule sees: where the result element is, and how to read operands. Element rules are what kernels
/// are made from, and what an op's structured kernels are tested against.
class ElementCtx {
 public:
  virtual ~ElementCtx() = default;
  ElementCtx(const OpDef& op, const AttrPtr& attrs, std::span<const TensorType> in, std::span<const TensorType> out, int output,
             std::span<const Expr> at)
      : op(op), attrs(attrs), in(in), out(out), output(output), at(at) {}

  const OpDef& op;
  const AttrPtr& attrs;
  std::span<const TensorType> in, out;  ///< types of operands and results
  int output;                           ///< which result is asked for
  std::span<const Expr> at;             ///< i64 position of the result element

  template <class A>
  const A& Attrs() const { return attrs->As<A>(); }
  /// Element of operand i at a position, in the operand's own dtype (f16, bf16, i8, u8 as their compute type).
  virtual Expr In(int i, std::span<const Expr> position) = 0;
  /// The same, 0 where `predicate` is false (memory is not read there).
  virtual Expr InIf(int i, std::span<const Expr> position, Expr predicate) = 0;
  Expr In(int i, std::initializer_list<Expr> position) { return In(i, std::span<const Expr>(position.begin(), position.size())); }
  Expr InIf(int i, std::initializer_list<Expr> position, Expr predicate) {
    return InIf(i, std::span<const Expr>(position.begin(), position.size()), std::move(predicate));
  }
  /// Operand i at this element's position under broadcasting.
  Expr InBroadcast(int i);
};

/// i64 helpers for positions.
inline Expr I64(int64_t v) { return Expr::ConstInt(kInt64, v); }
/// A fresh loop variable over [0, extent) and its expression.
struct Loop {
  explicit Loop(Dim extent) : var{FreshIndex(), extent}, index(Expr::Index(var.id)) {}
  LoopVar var;
  Expr index;
};

// View rules -----------------------------------------------------------------------------------------------------

/// What a view rule sees: the operand's layout in elements. It fills in the result's, or returns false where the result can't share
/// the operand's memory (a reshape of a transposed tensor); the element rule then makes a copy.
struct ViewCtx {
  const AttrBox* attrs = nullptr;
  const Shape& in_shape;
  const Shape& in_strides;
  const Shape& out_shape;
  Shape out_strides;
  int64_t out_offset = 0;  ///< relative to the operand's first element
  template <class A>
  const A& Attrs() const { return attrs->As<A>(); }
};

// Building rules -------------------------------------------------------------------------------------------------

/// What a decomposition sees.
struct DecomposeCtx {
  const OpDef& op;
  const AttrPtr& attrs;
  std::span<const Var> in;
  std::vector<Var> out;  ///< to be filled
  template <class A>
  const A& Attrs() const { return attrs->As<A>(); }
};

/// What a gradient rule sees: operands, results, the gradient of each result, and which operands want one.
struct GradCtx {
  const OpDef& op;
  const AttrPtr& attrs;
  std::span<const Var> in;
  std::span<const Var> out;
  std::span<const Var> grad_out;  ///< empty Var where no gradient reaches a result
  std::vector<bool> wanted;       ///< by operand
  std::vector<Var> grad_in;       ///< to be filled; an empty Var means zero
  template <class A>
  const A& Attrs() const { return attrs->As<A>(); }
  const Var& g() const { return grad_out[0]; }
};

// Samples --------------------------------------------------------------------------------------------------------

/// A small dense array of doubles, for references in samples.
struct RefTensor {
  Shape shape;
  std::vector<double> data;
  double& at(std::initializer_list<int64_t> position);
  double at(std::initializer_list<int64_t> position) const;
  static RefTensor Zeros(Shape shape);
};
using ReferenceFn = std::function<std::vector<RefTensor>(std::span<const RefTensor>, const AttrPtr&)>;

struct SampleInput {
  Shape shape;
  double low = -2, high = 2;                ///< values are drawn from this range
  std::optional<DType> dtype = std::nullopt;  ///< fixed type; otherwise the suite's
};
struct Sample {
  std::vector<SampleInput> inputs;
  AttrPtr attrs;
};
/// Collects what the registry-driven tests run on an op.
class SampleSink {
 public:
  /// Pointwise ops: operands are drawn from [low, high]; shapes, broadcasting, layouts, special values come from the suite.
  SampleSink& Range(double low, double high);
  /// Attributes to try for a pointwise op (defaults otherwise).
  template <class A>
  SampleSink& With(A attrs) { return WithAttrs(MakeAttrs(std::move(attrs))); }
  SampleSink& WithAttrs(AttrPtr attrs);
  /// Scalar reference in double, independent of the body.
  SampleSink& Reference(double (*f)(double));
  SampleSink& Reference(double (*f)(double, double));
  SampleSink& Reference(double (*f)(double, double, double));
  template <class A>
  SampleSink& Reference(double (*f)(double, const A&)) {
    scalar_ = [f](std::span<const double> x, const AttrPtr& a) { return f(x[0], a->As<A>()); };
    return *this;
  }
  /// Other ops: explicit samples and a reference over arrays.
  SampleSink& Case(std::vector<SampleInput> inputs, AttrPtr attrs = nullptr);
  SampleSink& Reference(ReferenceFn f);
  /// Largest error of the f32 result against the reference on f32-rounded operands, in ulp (f64: the same in its ulps, at least 4).
  SampleSink& MaxUlp(double ulp);
  /// Integer dtypes are tested too.
  SampleSink& Integers();
  /// The function has no derivative at these points or jumps there: finite differences keep away by 1e-2.
  SampleSink& Kinks(std::vector<double> points);

  std::optional<std::pair<double, double>> range;
  std::vector<AttrPtr> attr_grid;
  std::function<double(std::span<const double>, const AttrPtr&)> scalar_;
  std::vector<Sample> cases;
  ReferenceFn reference;
  double max_ulp = 0;
  bool integers = false;
  std::vector<double> kinks;
};

// The type-erased definition -------------------------------------------------------------------------------------

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

/// A handle on which ops act: Var, or the eager Tensor. `ApplyOp(def, attrs, span<const H>) -> std::vector<H>` is found by
/// argument-dependent lookup, `ApplyOp1` (one result) where it exists.
/// A class derived from a handle (a module's Parameter) names it as its `Handle` and is taken as one.
template <class H>
struct HandleOfType { using type = H; };
template <class H>
  requires requires { typename H::Handle; }
struct HandleOfType<H> { using type = typename H::Handle; };
template <class H>
using HandleOf = typename HandleOfType<H>::type;
template <class H>
concept TensorHandle = requires(std::span<const HandleOf<H>> s, const OpDef& d, AttrPtr a) { ApplyOp(d, a, s); };

/// Calls of an op: on tensors it computes or records, on numbers inside a body it is the body. The public functions that
/// SINTER_OP declares forward to it:
///
///   Tensor y = softmax(x, {.dim = 1});
template <class T>
struct Op {
  using Attrs = typename op_internal::AttrsOf<T>::type;
  static constexpr int kInputs = T::kInfo.inputs;
  static constexpr int kOutputs = T::kInfo.outputs;

  template <TensorHandle H>
  static auto Run(std::span<const H> in, Attrs attrs) {
    const OpDef& def = DefOf<T>();
    AttrPtr boxed;
    if constexpr (!std::is_same_v<Attrs, NoAttrs>) boxed = MakeAttrs(std::move(attrs));
    if constexpr (kOutputs == 1) {
      if constexpr (requires { ApplyOp1(def, boxed, in); }) return ApplyOp1(def, std::move(boxed), in);
      else return H(std::move(ApplyOp(def, std::move(boxed), in)[0]));
    } else if constexpr (kOutputs < 0) {
      return ApplyOp(def, std::move(boxed), in);
    } else {
      auto r = ApplyOp(def, std::move(boxed), in);
      std::array<H, kOutputs> a;
      for (int i = 0; i < kOutputs; ++i) a[i] = std::move(r[i]);
      return a;
    }
  }

  /// The same without copies of the handles, where `ApplyRefs1(def, attrs, span<const H* const>)` exists.
  template <TensorHandle H, size_t N>
  static auto RunRefs(const std::array<const H*, N>& in, Attrs attrs) {
    if constexpr (kOutputs == 1 && requires(const OpDef& d, AttrPtr a, std::span<const H* const> s) { ApplyRefs1(d, a, s); }) {
      return ApplyRefs1(DefOf<T>(), MakeAttrs(std::move(attrs)), std::span<const H* const>(in));
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        const H copies[] = {*in[I]...};
        return Run<H>(copies, std::move(attrs));
      }(std::make_index_sequence<N>());
    }
  }

  template <TensorHandle H>
    requires(kInputs == 1)
  auto operator()(const H& a, Attrs attrs = {}) const { const H* p = &a; return Run<H>(std::span<const H>(p, 1), std::move(attrs)); }
  template <TensorHandle H>
    requires(kInputs == 2)
  auto operator()(const H& a, const H& b, Attrs attrs = {}) const { return RunRefs<H, 2>({&a, &b}, std::move(attrs)); }
  template <TensorHandle H>
    requires(kInputs == 3)
  auto operator()(const H& a, const H& b, const H& c, Attrs attrs = {}) const { return RunRefs<H, 3>({&a, &b, &c}, std::move(attrs)); }
  /// Any number of operands.
  template <TensorHandle H>
  auto operator()(const std::vector<H>& in, Attrs attrs = {}) const { return Run<H>(std::span<const H>(in), std::move(attrs)); }

  // Numbers: the body. On expressions the call stays whole, so that it is differentiated by its own rule.
  template <Number X, size_t N>
  static X Apply(const std::array<X, N>& x, Attrs attrs) {
    if constexpr (std::same_as<X, Expr>) {
      const OpDef& def = DefOf<T>();
      return MakeCall(def, MakeAttrs(std::move(attrs)), std::vector<Expr>(x.begin(), x.end()));
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        if constexpr (std::is_same_v<Attrs, NoAttrs>) return T::Body(x[I]...);
        else return T::Body(x[I]..., attrs);
      }(std::make_index_sequence<N>());
    }
  }

 private:
  static Expr MakeCall(const OpDef& def, AttrPtr attrs, std::vector<Expr> args);
};

/// A kCall node: the op's result type follows from its dtype rule.
Expr CallExpr(const OpDef& op, AttrPtr attrs, std::vector<Expr> args);

template <class T>
Expr Op<T>::MakeCall(const OpDef& def, AttrPtr attrs, std::vector<Expr> args) {
  return CallExpr(def, std::move(attrs), std::move(args));
}

template <class T>
using OpAttrs = typename Op<T>::Attrs;

}  // namespace sinter

/// Declares the public function `name` of the op struct `sinter::ops::Struct`, at global scope after the struct. Functions on
/// tensors are in `sinter`; those on numbers, for bodies, in `sinter::ops`, so that they never compete with <cmath> in a program.
#define SINTER_OP(Struct, name)                                                                                \
  namespace sinter {                                                                                           \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 1)                                                                   \
  auto name(const H& a, OpAttrs<ops::Struct> attrs = {}) {                                                     \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), std::move(attrs));                            \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 2)                                                                   \
  auto name(const H& a, const HandleOf<H>& b, OpAttrs<ops::Struct> attrs = {}) {                               \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), b, std::move(attrs));                         \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 3)                                                                   \
  auto name(const H& a, const HandleOf<H>& b, const HandleOf<H>& c, OpAttrs<ops::Struct> attrs = {}) {          \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), b, c, std::move(attrs));                      \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs < 0 || ops::Struct::kInfo.inputs > 3)                                   \
  auto name(const std::vector<H>& in, OpAttrs<ops::Struct> attrs = {}) {                                       \
    return Op<ops::Struct>{}(in, std::move(attrs));                                                            \
  }                                                                                                            \
  namespace ops {                                                                                              \
  template <Number X, class... Xs>                                                                             \
    requires(Struct::kInfo.kind == OpKind::kPointwise && Struct::kInfo.inputs == 1 + sizeof...(Xs))            \
  auto name(const X& a, const Xs&... rest) {                                                                   \
    return Op<Struct>::template Apply<X, 1 + sizeof...(Xs)>(std::array<X, 1 + sizeof...(Xs)>{a, rest...}, {}); \
  }                                                                                                            \
  }                                                                                                            \
  }
