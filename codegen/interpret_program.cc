#include "sinter/codegen/interpret_program.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "sinter/codegen/interpret_slots.h"
#include "sinter/graph/error.h"

namespace sinter::codegen {
namespace {

// Where code goes: the preamble (nothing varies), the tile body, or the body of a reduction.
struct Scope {
  std::vector<int> vars;  // ids of loop variables that vary here
  std::vector<Instr> code;
  std::unordered_map<const ExprNode*, int> slots;
  std::unordered_map<int, int> imported;  // outer slot -> own slot (reductions)
  std::vector<Import> imports;
  std::vector<int> accesses;
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
    for (const KernelStage& s : kernel_.stages) Stage(s);
    program_.vars = static_cast<int>(vars_.size());
    NumberSlots(program_);
    return std::move(program_);
  }

 private:
  SizeRef Ref(Dim d) {
    if (d.is_const()) return {d.value(), -1};
    auto it = std::find(sizes_.begin(), sizes_.end(), d);
    SINTER_CHECK(it != sizes_.end());
    return {0, static_cast<int>(it - sizes_.begin())};
  }
  int Var(int id) { return vars_.emplace(id, static_cast<int>(vars_.size())).first->second; }

  // Equal expressions become one object, so that what follows can go by address.
  Expr Interned(const Expr& e) {
    if (auto it = interned_.find(e.get()); it != interned_.end()) return it->second;
    bool same = true;
    std::vector<Expr> args;
    for (const Expr& a : e->args) {
      args.push_back(Interned(a));
      same &= args.back().get() == a.get();
    }
    Expr r = e;
    if (!same) {
      auto node = std::make_shared<ExprNode>(*e);
      node->args = std::move(args);
      r = Expr(std::move(node));
    }
    r = *unique_.insert(r).first;
    keep_.push_back(e);
    return interned_.emplace(e.get(), r).first->second;
  }

  void Stage(const KernelStage& s) {
    StageCode code;
    Scope preamble, tile;
    for (const LoopVar& l : kernel_.outer) tile.vars.push_back(l.id);
    for (const LoopVar& l : s.inner) tile.vars.push_back(l.id);
    chain_ = {&preamble, &tile};
    for (const KernelStore& store : s.stores) {
      StoreCode sc;
      std::vector<Expr> position;
      for (const Expr& p : store.position) position.push_back(Interned(p));
      sc.access = AddAccess(store.buffer, position, 1);
      sc.value = Emit(Interned(store.value));
      const DType t = kernel_.buffers[store.buffer].dtype;
      if (ComputeType(t) != t) {
        Instr convert{.type = t, .fn = LaneConversion(ComputeType(t), t)};
        convert.operands[0] = sc.value;
        sc.value = Add(std::move(convert), tile);
      }
      code.stores.push_back(sc);
    }
    // Of several stores, one could overwrite what a slot that stands for memory shows to the next.
    for (Instr& i : tile.code)
      if (s.stores.size() > 1 && std::any_of(code.stores.begin(), code.stores.end(),
                                             [&](const StoreCode& c) { return c.value == i.out; }))
        i.in_place = false;
    for (const LoopVar& l : kernel_.outer) code.outer.push_back(MakeLoop(l, tile));
    for (const LoopVar& l : s.inner) code.inner.push_back(MakeLoop(l, tile));
    std::vector<int*> live;
    for (StoreCode& store : code.stores) live.push_back(&store.value);
    for (StoreCode& store : code.stores)
      for (int& slot : program_.accesses[store.access].slots) live.push_back(&slot);
    ShareSlots(program_, tile.code, live);
    code.preamble = std::move(preamble.code);
    code.body = std::move(tile.code);
    code.accesses = std::move(tile.accesses);
    code.reduce_lanes = s.vector == VectorAxis::kReduction;
    program_.stages.push_back(std::move(code));
  }

  Loop MakeLoop(const LoopVar& l, Scope& scope) {
    auto it = scope.slots.find(Interned(Expr::Index(l.id)).get());
    return {Var(l.id), it == scope.slots.end() ? -1 : it->second, Ref(l.extent)};
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
        if (std::find(chain_[i]->vars.begin(), chain_[i]->vars.end(), v) != chain_[i]->vars.end())
          level = std::max(level, i);
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

  int ConstantSlot(DType t, uint64_t bits) {
    auto& constants = program_.constants;
    size_t i = 0;
    while (i < constants.size() && !(constants[i].type == t && constants[i].bits == bits)) ++i;
    if (i == constants.size()) constants.push_back({t, bits});
    return static_cast<int>(i) | kConstantBit;
  }

  // Index expressions as sums of products of at most one variable and one size.
  std::optional<std::vector<PositionTerm>> Terms(const Expr& e, int dimension) {
    switch (e.kind()) {
      case ExprKind::kConst:
        if (e.const_int() == 0) return std::vector<PositionTerm>{};
        return std::vector{PositionTerm{dimension, -1, e.const_int(), -1}};
      case ExprKind::kSize: {
        const SizeRef size = Ref(e->dim);
        return std::vector{PositionTerm{dimension, -1, size.size < 0 ? size.constant : 1, size.size}};
      }
      case ExprKind::kIndex:
        return std::vector{PositionTerm{dimension, Var(e->index), 1, -1}};
      case ExprKind::kNeg:
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
        break;
      default:
        return std::nullopt;
    }
    auto a = Terms(e->args[0], dimension);
    auto b = e->args.size() > 1 ? Terms(e->args[1], dimension) : std::vector<PositionTerm>{};
    if (!a || !b) return std::nullopt;
    auto negate = [](std::vector<PositionTerm>& terms) {
      for (PositionTerm& t : terms) t.factor = -t.factor;
    };
    if (e.kind() == ExprKind::kMul) {
      std::vector<PositionTerm> product;
      for (const PositionTerm& x : *a)
        for (const PositionTerm& y : *b) {
          if ((x.var >= 0 && y.var >= 0) || (x.size >= 0 && y.size >= 0)) return std::nullopt;
          product.push_back(
              {dimension, std::max(x.var, y.var), x.factor * y.factor, std::max(x.size, y.size)});
        }
      return product;
    }
    if (e.kind() == ExprKind::kNeg) negate(*a);
    if (e.kind() == ExprKind::kSub) negate(*b);
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }

  // A load or store of scope `level` at an interned position.
  int AddAccess(int buffer, std::span<const Expr> position, size_t level) {
    Access access{.buffer = buffer, .affine = true};
    for (size_t d = 0; d < position.size() && access.affine; ++d) {
      auto terms = Terms(position[d], static_cast<int>(d));
      if (terms) access.terms.insert(access.terms.end(), terms->begin(), terms->end());
      access.affine = terms.has_value();
    }
    if (!access.affine) {
      access.terms.clear();
      for (const Expr& p : position)
        access.slots.push_back(p.is_const() && p.const_int() == 0 ? -1 : EmitFrom(p, level));
    }
    program_.accesses.push_back(std::move(access));
    const int number = static_cast<int>(program_.accesses.size()) - 1;
    for (size_t l = 1; l <= level; ++l) chain_[l]->accesses.push_back(number);
    return number;
  }

  // The slot of `e` as seen from the innermost scope.
  int Emit(const Expr& e) { return EmitFrom(e, chain_.size() - 1); }

  int EmitFrom(const Expr& e, size_t from) {
    if (e.is_const()) return ConstantSlot(e.dtype(), e->bits);
    const size_t level = std::min(Level(e), from);
    int slot;
    if (auto it = chain_[level]->slots.find(e.get()); it != chain_[level]->slots.end()) {
      slot = it->second;
    } else {
      slot = Define(e, level);
      chain_[level]->slots.emplace(e.get(), slot);
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
    Instr i{.type = n.dtype};
    switch (n.kind) {
      case ExprKind::kIndex:
        return next_slot_++;  // filled by whoever runs the loop
      case ExprKind::kSize:
        i.kind = InstrKind::kSize;
        i.size = Ref(n.dim);
        break;
      case ExprKind::kLoad: {
        i.kind = InstrKind::kLoad;
        const size_t rank = n.args.size() - n.predicated;
        i.access = AddAccess(n.index, std::span(n.args).first(rank), level);
        if (n.predicated) i.predicate = EmitFrom(n.args.back(), level);
        i.in_place = !n.predicated;
        break;
      }
      case ExprKind::kReduce:
        return Reduce(e, level);
      default: {
        SINTER_CHECK(!n.args.empty() && n.args.size() <= 3);
        const DType in = n.kind == ExprKind::kSelect ? n.args[1].dtype() : n.args[0].dtype();
        i.fn = n.kind == ExprKind::kConvert ? LaneConversion(in, n.dtype) : LaneOp(n.kind, in);
        for (size_t a = 0; a < 3; ++a)
          i.operands[a] = EmitFrom(n.args[std::min(a, n.args.size() - 1)], level);
      }
    }
    return Add(std::move(i), *chain_[level]);
  }

  int Reduce(const Expr& e, size_t level) {
    ReduceCode r;
    r.kind = e->reduce;
    r.type = e.dtype();
    const bool contract = r.kind == ReduceKind::kContract;
    r.combine = contract ? LaneOp(ExprKind::kAdd, r.type) : LaneCombine(r.kind, r.type);
    if (contract) r.multiply = LaneOp(IsFloating(r.type) ? ExprKind::kFma : ExprKind::kMul, r.type);
    Scope body;
    for (const LoopVar& l : e->loops) body.vars.push_back(l.id);
    // The body sees the scopes up to the reduction's own level.
    std::vector<Scope*> saved(chain_.begin() + static_cast<int64_t>(level) + 1, chain_.end());
    chain_.resize(level + 1);
    if (level == 0) chain_.push_back(&body);  // a reduction of sizes: its body is like a tile's
    chain_.push_back(&body);
    const size_t inside = chain_.size() - 1;
    r.value = EmitFrom(e->args[0], inside);
    if (e->args.size() > 1) r.value2 = EmitFrom(e->args[1], inside);
    for (const LoopVar& l : e->loops) r.loops.push_back(MakeLoop(l, body));
    chain_.resize(level + 1);
    chain_.insert(chain_.end(), saved.begin(), saved.end());
    std::vector<int*> live = {&r.value};
    if (r.value2 >= 0) live.push_back(&r.value2);
    ShareSlots(program_, body.code, live);
    r.imports = std::move(body.imports);
    r.body = std::move(body.code);
    r.accesses = std::move(body.accesses);
    r.workspace = program_.workspace;
    program_.workspace += kReduceWorkspace;
    program_.reduces.push_back(std::move(r));
    Instr i{.kind = InstrKind::kReduce, .type = e.dtype()};
    i.reduce = static_cast<int>(program_.reduces.size()) - 1;
    return Add(std::move(i), *chain_[level]);
  }

  const Kernel& kernel_;
  std::vector<Dim> sizes_;
  Program program_;
  std::vector<Scope*> chain_;
  std::unordered_map<int, int> vars_;
  std::unordered_map<const ExprNode*, Expr> interned_;
  std::unordered_set<Expr, ExprHash> unique_;
  std::vector<Expr> keep_;  // so that addresses stay theirs
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
