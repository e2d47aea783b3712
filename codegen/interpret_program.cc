#include "sinter/codegen/interpret_program.h"

#include <algorithm>

#include "sinter/graph/error.h"

namespace sinter::codegen {
namespace {

// Where code goes: the preamble (nothing varies), the tile body, or the body of a reduction.
struct Scope {
  std::vector<int> vars;  // loop variables that vary here
  std::vector<Instr> code;
  std::unordered_map<Expr, int, ExprHash> slots;
  std::unordered_map<int, int> imported;  // outer slot -> own slot (reductions)
  std::vector<Import> imports;
};

class Compiler {
 public:
  explicit Compiler(const Kernel& k) : kernel_(k), sizes_(k.RuntimeSizes()) {}

  Program Run() {
    program_.buffers = kernel_.buffers;
    for (const KernelBuffer& b : kernel_.buffers) {
      std::vector<SizeRef> shape;
      for (Dim d : b.shape) shape.push_back(Ref(d));
      program_.shapes.push_back(std::move(shape));
    }
    for (const LoopVar& l : kernel_.outer) program_.outer.push_back(Ref(l.extent));
    for (const KernelStage& s : kernel_.stages) Stage(s);
    program_.slots = next_slot_;
    return std::move(program_);
  }

 private:
  SizeRef Ref(Dim d) {
    if (d.is_const()) return {d.value(), -1};
    auto it = std::find(sizes_.begin(), sizes_.end(), d);
    SINTER_CHECK(it != sizes_.end());
    return {0, static_cast<int>(it - sizes_.begin())};
  }

  void Stage(const KernelStage& s) {
    StageCode code;
    Scope preamble, tile;
    for (const LoopVar& l : kernel_.outer) tile.vars.push_back(l.id);
    for (const LoopVar& l : s.inner) tile.vars.push_back(l.id), code.inner.push_back(Ref(l.extent));
    chain_ = {&preamble, &tile};
    free_.clear();
    for (const KernelStore& store : s.stores) {
      StoreCode sc;
      sc.buffer = store.buffer;
      for (const Expr& p : store.position) sc.position.push_back(p.is_const() && p.const_int() == 0 ? -1 : Emit(p));
      sc.value = Emit(store.value);
      const DType t = kernel_.buffers[store.buffer].dtype;
      if (ComputeType(t) != t) sc.value = Add({.kind = ExprKind::kConvert, .in = ComputeType(t), .type = t, .a = sc.value}, tile);
      code.stores.push_back(std::move(sc));
    }
    for (int v : tile.vars) {
      auto it = tile.slots.find(Expr::Index(v));
      code.vars.push_back(it == tile.slots.end() ? -1 : it->second);
    }
    code.preamble = std::move(preamble.code);
    code.body = std::move(tile.code);
    code.reduce_lanes = s.vector == VectorAxis::kReduction;
    program_.stages.push_back(std::move(code));
  }

  // Loop variables that an expression reads.
  const std::vector<int>& Free(const Expr& e) {
    if (auto it = free_.find(e.get()); it != free_.end()) return it->second;
    std::vector<int> vars;
    if (e.kind() == ExprKind::kIndex) vars.push_back(e->index);
    for (const Expr& a : e->args)
      for (int v : Free(a))
        if (std::find(vars.begin(), vars.end(), v) == vars.end()) vars.push_back(v);
    for (const LoopVar& l : e->loops) std::erase(vars, l.id);
    return free_.emplace(e.get(), std::move(vars)).first->second;
  }

  // A load depends on the tile even at a constant position: earlier stages may have stored there.
  size_t Level(const Expr& e) {
    size_t level = ReadsMemory(e) ? 1 : 0;
    for (int v : Free(e))
      for (size_t i = 1; i < chain_.size(); ++i)
        if (std::find(chain_[i]->vars.begin(), chain_[i]->vars.end(), v) != chain_[i]->vars.end()) level = std::max(level, i);
    return level;
  }

  bool ReadsMemory(const Expr& e) {
    if (auto it = reads_.find(e.get()); it != reads_.end()) return it->second;
    bool r = e.kind() == ExprKind::kLoad;
    for (const Expr& a : e->args) r = r || ReadsMemory(a);
    return reads_.emplace(e.get(), r).first->second;
  }

  int Add(Instr i, Scope& scope) {
    i.out = next_slot_++;
    scope.code.push_back(std::move(i));
    return scope.code.back().out;
  }

  // The slot of `e` as seen from the innermost scope.
  int Emit(const Expr& e) { return EmitFrom(e, chain_.size() - 1); }

  int EmitFrom(const Expr& e, size_t from) {
    const size_t level = std::min(Level(e), from);
    Scope& scope = *chain_[level];
    int slot;
    if (auto it = scope.slots.find(e); it != scope.slots.end()) {
      slot = it->second;
    } else {
      slot = Define(e, level);
      chain_[level]->slots.emplace(e, slot);
    }
    // Bring it into each reduction between its level and here.
    for (size_t l = std::max<size_t>(level + 1, 2); l <= from; ++l) {
      Scope& inner = *chain_[l];
      auto [it, fresh] = inner.imported.emplace(slot, next_slot_);
      if (fresh) inner.imports.push_back({slot, next_slot_++, e.dtype()});
      slot = it->second;
    }
    return slot;
  }

  int Define(const Expr& e, size_t level) {
    const ExprNode& n = *e;
    Instr i{.kind = n.kind, .type = n.dtype};
    switch (n.kind) {
      case ExprKind::kIndex:
        return next_slot_++;  // filled by whoever runs the loop
      case ExprKind::kConst:
        i.bits = n.bits;
        return Add(std::move(i), *chain_[level]);
      case ExprKind::kSize:
        i.size = Ref(n.dim);
        return Add(std::move(i), *chain_[level]);
      case ExprKind::kLoad: {
        const size_t rank = n.args.size() - n.predicated;
        i.buffer = n.index;
        for (size_t d = 0; d < rank; ++d)
          i.position.push_back(n.args[d].is_const() && n.args[d].const_int() == 0 ? -1 : EmitFrom(n.args[d], level));
        if (n.predicated) i.predicate = EmitFrom(n.args.back(), level);
        return Add(std::move(i), *chain_[level]);
      }
      case ExprKind::kReduce:
        return Reduce(e, level);
      default: {
        SINTER_CHECK(!n.args.empty() && n.args.size() <= 3);
        i.in = n.kind == ExprKind::kSelect ? n.args[1].dtype() : n.args[0].dtype();
        i.a = EmitFrom(n.args[0], level);
        if (n.args.size() > 1) i.b = EmitFrom(n.args[1], level);
        if (n.args.size() > 2) i.c = EmitFrom(n.args[2], level);
        return Add(std::move(i), *chain_[level]);
      }
    }
  }

  int Reduce(const Expr& e, size_t level) {
    ReduceCode r;
    r.kind = e->reduce;
    r.type = e.dtype();
    Scope body;
    for (const LoopVar& l : e->loops) {
      body.vars.push_back(l.id);
      r.extents.push_back(Ref(l.extent));
    }
    // The body sees the scopes up to the reduction's own level.
    std::vector<Scope*> saved(chain_.begin() + static_cast<int64_t>(level) + 1, chain_.end());
    chain_.resize(level + 1);
    chain_.push_back(&body);
    r.value = EmitFrom(e->args[0], level + 1);
    if (e->args.size() > 1) r.value2 = EmitFrom(e->args[1], level + 1);
    for (const LoopVar& l : e->loops) {
      auto it = body.slots.find(Expr::Index(l.id));
      r.vars.push_back(it == body.slots.end() ? -1 : it->second);
    }
    chain_.pop_back();
    chain_.insert(chain_.end(), saved.begin(), saved.end());
    r.imports = std::move(body.imports);
    r.body = std::move(body.code);
    r.workspace = next_slot_;
    next_slot_ += kReduceWorkspace;
    program_.reduces.push_back(std::move(r));
    Instr i{.kind = ExprKind::kReduce, .type = e.dtype()};
    i.reduce = static_cast<int>(program_.reduces.size()) - 1;
    return Add(std::move(i), *chain_[level]);
  }

  const Kernel& kernel_;
  std::vector<Dim> sizes_;
  Program program_;
  std::vector<Scope*> chain_;
  std::unordered_map<const ExprNode*, std::vector<int>> free_;
  std::unordered_map<const ExprNode*, bool> reads_;
  int next_slot_ = 0;
};

}  // namespace

Program CompileProgram(const Kernel& kernel) {
  VerifyKernel(kernel);
  return Compiler(kernel).Run();
}

}  // namespace sinter::codegen
