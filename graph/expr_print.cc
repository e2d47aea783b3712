#include <unordered_map>

#include "sinter/graph/strings.h"
#include "sinter/graph/expr.h"
#include "sinter/graph/op.h"

namespace sinter {
namespace {

constexpr std::string_view kKindNames[] = {
    "const", "in",  "i",   "size", "neg",      "abs",      "not", "floor", "ceil", "trunc", "round", "sqrt",
    "bits",  "cast", "isnan", "add",  "sub",      "mul",      "div", "rem",   "floordiv", "floormod", "min", "max",
    "and",   "or",  "xor", "shl",  "shr",      "shrl",     "lt",  "le",    "eq",   "ne",    "fma",   "select",
    "load",  "call", "reduce"};
static_assert(std::size(kKindNames) == static_cast<size_t>(ExprKind::kReduce) + 1);

constexpr std::string_view kReduceNames[] = {"sum", "prod", "max", "min", "any", "all", "contract"};

class Printer {
 public:
  std::string Print(const Expr& e) {
    Count(e);
    std::string last = Term(e);
    return StrCat(lines_, last);
  }

 private:
  void Count(const Expr& e) {
    if (++uses_[e.get()] > 1) return;
    for (const Expr& a : e->args) Count(a);
  }

  std::string Term(const Expr& e) {
    if (auto it = names_.find(e.get()); it != names_.end()) return it->second;
    std::string text = Text(e);
    if (uses_[e.get()] > 1 && !e->args.empty()) {
      std::string name = StrCat("%", next_++);
      StrAppend(&lines_, name, " = ", text, "; ");
      text = name;
    }
    names_[e.get()] = text;
    return text;
  }

  std::string Text(const Expr& e) {
    const ExprNode& n = *e;
    switch (n.kind) {
      case ExprKind::kConst:
        return StrCat(DTypeName(n.dtype), IsFloating(n.dtype) ? StrCat(":", absl::Hex(n.bits), "(", e.const_value(), ")")
                                                                    : StrCat(":", e.const_int()));
      case ExprKind::kInput:
        return StrCat("in", n.index, ":", DTypeName(n.dtype));
      case ExprKind::kIndex:
        return StrCat("i", n.index);
      case ExprKind::kSize:
        return StrCat("(", n.dim.ToString(), ")");
      default:
        break;
    }
    std::string args;
    for (const Expr& a : n.args) StrAppend(&args, args.empty() ? "" : ", ", Term(a));
    switch (n.kind) {
      case ExprKind::kConvert:
      case ExprKind::kBitcast:
        return StrCat(kKindNames[static_cast<int>(n.kind)], "<", DTypeName(n.dtype), ">(", args, ")");
      case ExprKind::kLoad:
        return StrCat(n.predicated ? "loadif" : "load", "<", DTypeName(n.dtype), ">(b", n.index, "; ", args, ")");
      case ExprKind::kCall:
        return StrCat(n.op->name, "{", AttrsToString(n.attrs), "}(", args, ")");
      case ExprKind::kReduce: {
        std::string loops;
        for (const LoopVar& l : n.loops)
          StrAppend(&loops, loops.empty() ? "" : ", ", "i", l.id, " < ", l.extent.ToString());
        return StrCat(kReduceNames[static_cast<int>(n.reduce)], "[", loops, "](", args, ")");
      }
      default:
        return StrCat(kKindNames[static_cast<int>(n.kind)], "(", args, ")");
    }
  }

  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, std::string> names_;
  std::string lines_;
  int next_ = 0;
};

}  // namespace

std::string Expr::ToString() const { return node_ ? Printer().Print(*this) : "<empty>"; }

}  // namespace sinter
