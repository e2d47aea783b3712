#include "sinter/graph/op.h"

#include <mutex>
#include <unordered_map>

#include "sinter/graph/strings.h"

// Calls: element types and shapes of results, and the rules that every op of a kind shares.
namespace sinter {
namespace {

thread_local GuardSink* current_sink = nullptr;

template <class D>
std::string OperandList(std::span<const TypeOf<D>> in) {
  return StrCat("(", Join(in, ", ", [](std::string* out, const TypeOf<D>& t) { StrAppend(out, TypeToString(t)); }),
                      ")");
}

template <class D>
void BroadcastShape(ShapeCtx<D>& c) {
  ShapeVec<D> shape = c.in[0].shape;
  for (size_t i = 1; i < c.in.size(); ++i) shape = c.Broadcast(shape, c.in[i].shape);
  c.Out(std::move(shape));
}

// Negation, differences, quotients and shifts have no meaning on bool; sums are "or", products "and".
bool OnBool(const Expr& e) {
  const ExprNode& n = *e;
  for (const Expr& a : n.args)
    if (!OnBool(a)) return false;
  if (n.args.empty() || n.args[0].dtype() != kBool) return true;
  switch (n.kind) {
    case ExprKind::kNeg:
    case ExprKind::kAbs:
    case ExprKind::kSub:
    case ExprKind::kDiv:
    case ExprKind::kRem:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod:
    case ExprKind::kShl:
    case ExprKind::kShr:
    case ExprKind::kShrLogical:
    case ExprKind::kFloor:
    case ExprKind::kCeil:
    case ExprKind::kTrunc:
    case ExprKind::kRound:
    case ExprKind::kSqrt:
    case ExprKind::kFma:
    case ExprKind::kIsNan:
      return false;
    default:
      return true;
  }
}

bool ComputesOnBool(const OpDef& op, const AttrPtr& attrs) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<const OpDef*, bool>();
  std::lock_guard lock(mutex);
  auto [it, fresh] = known->emplace(&op, false);
  if (fresh) {
    std::vector<Expr> x;
    for (int i = 0; i < op.inputs; ++i) x.push_back(Expr::Input(i, kBool));
    it->second = OnBool(op.body(x, op.AttrsOrDefault(attrs).get()));
  }
  return it->second;
}

template <class D>
absl::InlinedVector<TypeOf<D>, 2> Infer(const OpDef& op, std::span<const TypeOf<D>> in, const AttrPtr& attrs) {
  ShapeCtx<D> c{op, in, op.AttrsOrDefault(attrs).get(), {}};
  if (op.inputs >= 0 && static_cast<int>(in.size()) != op.inputs)
    throw Error(ErrorCode::kInvalidArgument, StrCat(op.name, ": takes ", op.inputs, " operand(s), got ", in.size()));
  absl::InlinedVector<DType, 4> dtypes;
  for (const auto& t : in) dtypes.push_back(t.dtype);
  c.out.resize(op.outputs < 0 ? 0 : op.outputs);
  if (op.dtype_rule != DTypeRule::kCustom && !in.empty()) {
    DType t = op.dtype_rule == DTypeRule::kFirst                                              ? dtypes[0]
              : op.dtype_rule == DTypeRule::kCompare || op.dtype_rule == DTypeRule::kLogical ? kBool
                                                                                             : OperandType(op, dtypes);
    for (auto& o : c.out) o.dtype = t;
    if (t == kBool && op.body && (op.dtype_rule == DTypeRule::kPromote || op.dtype_rule == DTypeRule::kFirst) && !ComputesOnBool(op, attrs))
      c.Fail("has no meaning on bool; convert with .to(), or use the logical operations");
  }
  if constexpr (std::is_same_v<D, Dim>) {
    if (op.sym_shape) op.sym_shape(c);
    else BroadcastShape(c);
  } else {
    if (op.shape) op.shape(c);
    else BroadcastShape(c);
    for (const auto& o : c.out) NumElements(o.shape);  // overflow of the size
  }
  return std::move(c.out);
}

}  // namespace

ScopedGuardSink::ScopedGuardSink(GuardSink* sink) : previous_(current_sink) { current_sink = sink; }
ScopedGuardSink::~ScopedGuardSink() { current_sink = previous_; }
GuardSink* ScopedGuardSink::Current() { return current_sink; }

template <class D>
void ShapeCtx<D>::Fail(std::string message) const {
  throw Error(ErrorCode::kInvalidArgument, StrCat(op.name, OperandList(in), ": ", message));
}

template <class D>
void ShapeCtx<D>::Guard(const CondOf<D>& condition, std::string message) const {
  if constexpr (std::is_same_v<D, Dim>) {
    if (current_sink == nullptr)
      Fail(StrCat(message, "; whether ", condition.ToString(), " can't be decided and nothing here can keep it as a guard"));
    current_sink->AddGuard(condition, StrCat(op.name, OperandList(in), ": ", message));
  }
}

template <class D>
ShapeVec<D> ShapeCtx<D>::Broadcast(const ShapeVec<D>& a, const ShapeVec<D>& b) const {
  const ShapeVec<D>& longer = a.size() >= b.size() ? a : b;
  const ShapeVec<D>& shorter = a.size() >= b.size() ? b : a;
  ShapeVec<D> r = longer;
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const D x = longer[skip + i], y = shorter[i];
    if (x == y || IsOne(y)) continue;
    if (IsOne(x)) {
      r[skip + i] = y;
      continue;
    }
    Require(EqCond(x, y), [&] {
      return StrCat("shapes ", ShapeToString(a), " and ", ShapeToString(b), " can't be broadcast: dimension ",
                          static_cast<int64_t>(skip + i) - static_cast<int64_t>(longer.size()), " differs; reshape or expand one operand");
    });
    if constexpr (std::is_same_v<D, Dim>)
      if (y.is_const()) r[skip + i] = y;
  }
  return r;
}

template struct ShapeCtx<int64_t>;
template struct ShapeCtx<Dim>;

DType OperandType(const OpDef& op, std::span<const DType> in) {
  if (op.dtype_rule == DTypeRule::kLogical) return kBool;
  if (in.empty()) return kFloat32;
  DType t = in[0];
  if (op.dtype_rule == DTypeRule::kFirst) return t;
  for (DType d : in.subspan(1)) t = PromoteTypes(t, d);
  if (op.dtype_rule == DTypeRule::kPromoteFloat && !IsFloating(t)) t = kFloat32;
  return t;
}

absl::InlinedVector<ConcreteType, 2> InferTypes(const OpDef& op, std::span<const ConcreteType> in, const AttrPtr& attrs) {
  return Infer<int64_t>(op, in, attrs);
}

std::vector<TensorType> InferTypes(const OpDef& op, std::span<const TensorType> in, const AttrPtr& attrs) {
  auto out = Infer<Dim>(op, in, attrs);
  return {out.begin(), out.end()};
}

Expr ElementCtx::InBroadcast(int i) {
  const SymShape& shape = in[i].shape;
  const size_t skip = at.size() - shape.size();
  std::vector<Expr> position(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    position[d] = IsOne(shape[d]) && !IsOne(out[output].shape[skip + d]) ? I64(0) : at[skip + d];
  return In(i, position);
}

std::vector<Var> ApplyOp(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) {
  for (const Var& v : inputs)
    if (v) return v.builder().Apply(op, std::move(attrs), inputs);
  throw InternalError(__FILE__, __LINE__, "an op on Vars needs a Var operand");
}

Expr CallExpr(const OpDef& op, AttrPtr attrs, std::vector<Expr> args) {
  DType t = op.dtype_rule == DTypeRule::kCompare || op.dtype_rule == DTypeRule::kLogical ? kBool : args[0].dtype();
  return Expr::Call(op, std::move(attrs), t, std::move(args));
}

namespace op_internal {

// Pointwise ops get their element rule from the body: operands at the broadcast position, converted to the operand type.
void FinishDef(OpDef& def) {
  if (def.kind != OpKind::kPointwise || def.element) return;
  auto body = def.body;
  def.element = [body](ElementCtx& c) {
    std::vector<DType> dtypes;
    for (const TensorType& t : c.in) dtypes.push_back(t.dtype);
    const DType t = ComputeType(OperandType(c.op, dtypes));
    std::vector<Expr> x;
    for (size_t i = 0; i < c.in.size(); ++i) x.push_back(Expr::Convert(c.InBroadcast(static_cast<int>(i)), t));
    return Expr::Convert(body(x, c.op.AttrsOrDefault(c.attrs).get()), ComputeType(c.out[0].dtype));
  };
}

}  // namespace op_internal
}  // namespace sinter
