#include "sinter/graph/expr.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "sinter/graph/error.h"
#include "sinter/graph/expr_fold.h"
#include "sinter/graph/op.h"

namespace sinter {
namespace {

size_t Mix(size_t h, size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }

size_t HashNode(const ExprNode& n) {
  size_t h = static_cast<size_t>(n.kind) * 31 + static_cast<size_t>(n.dtype);
  h = Mix(h, static_cast<size_t>(n.index) * 2 + n.predicated);
  h = Mix(h, static_cast<size_t>(n.bits));
  h = Mix(h, static_cast<size_t>(n.reduce));
  if (n.kind == ExprKind::kSize) h = Mix(h, std::hash<Dim>()(n.dim));
  h = Mix(h, std::hash<const void*>()(n.op));
  if (n.attrs) h = Mix(h, n.attrs->Hash());
  for (const Expr& a : n.args) h = Mix(h, a->hash);
  for (const LoopVar& l : n.loops) h = Mix(Mix(h, l.id), std::hash<Dim>()(l.extent));
  return h;
}

Expr Make(ExprNode n) {
  n.hash = HashNode(n);
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

bool IsConst(const Expr& e, double v) { return e.is_const() && e.const_value() == v; }
bool IsIntOrBool(DType t) { return !IsFloating(t); }

// Identities that hold for every value, bit for bit (up to NaN payloads).
Expr Simplify(ExprKind kind, const Expr& a, const Expr& b) {
  const DType t = a.dtype();
  switch (kind) {
    case ExprKind::kMul:
      if (IsConst(b, 1)) return a;
      if (IsConst(a, 1)) return b;
      if (IsIntOrBool(t) && (IsConst(a, 0) || IsConst(b, 0))) return Expr::ConstInt(t, 0);
      break;
    case ExprKind::kAdd:
      if (IsIntOrBool(t) && IsConst(b, 0)) return a;
      if (IsIntOrBool(t) && IsConst(a, 0)) return b;
      break;
    case ExprKind::kSub:
      if (IsConst(b, 0) && (IsIntOrBool(t) || !std::signbit(b.const_value()))) return a;  // x - (+0) keeps -0
      break;
    case ExprKind::kDiv:
    case ExprKind::kFloorDiv:
      if (IsConst(b, 1)) return a;
      break;
    case ExprKind::kFloorMod:
    case ExprKind::kRem:
      if (IsIntOrBool(t) && IsConst(b, 1)) return Expr::ConstInt(t, 0);
      break;
    case ExprKind::kAnd:
      if (t == kBool) {
        if (a.is_const()) return a.const_int() ? b : a;
        if (b.is_const()) return b.const_int() ? a : b;
      }
      break;
    case ExprKind::kOr:
      if (t == kBool) {
        if (a.is_const()) return a.const_int() ? a : b;
        if (b.is_const()) return b.const_int() ? b : a;
      }
      break;
    default:
      break;
  }
  return Expr();
}

bool IsComparison(ExprKind k) {
  return k == ExprKind::kLt || k == ExprKind::kLe || k == ExprKind::kEq || k == ExprKind::kNe;
}

}  // namespace

Expr Expr::ConstBits(DType t, uint64_t bits) {
  ExprNode n{.kind = ExprKind::kConst, .dtype = t};
  n.bits = bits;
  return Make(std::move(n));
}

Expr Expr::Const(DType t, double value) {
  switch (t) {
    case DType::kFloat32:
      return ConstBits(t, std::bit_cast<uint32_t>(static_cast<float>(value)));
    case DType::kFloat64:
      return ConstBits(t, std::bit_cast<uint64_t>(value));
    default:
      return ConstInt(t, static_cast<int64_t>(value));
  }
}

Expr Expr::ConstInt(DType t, int64_t value) {
  switch (t) {
    case DType::kFloat32:
      return ConstBits(t, std::bit_cast<uint32_t>(static_cast<float>(value)));
    case DType::kFloat64:
      return ConstBits(t, std::bit_cast<uint64_t>(static_cast<double>(value)));
    case DType::kInt32:
      return ConstBits(t, static_cast<uint32_t>(static_cast<int32_t>(value)));
    case DType::kBool:
      return ConstBits(t, value != 0);
    default:
      SINTER_CHECK(t == kInt64, "constants have a compute type");
      return ConstBits(t, static_cast<uint64_t>(value));
  }
}

double Expr::const_value() const {
  SINTER_CHECK(is_const());
  switch (dtype()) {
    case DType::kFloat32:
      return std::bit_cast<float>(static_cast<uint32_t>(node_->bits));
    case DType::kFloat64:
      return std::bit_cast<double>(node_->bits);
    default:
      return static_cast<double>(const_int());
  }
}

int64_t Expr::const_int() const {
  SINTER_CHECK(is_const() && IsIntOrBool(dtype()));
  return dtype() == kInt32 ? static_cast<int32_t>(node_->bits) : static_cast<int64_t>(node_->bits);
}

Expr Expr::Input(int i, DType t) {
  ExprNode n{.kind = ExprKind::kInput, .dtype = t};
  n.index = i;
  return Make(std::move(n));
}

Expr Expr::Index(int id) {
  ExprNode n{.kind = ExprKind::kIndex, .dtype = kInt64};
  n.index = id;
  return Make(std::move(n));
}

Expr Expr::Size(Dim d) {
  if (d.is_const()) return ConstInt(kInt64, d.value());
  ExprNode n{.kind = ExprKind::kSize, .dtype = kInt64};
  n.dim = d;
  return Make(std::move(n));
}

Expr Expr::Unary(ExprKind kind, Expr a) {
  DType t = kind == ExprKind::kIsNan ? kBool : a.dtype();
  if (kind == ExprKind::kIsNan && !IsFloating(a.dtype())) return Bool(false);
  // An integer is its own floor; negation of a bool is not defined.
  if (IsIntOrBool(t) && (kind == ExprKind::kFloor || kind == ExprKind::kCeil || kind == ExprKind::kTrunc || kind == ExprKind::kRound))
    return a;
  if (a.is_const())
    if (std::optional<uint64_t> v = FoldUnary(kind, a.dtype(), a->bits)) return ConstBits(t, *v);
  ExprNode n{.kind = kind, .dtype = t};
  n.args = {std::move(a)};
  return Make(std::move(n));
}

Expr Expr::Binary(ExprKind kind, Expr a, Expr b) {
  SINTER_CHECK(a && b && a.dtype() == b.dtype(), "operands of one expression must have one type");
  DType t = IsComparison(kind) ? kBool : a.dtype();
  if (a.is_const() && b.is_const())
    if (std::optional<uint64_t> v = FoldBinary(kind, a.dtype(), a->bits, b->bits)) return ConstBits(t, *v);
  if (Expr s = Simplify(kind, a, b)) return s;
  ExprNode n{.kind = kind, .dtype = t};
  n.args = {std::move(a), std::move(b)};
  return Make(std::move(n));
}

Expr Expr::Fma(Expr a, Expr b, Expr c) {
  SINTER_CHECK(a.dtype() == b.dtype() && a.dtype() == c.dtype() && IsFloating(a.dtype()), "fma is floating");
  ExprNode n{.kind = ExprKind::kFma, .dtype = a.dtype()};
  n.args = {std::move(a), std::move(b), std::move(c)};
  return Make(std::move(n));
}

Expr Expr::Select(Expr condition, Expr a, Expr b) {
  SINTER_CHECK(condition.dtype() == kBool && a.dtype() == b.dtype(), "select needs a bool and two operands of one type");
  if (condition.is_const()) return condition.const_int() ? a : b;
  if (a == b) return a;
  ExprNode n{.kind = ExprKind::kSelect, .dtype = a.dtype()};
  n.args = {std::move(condition), std::move(a), std::move(b)};
  return Make(std::move(n));
}

Expr Expr::Convert(Expr a, DType t) {
  if (a.dtype() == t) return a;
  if (a.is_const())
    if (std::optional<uint64_t> v = FoldConvert(a.dtype(), t, a->bits)) return ConstBits(t, *v);
  ExprNode n{.kind = ExprKind::kConvert, .dtype = t};
  n.args = {std::move(a)};
  return Make(std::move(n));
}

Expr Expr::Bitcast(Expr a, DType t) {
  SINTER_CHECK(ItemSize(a.dtype()) == ItemSize(t), "bitcast keeps the width");
  if (a.dtype() == t) return a;
  if (a.is_const()) return ConstBits(t, a->bits);
  ExprNode n{.kind = ExprKind::kBitcast, .dtype = t};
  n.args = {std::move(a)};
  return Make(std::move(n));
}

Expr Expr::Load(int buffer, DType t, std::vector<Expr> position) {
  ExprNode n{.kind = ExprKind::kLoad, .dtype = t};
  n.index = buffer;
  n.args = std::move(position);
  return Make(std::move(n));
}

Expr Expr::LoadIf(int buffer, DType t, std::vector<Expr> position, Expr predicate) {
  SINTER_CHECK(predicate.dtype() == kBool);
  if (predicate.is_const() && predicate.const_int()) return Load(buffer, t, std::move(position));
  ExprNode n{.kind = ExprKind::kLoad, .dtype = t};
  n.predicated = true;
  n.index = buffer;
  n.args = std::move(position);
  n.args.push_back(std::move(predicate));
  return Make(std::move(n));
}

Expr Expr::Call(const OpDef& op, std::shared_ptr<const AttrBox> attrs, DType t, std::vector<Expr> args) {
  ExprNode n{.kind = ExprKind::kCall, .dtype = t};
  n.op = &op;
  n.attrs = std::move(attrs);
  n.args = std::move(args);
  return Make(std::move(n));
}

Expr Expr::Reduce(ReduceKind kind, std::vector<LoopVar> loops, std::vector<Expr> body) {
  SINTER_CHECK(body.size() == (kind == ReduceKind::kContract ? 2u : 1u));
  ExprNode n{.kind = ExprKind::kReduce, .dtype = body[0].dtype()};
  n.reduce = kind;
  n.loops = std::move(loops);
  n.args = std::move(body);
  return Make(std::move(n));
}

namespace {

// Whether two nodes of one hash are equal but for their operands.
bool SameButOperands(const ExprNode& x, const ExprNode& y) {
  if (x.kind != y.kind || x.dtype != y.dtype || x.predicated != y.predicated || x.reduce != y.reduce || x.index != y.index ||
      x.bits != y.bits || x.op != y.op || x.args.size() != y.args.size() || x.loops.size() != y.loops.size() ||
      !AttrsEqual(x.attrs, y.attrs) || !(x.dim == y.dim))
    return false;
  for (size_t i = 0; i < x.loops.size(); ++i)
    if (x.loops[i].id != y.loops[i].id || !(x.loops[i].extent == y.loops[i].extent)) return false;
  return true;
}

// Pairs of nodes that were compared: shared operands are compared once, else the time would be exponential.
using ComparedPairs = absl::flat_hash_set<std::pair<const ExprNode*, const ExprNode*>>;

bool EqualNodes(const ExprNode& x, const ExprNode& y, ComparedPairs& compared) {
  if (x.hash != y.hash || !SameButOperands(x, y)) return false;
  for (size_t i = 0; i < x.args.size(); ++i) {
    const ExprNode *p = x.args[i].get(), *q = y.args[i].get();
    if (p == q) continue;
    if (p == nullptr || q == nullptr) return false;
    if (!p->args.empty() && !compared.insert({p, q}).second) continue;  // a difference would have ended the comparison
    if (!EqualNodes(*p, *q, compared)) return false;
  }
  return true;
}

}  // namespace

bool operator==(const Expr& a, const Expr& b) {
  if (a.node_ == b.node_) return true;
  if (!a.node_ || !b.node_) return false;
  ComparedPairs compared;
  return EqualNodes(*a, *b, compared);
}

Expr WithArgs(const Expr& e, std::vector<Expr> args) {
  const ExprNode& n = *e;
  switch (n.kind) {
    case ExprKind::kFma:
      return Expr::Fma(args[0], args[1], args[2]);
    case ExprKind::kSelect:
      return Expr::Select(args[0], args[1], args[2]);
    case ExprKind::kConvert:
      return Expr::Convert(args[0], n.dtype);
    case ExprKind::kBitcast:
      return Expr::Bitcast(args[0], n.dtype);
    case ExprKind::kLoad: {
      if (!n.predicated) return Expr::Load(n.index, n.dtype, std::move(args));
      Expr predicate = args.back();
      args.pop_back();
      return Expr::LoadIf(n.index, n.dtype, std::move(args), predicate);
    }
    case ExprKind::kCall:
      return Expr::Call(*n.op, n.attrs, n.dtype, std::move(args));
    case ExprKind::kReduce:
      return Expr::Reduce(n.reduce, n.loops, std::move(args));
    default:
      if (args.size() == 1) return Expr::Unary(n.kind, args[0]);
      if (args.size() == 2) return Expr::Binary(n.kind, args[0], args[1]);
      SINTER_CHECK(args.empty());
      return e;
  }
}

Expr ExpandCalls(const Expr& e) {
  return Rewrite(e, [](const Expr& x) -> Expr {
    if (x.kind() != ExprKind::kCall) return Expr();
    std::vector<Expr> args;
    args.reserve(x->args.size());
    for (const Expr& a : x->args) args.push_back(ExpandCalls(a));
    return ExpandCalls(x->op->body(args, x->op->AttrsOrDefault(x->attrs).get()));
  });
}

Expr SubstituteInputs(const Expr& e, std::span<const Expr> inputs) {
  return Rewrite(e, [&](const Expr& x) { return x.kind() == ExprKind::kInput ? inputs[x->index] : Expr(); });
}

Expr SubstituteIndices(const Expr& e, std::span<const int> ids, std::span<const Expr> values) {
  return Rewrite(e, [&](const Expr& x) {
    if (x.kind() == ExprKind::kIndex)
      for (size_t i = 0; i < ids.size(); ++i)
        if (ids[i] == x->index) return values[i];
    return Expr();
  });
}

bool AnyExpr(const Expr& e, const std::function<bool(const Expr&)>& test) {
  std::unordered_set<const ExprNode*> seen;
  auto visit = [&](auto& self, const Expr& x) -> bool {
    if (!seen.insert(x.get()).second) return false;
    return test(x) || std::any_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return self(self, a); });
  };
  return visit(visit, e);
}

std::vector<int> UsedInputs(const Expr& e) {
  std::vector<int> used;
  ForEachExpr(e, [&](const Expr& x) {
    if (x.kind() == ExprKind::kInput && std::find(used.begin(), used.end(), x->index) == used.end()) used.push_back(x->index);
  });
  std::sort(used.begin(), used.end());
  return used;
}

int FreshIndex() {
  static std::atomic<int> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace sinter
