#include "sinter/codegen/cpu/linear.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_set>

namespace sinter::codegen::cpu {
namespace {

// Checks whether two adjacent loops can be merged: every use of their variables is a term of a memory offset.
class MergeCheck {
 public:
  MergeCheck(const Kernel& kernel, int outer, int inner, Dim inner_extent)
      : kernel_(kernel), outer_(outer), inner_(inner), extent_(inner_extent) {}

  bool Value(const Expr& e) {
    if (auto it = seen_.find(e.get()); it != seen_.end()) return it->second;
    const bool allowed = Allowed(e);
    seen_.emplace(e.get(), allowed);
    return allowed;
  }

  bool Access(int buffer, std::span<const Expr> position) {
    const std::vector<Dim> strides = Strides(kernel_.buffers[buffer]);
    Dim outer = 0, inner = 0;
    for (size_t d = 0; d < position.size(); ++d)
      if (!Terms(position[d], strides[d], outer, inner)) return false;
    return outer == extent_ * inner;
  }

 private:
  bool Allowed(const Expr& e) {
    if (e.kind() == ExprKind::kIndex) return e->index != outer_ && e->index != inner_;
    // A flat index that is computed as a number.
    if (e.kind() == ExprKind::kAdd && e.dtype() == kInt64) {
      Dim outer = 0, inner = 0;
      if (Terms(e, 1, outer, inner) && outer == extent_ * inner) return true;
    }
    if (e.kind() != ExprKind::kLoad) return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return Value(a); });
    const size_t rank = e->args.size() - e->predicated;
    if (e->predicated && !Value(e->args.back())) return false;
    return Access(e->index, {e->args.data(), rank});
  }

  // Adds what the variables contribute to scale * e. Parts that aren't linear may not use them outside of loads.
  bool Terms(const Expr& e, Dim scale, Dim& outer, Dim& inner) {
    switch (e.kind()) {
      case ExprKind::kIndex:
        if (e->index == outer_) outer += scale;
        if (e->index == inner_) inner += scale;
        return true;
      case ExprKind::kAdd: return Terms(e->args[0], scale, outer, inner) && Terms(e->args[1], scale, outer, inner);
      case ExprKind::kSub: return Terms(e->args[0], scale, outer, inner) && Terms(e->args[1], -scale, outer, inner);
      case ExprKind::kNeg: return Terms(e->args[0], -scale, outer, inner);
      case ExprKind::kMul:
        for (int side = 0; side < 2; ++side)
          if (std::optional<Dim> factor = AsSize(e->args[side])) return Terms(e->args[1 - side], scale * *factor, outer, inner);
        return Value(e);
      default: return Value(e);
    }
  }

  const Kernel& kernel_;
  int outer_, inner_;
  Dim extent_;
  std::unordered_map<const ExprNode*, bool> seen_;
};

class Merger {
 public:
  Merger(const Kernel& kernel, Products& products) : k_(kernel), products_(products) {}

  Kernel Run() {
    for (KernelStage& s : k_.stages)
      for (KernelStore& store : s.stores) {
        store.value = Reductions(store.value);
        for (Expr& p : store.position) p = Reductions(p);
      }
    Loops(
        k_.outer,
        [&](MergeCheck& check) {
          return std::all_of(k_.stages.begin(), k_.stages.end(), [&](const KernelStage& s) { return StageAllows(s, check); });
        },
        [&](std::span<const int> ids, std::span<const Expr> values) {
          for (KernelStage& s : k_.stages) Replace(s, ids, values);
        });
    for (KernelStage& s : k_.stages)
      Loops(
          s.inner, [&](MergeCheck& check) { return StageAllows(s, check); },
          [&](std::span<const int> ids, std::span<const Expr> values) { Replace(s, ids, values); });
    return std::move(k_);
  }

 private:
  static bool StageAllows(const KernelStage& s, MergeCheck& check) {
    for (const KernelStore& store : s.stores)
      if (!check.Value(store.value) || !check.Access(store.buffer, store.position)) return false;
    return true;
  }

  static void Replace(KernelStage& s, std::span<const int> ids, std::span<const Expr> values) {
    for (KernelStore& store : s.stores) {
      store.value = SubstituteIndices(store.value, ids, values);
      for (Expr& p : store.position) p = SubstituteIndices(p, ids, values);
    }
  }

  Expr Reductions(const Expr& root) {
    return Rewrite(root, [&](const Expr& e) -> Expr {
      if (e.kind() != ExprKind::kReduce) return Expr();
      std::vector<Expr> args;
      for (const Expr& a : e->args) args.push_back(Reductions(a));
      std::vector<LoopVar> loops = e->loops;
      Loops(
          loops, [&](MergeCheck& check) { return std::all_of(args.begin(), args.end(), [&](const Expr& a) { return check.Value(a); }); },
          [&](std::span<const int> ids, std::span<const Expr> values) {
            for (Expr& a : args) a = SubstituteIndices(a, ids, values);
          });
      return Expr::Reduce(e->reduce, std::move(loops), std::move(args));
    });
  }

  template <class Allows, class Apply>
  void Loops(std::vector<LoopVar>& loops, Allows allows, Apply apply) {
    for (size_t i = loops.size(); i-- > 1;) {
      MergeCheck check(k_, loops[i - 1].id, loops[i].id, loops[i].extent);
      if (!allows(check)) continue;
      const Dim merged = loops[i - 1].extent * loops[i].extent;
      products_.emplace(merged, std::pair(loops[i - 1].extent, loops[i].extent));
      const int ids[] = {loops[i - 1].id, loops[i].id};
      const int fresh = FreshIndex();
      const Expr values[] = {Expr::ConstInt(kInt64, 0), Expr::Index(fresh)};
      apply(ids, values);
      loops[i - 1] = {fresh, merged};
      loops.erase(loops.begin() + static_cast<int64_t>(i));
    }
  }

  Kernel k_;
  Products& products_;
};

}  // namespace

std::optional<Dim> AsSize(const Expr& e) {
  switch (e.kind()) {
    case ExprKind::kConst: return e.dtype() == kInt64 ? std::optional(Dim(e.const_int())) : std::nullopt;
    case ExprKind::kSize: return e->dim;
    case ExprKind::kMul: {
      std::optional<Dim> a = AsSize(e->args[0]), b = AsSize(e->args[1]);
      return a && b ? std::optional(*a * *b) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

bool Mentions(const Expr& e, int var) {
  return AnyExpr(e, [&](const Expr& x) { return x.kind() == ExprKind::kIndex && x->index == var; });
}

std::optional<Dim> Coefficient(const Expr& e, int var) {
  auto both = [&](int64_t sign) -> std::optional<Dim> {
    std::optional<Dim> a = Coefficient(e->args[0], var);
    if (!a) return std::nullopt;
    std::optional<Dim> b = Coefficient(e->args[1], var);
    return b ? std::optional(*a + Dim(sign) * *b) : std::nullopt;
  };
  switch (e.kind()) {
    case ExprKind::kConst:
    case ExprKind::kSize: return Dim(0);
    case ExprKind::kIndex: return Dim(e->index == var ? 1 : 0);
    case ExprKind::kAdd: return both(1);
    case ExprKind::kSub: return both(-1);
    case ExprKind::kNeg: {
      std::optional<Dim> a = Coefficient(e->args[0], var);
      return a ? std::optional(-*a) : std::nullopt;
    }
    case ExprKind::kMul:
      for (int side = 0; side < 2; ++side) {
        std::optional<Dim> factor = AsSize(e->args[side]);
        if (!factor) continue;
        std::optional<Dim> a = Coefficient(e->args[1 - side], var);
        return a ? std::optional(*a * *factor) : std::nullopt;
      }
      break;
    default: break;
  }
  return Mentions(e, var) ? std::nullopt : std::optional(Dim(0));
}

std::vector<Dim> Strides(const KernelBuffer& buffer) {
  std::vector<Dim> strides(buffer.shape.size(), Dim(0));
  Dim stride = 1;
  for (size_t i = buffer.order.size(); i-- > 0;) {
    strides[buffer.order[i]] = stride;
    stride *= buffer.shape[buffer.order[i]];
  }
  return strides;
}

Kernel MergeLoops(const Kernel& kernel, Products& products) { return Merger(kernel, products).Run(); }

}  // namespace sinter::codegen::cpu
