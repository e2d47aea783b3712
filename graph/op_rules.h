#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/graph/attrs.h"
#include "sinter/graph/dim_cond.h"
#include "sinter/graph/error.h"
#include "sinter/graph/expr.h"
#include "sinter/graph/type.h"
#include "sinter/graph/var.h"

/// What the rules of an op see: its struct has static functions that take these.
namespace sinter {

struct OpDef;

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

}  // namespace sinter
