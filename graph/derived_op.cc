#include <algorithm>
#include <charconv>
#include <array>
#include <map>
#include <mutex>

#include "sinter/graph/strings.h"
#include "sinter/graph/op.h"
#include "sinter/graph/op_registry.h"
#include "sinter/graph/ops/basic.h"

// Gradients of pointwise ops: ops derived from the body by symbolic differentiation, made on demand and known by name.
namespace sinter {
namespace {

// d op / d operand over inputs 0..n-1 = operands, n = result, in dtype t. Empty if zero.
Expr DerivativeExpr(const OpDef& op, int operand, const AttrBox* attrs, DType t) {
  std::vector<Expr> x;
  for (int i = 0; i < op.inputs; ++i) x.push_back(Expr::Input(i, t));
  if (op.derivative) return op.derivative(operand, x, Expr::Input(op.inputs, t), attrs);
  return Differentiate(op.body(x, attrs), operand);
}

std::string OperandName(const OpDef& op, int i) { return i < 0 ? "g" : i == op.inputs ? "y" : StrCat("x", i); }

std::string DerivedName(const OpDef& op, int operand, std::span<const int> operands) {
  return StrCat(op.name, ".d", operand, "[",
                      Join(operands, ",", [&](std::string* out, int i) { StrAppend(out, OperandName(op, i)); }), "]");
}

// Whether d op / d operand with these attributes reads no more than the listed operands.
bool ListsAll(const OpDef& op, int operand, std::span<const int> operands, const AttrBox* attrs) {
  const Expr e = DerivativeExpr(op, operand, attrs, kFloat64);
  if (!e) return true;
  for (int used : UsedInputs(e))
    if (std::find(operands.begin(), operands.end(), used) == operands.end()) return false;
  return true;
}

OpDef MakeDerived(const OpDef& base, int operand, std::vector<int> operands) {
  OpDef d;
  d.name = DerivedName(base, operand, operands);
  d.kind = OpKind::kPointwise;
  d.since = base.since;
  d.inputs = static_cast<int>(operands.size());
  d.dtype_rule = DTypeRule::kPromote;
  d.user_defined = base.user_defined;
  d.parse_attrs = base.parse_attrs;
  d.default_attrs = base.default_attrs;
  d.body = [&base, operand, operands](std::span<const Expr> in, const AttrBox* attrs) {
    const DType t = in[0].dtype();
    Expr derivative = DerivativeExpr(base, operand, attrs, t);
    std::vector<Expr> x(base.inputs + 1);
    Expr g;
    for (size_t k = 0; k < operands.size(); ++k) (operands[k] < 0 ? g : x[operands[k]]) = in[k];
    if (!derivative) return Expr::Const(t, 0);
    for (int used : UsedInputs(derivative))
      SINTER_CHECK(x[used], "the derivative reads an operand that its name doesn't list");
    return g * SubstituteInputs(derivative, x);
  };
  // What a derivative reads may depend on the attributes, which the name doesn't tell: nodes of graphs, perhaps of a file, are checked.
  if (base.default_attrs)
    d.sym_shape = [&base, operand, operands](ShapeCtx<Dim>& c) {
      if (!ListsAll(base, operand, operands, c.attrs)) c.Fail("with these attributes the derivative reads operands that the name doesn't list");
      SymShape shape = c.in[0].shape;
      for (const TensorType& t : c.in.subspan(1)) shape = c.Broadcast(shape, t.shape);
      c.Out(std::move(shape));
    };
  op_internal::FinishDef(d);
  return d;
}

bool ParseInt(std::string_view text, int& value) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size();
}

std::mutex mutex;
std::map<std::string, std::unique_ptr<OpDef>, std::less<>>& Derived() {
  static auto* map = new std::map<std::string, std::unique_ptr<OpDef>, std::less<>>();
  return *map;
}

const OpDef* Intern(const OpDef& base, int operand, std::vector<int> operands) {
  std::string name = DerivedName(base, operand, operands);
  std::lock_guard lock(mutex);
  auto& slot = Derived()[name];
  if (!slot) slot = std::make_unique<OpDef>(MakeDerived(base, operand, std::move(operands)));
  return slot.get();
}

}  // namespace

DerivedOp DerivativeOf(const OpDef& op, int operand, const AttrPtr& attrs) {
  // Every eager backward asks, mostly for the same few.
  struct Known {
    const OpDef* op = nullptr;
    int operand = 0;
    AttrPtr attrs;
    DerivedOp derived;
  };
  static thread_local std::array<Known, 256> known;
  Known& k = known[(reinterpret_cast<uintptr_t>(&op) / 16 * 31 + static_cast<size_t>(operand) * 7) % known.size()];
  if (k.op != &op || k.operand != operand || !AttrsEqual(k.attrs, attrs)) {
    Expr e = DerivativeExpr(op, operand, op.AttrsOrDefault(attrs).get(), kFloat64);
    DerivedOp derived;
    if (e) {
      derived.operands = {-1};
      for (int i : UsedInputs(e)) derived.operands.push_back(i);
      derived.op = Intern(op, operand, derived.operands);
      derived.identity = e.is_const() && e.const_value() == 1;
    }
    k = {&op, operand, attrs, std::move(derived)};
  }
  return k.derived;
}

namespace op_internal {

// "tanh.d0[g,y]" -> the derived op; null when the name is not of this form. Derivatives of derivatives nest on the left.
const OpDef* FindDerived(std::string_view name) {
  {
    std::lock_guard lock(mutex);
    if (auto it = Derived().find(name); it != Derived().end()) return it->second.get();
  }
  if (name.size() > 512 || !name.ends_with("]")) return nullptr;
  // The last ".d" at bracket depth 0.
  int depth = 0;
  size_t dot = std::string_view::npos;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    depth += name[i] == '[' ? 1 : name[i] == ']' ? -1 : 0;
    if (depth == 0 && name[i] == '.' && name[i + 1] == 'd') dot = i;
  }
  const size_t open = name.rfind('[');
  if (dot == std::string_view::npos || open == std::string_view::npos || open < dot) return nullptr;
  int operand = 0;
  if (!ParseInt(name.substr(dot + 2, open - dot - 2), operand)) return nullptr;
  const OpDef* base = FindOp(name.substr(0, dot));
  if (base == nullptr || base->kind != OpKind::kPointwise || operand < 0 || operand >= base->inputs) return nullptr;
  std::vector<int> operands;
  std::string_view list = name.substr(open + 1, name.size() - open - 2);
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = list.substr(0, comma);
    if (more) list.remove_prefix(comma + 1);
    int i = -1;
    if (part == "y") i = base->inputs;
    else if (part != "g" && (!part.starts_with("x") || !ParseInt(part.substr(1), i) || i < 0 || i >= base->inputs)) return nullptr;
    if (!operands.empty() && i <= operands.back()) return nullptr;  // the canonical order only
    operands.push_back(i);
  }
  if (operands.empty() || operands[0] != -1) return nullptr;
  // The name must list what the derivative reads, or the body could not be built. With attributes, each node is checked for its own.
  if (!base->default_attrs && !ListsAll(*base, operand, operands, nullptr)) return nullptr;
  return Intern(*base, operand, std::move(operands));
}

}  // namespace op_internal

Var SumToShape(Var g, const SymShape& target) {
  const SymShape& from = g.shape();
  if (from == target) return g;
  std::vector<int64_t> axes;
  const size_t skip = from.size() - target.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (i < skip || (IsOne(target[i - skip]) && !IsOne(from[i]))) axes.push_back(static_cast<int64_t>(i));
  if (!axes.empty()) g = sum(g, {.axes = axes, .keepdim = true});
  if (g.shape() != target) g = reshape(g, {.shape = std::vector<Dim>(target.begin(), target.end())});
  return g;
}

void ApplyGradRule(GradCtx& ctx) {
  ctx.grad_in.assign(ctx.in.size(), Var());
  if (ctx.op.no_grad) return;
  if (ctx.op.grad) return ctx.op.grad(ctx);
  SINTER_CHECK(ctx.op.kind == OpKind::kPointwise, "no gradient rule for " + ctx.op.name);
  if (!ctx.g()) return;
  for (size_t i = 0; i < ctx.in.size(); ++i) {
    if (!ctx.wanted[i]) continue;
    DerivedOp d = DerivativeOf(ctx.op, static_cast<int>(i), ctx.attrs);
    if (d.op == nullptr) continue;
    Var r;
    if (d.identity) {
      r = ctx.g();
    } else {
      std::vector<Var> operands;
      for (int k : d.operands) operands.push_back(k < 0 ? ctx.g() : k == ctx.op.inputs ? ctx.out[0] : ctx.in[k]);
      r = ApplyOp(*d.op, ctx.attrs, operands)[0];
    }
    r = SumToShape(r, ctx.in[i].shape());
    if (r.dtype() != ctx.in[i].dtype()) r = cast(r, {.dtype = ctx.in[i].dtype()});
    ctx.grad_in[i] = r;
  }
}

}  // namespace sinter
