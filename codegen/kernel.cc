#include "sinter/codegen/kernel.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen {
namespace {

// Visits every expression of a kernel once, operands first.
template <class Fn>
void ForEachExpr(const Kernel& kernel, Fn fn) {
  std::unordered_set<const ExprNode*> seen;
  auto node = [&](const Expr& e) { fn(*e); };
  for (const KernelStage& s : kernel.stages)
    for (const KernelStore& store : s.stores) {
      for (const Expr& p : store.position) sinter::ForEachExpr(p, seen, node);
      sinter::ForEachExpr(store.value, seen, node);
    }
}

// Gives loop variables, buffers and symbols the numbers of their first use.
class Canonical {
 public:
  explicit Canonical(const Kernel& k) : kernel_(k) {}

  std::string Text() {
    std::string s = "kernel\n";
    for (const KernelBuffer& b : kernel_.buffers)
      StrAppend(&s, "buffer ", DTypeName(b.dtype), " ", Shape(b.shape), " order ", Join(b.order, ","), " ",
                static_cast<int>(b.role), "\n");
    StrAppend(&s, "outer", Loops(kernel_.outer), "\n");
    for (const KernelStage& stage : kernel_.stages) {
      StrAppend(&s, "stage vector ", static_cast<int>(stage.vector), " inner", Loops(stage.inner), "\n");
      for (const KernelStore& store : stage.stores) {
        // Definitions of new expressions come before the statement.
        std::string position;
        for (const Expr& p : store.position) StrAppend(&position, " ", Number(p, s));
        const std::string value = Number(store.value, s);
        StrAppend(&s, "store b", store.buffer, position, " = ", value, "\n");
      }
    }
    return s + facts_;
  }

 private:
  std::string Size(Dim d) {
    std::vector<std::pair<Dim, Dim>> renamed;
    for (Dim sym : d.Symbols()) {
      auto [it, fresh] = symbols_.emplace(sym.symbol_name(), Dim());
      // A symbol of the same facts under a number: facts decide what a size simplifies to, and what code
      // leaves out.
      if (fresh) {
        const Dim::Facts f = sym.facts();
        it->second = Dim::Symbol(StrCat("s", symbols_.size()), f);
        StrAppend(&facts_, it->second.ToString(), " in ", f.min, "..", f.max, " by ", f.multiple_of, "\n");
      }
      renamed.emplace_back(sym, it->second);
    }
    return d.Substitute(renamed).ToString();
  }
  std::string Shape(const SymShape& shape) {
    std::string s = "[";
    for (Dim d : shape) StrAppend(&s, Size(d), ";");
    return s + "]";
  }
  std::string Loops(const std::vector<LoopVar>& loops) {
    std::string s;
    for (const LoopVar& l : loops) StrAppend(&s, " v", Var(l.id), "<", Size(l.extent));
    return s;
  }
  int Var(int id) { return vars_.emplace(id, static_cast<int>(vars_.size())).first->second; }

  // The number of an expression; its definition is appended to the kernel's text on first use.
  const std::string& Number(const Expr& e, std::string& text) {
    if (auto it = numbers_.find(e.get()); it != numbers_.end()) return it->second;
    const ExprNode& n = *e;
    std::string loops = n.kind == ExprKind::kReduce ? Loops(n.loops) : "";
    std::string args;
    for (const Expr& a : n.args) StrAppend(&args, " ", Number(a, text));
    std::string def = StrCat(static_cast<int>(n.kind), ":", static_cast<int>(n.dtype));
    switch (n.kind) {
      case ExprKind::kConst:
        StrAppend(&def, " ", n.bits);
        break;
      case ExprKind::kIndex:
        StrAppend(&def, " v", Var(n.index));
        break;
      case ExprKind::kSize:
        StrAppend(&def, " (", Size(n.dim), ")");
        break;
      case ExprKind::kLoad:
        StrAppend(&def, " b", n.index, n.predicated ? "?" : "");
        break;
      case ExprKind::kReduce:
        StrAppend(&def, " r", static_cast<int>(n.reduce), loops);
        break;
      default:
        break;
    }
    // The text of a definition decides which expressions are one.
    def += args;
    auto [it, fresh] = names_.emplace(def, StrCat("e", names_.size()));
    if (fresh) StrAppend(&text, it->second, " = ", def, "\n");
    return numbers_.emplace(e.get(), it->second).first->second;
  }

  const Kernel& kernel_;
  std::unordered_map<int, int> vars_;
  std::map<std::string, Dim> symbols_;
  std::string facts_;
  std::unordered_map<const ExprNode*, std::string> numbers_;
  std::unordered_map<std::string, std::string> names_;
};

void AddSize(std::vector<Dim>& sizes, Dim d) {
  if (!d.is_const() && std::find(sizes.begin(), sizes.end(), d) == sizes.end()) sizes.push_back(d);
}

}  // namespace

std::vector<Dim> Kernel::RuntimeSizes() const {
  std::vector<Dim> sizes;
  for (const KernelBuffer& b : buffers)
    for (Dim d : b.shape) AddSize(sizes, d);
  for (const LoopVar& l : outer) AddSize(sizes, l.extent);
  for (const KernelStage& s : stages)
    for (const LoopVar& l : s.inner) AddSize(sizes, l.extent);
  ForEachExpr(*this, [&](const ExprNode& n) {
    if (n.kind == ExprKind::kSize) AddSize(sizes, n.dim);
    for (const LoopVar& l : n.loops) AddSize(sizes, l.extent);
  });
  return sizes;
}

std::string Kernel::ToString() const { return Canonical(*this).Text(); }

Dim ScratchBytes(const Kernel& kernel) {
  Dim bytes = 0;
  for (const KernelBuffer& b : kernel.buffers) {
    if (b.role != BufferRole::kLocal) continue;
    bytes = bytes + CeilDiv(NumElements(b.shape) * Dim(ItemSize(b.dtype)), Dim(64)) * Dim(64);
  }
  return bytes;
}

Dim OuterPoints(const Kernel& kernel) {
  Dim n = 1;
  for (const LoopVar& l : kernel.outer) n = n * l.extent;
  return n;
}

void VerifyKernel(const Kernel& kernel) {
  for (const KernelBuffer& b : kernel.buffers) {
    std::vector<int> order = b.order;
    std::sort(order.begin(), order.end());
    SINTER_CHECK(order.size() == b.shape.size(), "a buffer's order has another rank");
    for (size_t i = 0; i < order.size(); ++i)
      SINTER_CHECK(order[i] == static_cast<int>(i), "a buffer's order is no permutation");
  }
  std::vector<bool> stored(kernel.buffers.size());
  for (const KernelStage& s : kernel.stages) {
    std::unordered_set<const ExprNode*> seen;
    auto check = [&](const Expr& e) {
      SINTER_CHECK(e.kind() != ExprKind::kCall && e.kind() != ExprKind::kInput,
                   "calls and inputs must be expanded: " + kernel.name);
      if (e.kind() == ExprKind::kLoad) {
        SINTER_CHECK(e->index >= 0 && e->index < static_cast<int>(kernel.buffers.size()),
                     "a load from no buffer");
        const KernelBuffer& b = kernel.buffers[e->index];
        SINTER_CHECK(e->args.size() == b.shape.size() + e->predicated, "a load's position has another rank");
        SINTER_CHECK(e->dtype == b.dtype, "a load of another type");
        SINTER_CHECK(b.role == BufferRole::kInput || stored[e->index], "a load before its store");
      }
    };
    for (const KernelStore& store : s.stores) {
      const KernelBuffer& b = kernel.buffers[store.buffer];
      SINTER_CHECK(store.position.size() == b.shape.size(), "a store's position has another rank");
      SINTER_CHECK(store.value.dtype() == ComputeType(b.dtype), "a store of another type");
      for (const Expr& p : store.position) {
        SINTER_CHECK(p.dtype() == kInt64, "a position that is not int64");
        sinter::ForEachExpr(p, seen, check);
      }
      sinter::ForEachExpr(store.value, seen, check);
    }
    for (const KernelStore& store : s.stores) stored[store.buffer] = true;
  }
}

}  // namespace sinter::codegen
