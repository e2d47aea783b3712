#include "sinter/eager/dispatch.h"

#include "sinter/eager/eager_builder.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/recorder.h"
#include "sinter/eager/tape.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

void UpdateHooked() {
  EagerThreadState& s = eager_state;
  s.hooked = s.recorder != nullptr || s.observer != nullptr || s.autocast != nullptr;
}

}  // namespace

ScopedObserver::ScopedObserver(DispatchObserver* observer) : previous_(eager_state.observer) {
  eager_state.observer = observer;
  UpdateHooked();
}
ScopedObserver::~ScopedObserver() {
  eager_state.observer = previous_;
  UpdateHooked();
}

ScopedAutocast::ScopedAutocast(const AutocastHook* hook) : previous_(eager_state.autocast) {
  eager_state.autocast = hook;
  UpdateHooked();
}
ScopedAutocast::~ScopedAutocast() {
  eager_state.autocast = previous_;
  UpdateHooked();
}

namespace eager {
namespace {

[[noreturn]] void FailSymbolic(const OpDef& op) {
  throw Error(
      ErrorCode::kFailedPrecondition,
      StrCat(op.name,
             ": an operand was made while a function was captured and has no value outside of it; return it "
             "from the captured function instead of storing it"));
}

bool WantsGradient(Operands in) {
  bool wants = false;
  for (const TensorImpl* t : in) wants |= t->requires_grad;
  return wants;
}

// A result that is an operand itself (a dropout that drops nothing) gets a cell of its own.
void SeparateFromOperands(Operands in, Results& out) {
  for (ImplPtr& t : out) {
    for (const TensorImpl* operand : in) {
      if (t.get() != operand) continue;
      std::vector<Dim> same(t->shape.begin(), t->shape.end());
      TensorImpl* source[] = {t.get()};
      t = Dispatch1(DefOf<ops::Reshape>(), MakeAttrs(ops::Reshape::Attrs{.shape = same}), source);
      break;
    }
  }
}

void Decompose(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  TypesOf(op, attrs, in);  // wrong operands are told in terms of this op, not of its parts
  EagerBuilder builder;
  std::vector<Var> vars;
  for (TensorImpl* t : in) vars.push_back(builder.Wrap(ImplPtr(t)));
  const AttrPtr& given = op.AttrsOrDefault(attrs);
  DecomposeCtx c{op, given, vars, {}};
  op.decompose(c);
  for (const Var& v : c.out) out.push_back(EagerBuilder::Unwrap(v));
  SeparateFromOperands(in, out);
}

// Results without a gradient remember why, for the error that backward() would give.
void ExplainCut(bool wants, Operands in, Results& out) {
  std::shared_ptr<const GradientCut> cut;
  if (wants) cut = CurrentNoGradCut();
  for (const TensorImpl* t : in)
    if (!cut) cut = t->cut;
  for (ImplPtr& t : out) t->cut = cut;
}

void DispatchPlain(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  bool wants = false, symbolic = false, cut = false;
  for (const TensorImpl* t : in) {
    wants |= t->requires_grad;
    symbolic |= t->symbolic != nullptr;
    cut |= t->cut != nullptr;
  }
  if (symbolic) [[unlikely]]
    FailSymbolic(op);
  const bool tape = wants && eager_state.grad_enabled;
  if (op.decompose && !HasStructuredKernel(op, attrs, in)) {
    if (tape && !op.grad && !op.no_grad)
      return Decompose(op, attrs, in, out);  // the parts are put on the tape
    QuietNoGrad off(tape);
    Decompose(op, attrs, in, out);
  } else {
    Compute(op, attrs, in, out);
  }
  if (tape)
    RecordOnTape(op, attrs, in, out);
  else if (wants || cut) [[unlikely]]
    ExplainCut(wants, in, out);
}

void Record(Recorder& recorder, const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  std::vector<TensorType> types;
  for (const TensorImpl* t : in) types.push_back(SymbolicTypeOf(*t));
  std::vector<ImplPtr> made =
      recorder.Record(op, attrs, in, InferTypes(op, std::span<const TensorType>(types), attrs));
  const bool wants = eager_state.grad_enabled && !op.no_grad && WantsGradient(in);
  for (ImplPtr& t : made) {
    t->requires_grad = wants && IsFloating(t->dtype);
    out.push_back(std::move(t));
  }
}

// Observer's scope.
class Observed {
 public:
  Observed(const OpDef& op, const AttrPtr& attrs, Operands in, const Results& out)
      : observer_(eager_state.observer), op_(op), out_(out), first_(out.size()) {
    if (observer_ != nullptr) observer_->Begin(op, attrs, in);
  }
  ~Observed() {
    if (observer_ != nullptr) observer_->End(op_, std::span<const ImplPtr>(out_).subspan(first_));
  }

 private:
  DispatchObserver* observer_;
  const OpDef& op_;
  const Results& out_;
  size_t first_;
};

void DispatchHooked(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  Observed scope(op, attrs, in, out);
  absl::InlinedVector<ImplPtr, 4> cast;
  absl::InlinedVector<TensorImpl*, 4> operands(in.begin(), in.end());
  if (const AutocastHook* hook = eager_state.autocast) {
    if (std::optional<DType> wanted = hook->OperandTypeFor(op, in)) {
      ScopedAutocast off(nullptr);
      for (TensorImpl*& t : operands) {
        if (!IsFloating(t->dtype) || t->dtype == *wanted) continue;
        TensorImpl* source[] = {t};
        cast.push_back(Dispatch1(DefOf<ops::Cast>(), MakeAttrs(ops::Cast::Attrs{.dtype = *wanted}), source));
        t = cast.back().get();
      }
    }
  }
  if (Recorder* recorder = eager_state.recorder) return Record(*recorder, op, attrs, operands, out);
  DispatchPlain(op, attrs, operands, out);
}

// Throws unless `cell` may be written in place now; says whether the write takes part in a gradient.
bool CheckWrite(std::string_view what, const TensorImpl& cell, bool value_wants_gradient) {
  for (size_t d = 0; d < cell.shape.size(); ++d)
    if (cell.strides[d] == 0 && cell.shape[d] > 1)
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat(what, ": several elements of this ", TypeToString(cell.type()), " are one place in memory (it was expanded); write to a clone()"));
  if (cell.storage->read_only())
    throw Error(ErrorCode::kPermissionDenied,
                StrCat(what, ": this memory is read-only (a mapped file); write to a clone()"));
  if (!eager_state.grad_enabled || !(cell.requires_grad || value_wants_gradient)) return false;
  if (cell.requires_grad && !cell.node)
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(what, ": a leaf that requires a gradient (", TypeToString(cell.type()),
                       ") can't be written in place; use a NoGradGuard, or the op that makes a new tensor"));
  if (cell.is_view || cell.storage->has_tracked_views())
    throw Error(ErrorCode::kFailedPrecondition, StrCat(what,
                                                       ": an in-place write to a tensor that has views, or "
                                                       "to a view, can't take part in a gradient; use "
                                                       "the op that makes a new tensor, or clone() first"));
  return true;
}

void CheckSameType(std::string_view what, const ConcreteType& result, const TensorImpl& cell) {
  if (result.dtype == cell.dtype && result.shape == cell.shape) return;
  throw Error(ErrorCode::kInvalidArgument,
              StrCat(what, ": the result ", TypeToString(result), " doesn't fit into the tensor ",
                     TypeToString(cell.type()), " that is written in place"));
}

// The operands either are the cell's very elements or lie in other memory.
bool MayComputeInto(const TensorImpl& cell, Operands in) {
  absl::InlinedVector<int, kMaxRank> order(cell.shape.size());
  if (!DenseOrder(cell.shape, cell.strides, std::span<int>(order))) return false;
  for (const TensorImpl* t : in) {
    if (t->storage != cell.storage || t == &cell) continue;
    if (t->offset != cell.offset || t->shape != cell.shape || t->strides != cell.strides ||
        t->dtype != cell.dtype)
      return false;
  }
  return true;
}

// The cell takes over value and history of `result`, keeping its memory if others look at it.
void TakeOver(TensorImpl& cell, const TensorImpl& result, bool own_memory) {
  if (own_memory) {
    cell.storage = result.storage;
    cell.offset = result.offset;
    cell.strides = result.strides;
  } else {
    CopyValues(result, cell);
    cell.storage->MarkWritten();
  }
  cell.node = result.node;
  cell.output_index = result.output_index;
  cell.requires_grad = result.requires_grad;
  cell.cut = result.cut;
}

// What the cell holds now, with its history, in a cell of its own.
ImplPtr OldValue(const TensorImpl& cell) {
  ImplPtr old = NewAlias(cell, cell.shape, cell.strides, cell.offset);
  old->node = cell.node;
  old->output_index = cell.output_index;
  old->requires_grad = cell.requires_grad;
  return old;
}

}  // namespace

void Dispatch(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  if (eager_state.hooked) [[unlikely]]
    return DispatchHooked(op, attrs, in, out);
  DispatchPlain(op, attrs, in, out);
}

ImplPtr Dispatch1(const OpDef& op, const AttrPtr& attrs, Operands in) {
  Results out;
  Dispatch(op, attrs, in, out);
  SINTER_CHECK(out.size() == 1, op.name + " doesn't have one result");
  return std::move(out[0]);
}

void DispatchInPlace(const OpDef& op, const AttrPtr& attrs, Operands in) {
  TensorImpl& cell = *in[0];
  const std::string what = op.name + "_";
  if (Recorder* recorder = eager_state.recorder) {
    ImplPtr value = Dispatch1(op, attrs, in);
    if (!(SymbolicTypeOf(*value) == SymbolicTypeOf(cell)))
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat(what, ": the result ", TypeToString(SymbolicTypeOf(*value)), " doesn't fit into ",
                         TypeToString(SymbolicTypeOf(cell))));
    return recorder->Assign(cell, *value);
  }
  for (const TensorImpl* t : in)
    if (t->symbolic) FailSymbolic(op);
  const bool tape = CheckWrite(what, cell, WantsGradient(in));
  CheckSameType(what, TypesOf(op, attrs, in)[0], cell);
  if (!tape && op.kind == OpKind::kPointwise && MayComputeInto(cell, in)) {
    ComputePointwise(op, attrs, in, &cell);
    cell.storage->MarkWritten();
    return;
  }
  Results out;
  const bool own_memory = tape && cell.storage->unique() && !cell.is_view;
  {
    QuietNoGrad off;
    Dispatch(op, attrs, in, out);
  }
  if (!tape) {
    CopyValues(*out[0], cell);
    cell.storage->MarkWritten();
    return;
  }
  RecordOnTape(op, attrs, in, out);
  if (own_memory && out[0]->node)  // the old values live on where the tape needs them
    for (SavedTensor& s : out[0]->node->inputs)
      if (s.value.get() == &cell) s.value = OldValue(cell);
  TakeOver(cell, *out[0], own_memory);
}

void WriteInPlace(TensorImpl& cell, TensorImpl& value) {
  if (Recorder* recorder = eager_state.recorder) return recorder->Assign(cell, value);
  const bool tape = CheckWrite("copy_", cell, value.requires_grad);
  CheckSameType("copy_", value.type(), cell);
  if (tape) {
    TensorImpl* source[] = {&value};
    ImplPtr copy = Dispatch1(DefOf<ops::Cast>(), MakeAttrs(ops::Cast::Attrs{.dtype = value.dtype}), source);
    return TakeOver(cell, *copy, false);
  }
  if (value.storage == cell.storage) {  // perhaps overlapping
    ImplPtr copy = NewTensor(value.dtype, value.shape);
    CopyValues(value, *copy);
    CopyValues(*copy, cell);
  } else {
    CopyValues(value, cell);
  }
  cell.storage->MarkWritten();
}

}  // namespace eager

namespace {

[[noreturn]] void FailUndefinedOperand(const OpDef& op, size_t i) {
  throw Error(
      ErrorCode::kInvalidArgument,
      StrCat(op.name, ": operand ", i,
             " is an undefined tensor (default-made, moved from, or a gradient that was not computed)"));
}

template <class Get>
void Apply(const OpDef& op, const AttrPtr& attrs, size_t n, Get&& get, eager::Results& out) {
  absl::InlinedVector<TensorImpl*, 4> in(n);
  for (size_t i = 0; i < n; ++i) {
    const Tensor& t = get(i);
    if (!t.defined()) [[unlikely]]
      FailUndefinedOperand(op, i);
    in[i] = t.impl_ptr().get();
  }
  eager::Dispatch(op, attrs, in, out);
}

}  // namespace

std::vector<Tensor> ApplyOp(const OpDef& op, AttrPtr attrs, std::span<const Tensor> inputs) {
  eager::Results out;
  Apply(
      op, attrs, inputs.size(), [&](size_t i) -> const Tensor& { return inputs[i]; }, out);
  std::vector<Tensor> r;
  r.reserve(out.size());
  for (ImplPtr& t : out) r.emplace_back(std::move(t));
  return r;
}

Tensor ApplyOp1(const OpDef& op, AttrPtr attrs, std::span<const Tensor> inputs) {
  eager::Results out;
  Apply(
      op, attrs, inputs.size(), [&](size_t i) -> const Tensor& { return inputs[i]; }, out);
  return Tensor(std::move(out[0]));
}

Tensor ApplyRefs1(const OpDef& op, AttrPtr attrs, std::span<const Tensor* const> inputs) {
  eager::Results out;
  Apply(
      op, attrs, inputs.size(), [&](size_t i) -> const Tensor& { return *inputs[i]; }, out);
  return Tensor(std::move(out[0]));
}

}  // namespace sinter
