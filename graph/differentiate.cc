#include <unordered_map>

#include "sinter/graph/error.h"
#include "sinter/graph/num.h"
#include "sinter/graph/op.h"

// Symbolic differentiation of pointwise bodies. A kCall is differentiated by its op's own derivative where it has one.
namespace sinter {
namespace {

bool IsOne(const Expr& e) { return e.is_const() && IsFloating(e.dtype()) && e.const_value() == 1; }

// Sums and products of derivatives; an empty Expr is zero.
Expr Plus(const Expr& a, const Expr& b) { return !a ? b : !b ? a : a + b; }
Expr Times(const Expr& a, const Expr& b) { return !a || !b ? Expr() : IsOne(a) ? b : IsOne(b) ? a : a * b; }
Expr Negate(const Expr& a) { return a ? -a : Expr(); }

class Differentiator {
 public:
  explicit Differentiator(int input) : input_(input) {}

  Expr D(const Expr& e) {
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    Expr d = Compute(e);
    done_.emplace(e.get(), d);
    return d;
  }

 private:
  Expr Compute(const Expr& e) {
    const ExprNode& n = *e;
    if (!IsFloating(n.dtype)) return Expr();
    const auto& a = n.args;
    switch (n.kind) {
      case ExprKind::kInput:
        return n.index == input_ ? num::Const(e, 1) : Expr();
      case ExprKind::kNeg:
        return Negate(D(a[0]));
      case ExprKind::kAbs: {
        Expr d = D(a[0]);
        if (!d) return d;
        // The sign; 0 at 0, NaN stays NaN.
        Expr sign = num::Select(a[0] > 0.0, num::Const(e, 1), num::Select(a[0] < 0.0, num::Const(e, -1), a[0] * 0.0));
        return Times(sign, d);
      }
      case ExprKind::kSqrt:
        if (Expr d = D(a[0])) return Times(0.5 / e, d);
        return Expr();
      case ExprKind::kAdd:
        return Plus(D(a[0]), D(a[1]));
      case ExprKind::kSub:
        return Plus(D(a[0]), Negate(D(a[1])));
      case ExprKind::kMul:
        return Plus(Times(D(a[0]), a[1]), Times(D(a[1]), a[0]));
      case ExprKind::kDiv: {
        Expr da = D(a[0]), db = D(a[1]);
        Expr left = da ? da / a[1] : Expr();
        Expr right = db ? Times(db, e / a[1]) : Expr();
        return Plus(left, Negate(right));
      }
      case ExprKind::kFma:
        return Plus(Plus(Times(D(a[0]), a[1]), Times(D(a[1]), a[0])), D(a[2]));
      case ExprKind::kMin:
      case ExprKind::kMax: {
        Expr da = D(a[0]), db = D(a[1]);
        if (!da && !db) return Expr();
        Expr zero = num::Const(e, 0);
        da = da ? da : zero;
        db = db ? db : zero;
        Expr first = n.kind == ExprKind::kMax ? a[0] > a[1] : a[0] < a[1];
        return num::Select(num::Equal(a[0], a[1]), 0.5 * (da + db), num::Select(first, da, db));
      }
      case ExprKind::kSelect: {
        Expr da = D(a[1]), db = D(a[2]);
        if (!da && !db) return Expr();
        return num::Select(a[0], da ? da : num::Const(e, 0), db ? db : num::Const(e, 0));
      }
      case ExprKind::kConvert: {
        if (!IsFloating(a[0].dtype())) return Expr();
        Expr d = D(a[0]);
        return d ? Expr::Convert(d, n.dtype) : d;
      }
      case ExprKind::kCall:
        return Call(e);
      case ExprKind::kBitcast:
        SINTER_CHECK(UsedInputs(e).empty() || !DependsOn(e), "a body that takes a float apart needs a derivative of its own");
        return Expr();
      default:
        return Expr();  // constants, floor and its kind
    }
  }

  Expr Call(const Expr& e) {
    const OpDef& op = *e->op;
    const AttrBox* attrs = op.AttrsOrDefault(e->attrs).get();
    Expr total;
    for (size_t i = 0; i < e->args.size(); ++i) {
      Expr inner = IsFloating(e->args[i].dtype()) ? D(e->args[i]) : Expr();
      if (!inner) continue;
      Expr outer;
      if (op.derivative) {
        outer = op.derivative(static_cast<int>(i), e->args, e, attrs);
      } else if (!op.no_grad) {
        std::vector<Expr> inputs;
        for (size_t k = 0; k < e->args.size(); ++k) inputs.push_back(Expr::Input(static_cast<int>(k), e->args[k].dtype()));
        outer = Differentiate(op.body(inputs, attrs), static_cast<int>(i));
        if (outer) outer = SubstituteInputs(outer, e->args);
      }
      total = Plus(total, Times(outer, inner));
    }
    return total;
  }

  bool DependsOn(const Expr& e) {
    for (int i : UsedInputs(e))
      if (i == input_) return true;
    return false;
  }

  int input_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

Expr Differentiate(const Expr& e, int input) { return Differentiator(input).D(e); }

}  // namespace sinter
