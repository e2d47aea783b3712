#include "sinter/codegen/fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "sinter/codegen/lower_op.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen {
namespace {

// Recomputing up to this many arithmetic nodes is cheaper than storing and loading a value.
constexpr int kCheap = 4;
// Expressions beyond this size are stored even with one user: code size and register pressure.
constexpr int kMaxInlined = 400;

// While a block is fused, loads name values: buffer number = position in this list.
class ValueTable {
 public:
  int Number(const Value* v) {
    auto [it, fresh] = numbers_.emplace(v, static_cast<int>(values_.size()));
    if (fresh) values_.push_back(v);
    return it->second;
  }
  const Value* At(int i) const { return values_[i]; }

 private:
  std::unordered_map<const Value*, int> numbers_;
  std::vector<const Value*> values_;
};

bool IsFusible(const Node& n, const FusionOptions& o) { return n.op->kind != OpKind::kControlFlow && !IsStructured(n, o); }

int CountNodes(const Expr& e) {
  int n = 0;
  ForEachExpr(e, [&](const Expr& x) { n += !x->args.empty() && x.kind() != ExprKind::kLoad && x.kind() != ExprKind::kConvert; });
  return n;
}

template <class Fn>
void ForEachLoad(const Expr& e, Fn fn) {
  ForEachExpr(e, [&](const Expr& x) {
    if (x.kind() == ExprKind::kLoad) fn(x);
  });
}

bool HasReduce(const Expr& e) {
  return AnyExpr(e, [](const Expr& x) { return x.kind() == ExprKind::kReduce; });
}

struct Stage {
  const Value* value;
  std::vector<LoopVar> inner;
  std::vector<Expr> position;
  Expr expr;  // loads name values by ValueTable number
};

struct Group {
  std::vector<Dim> outer;      // sizes in loop order, without ones
  std::vector<LoopVar> vars;
  std::vector<Stage> stages;
  std::unordered_set<const Value*> stored;
  std::unordered_set<const Value*> read;
  bool has_reduce = false;
  int step = 0;
};

class Fuser {
 public:
  Fuser(const Block& block, const Layouts& layouts, const FusionOptions& options) : block_(block), layouts_(layouts), options_(options) {}

  FusedBlock Run() {
    FindUses();
    for (const auto& n : block_.nodes) {
      if (n->op->kind == OpKind::kControlFlow || IsStructured(*n, options_)) {
        AddStep(n.get(), nullptr);
        for (const auto& o : n->outputs) produced_[o.get()] = static_cast<int>(steps_.size()) - 1;
        continue;
      }
      for (const auto& o : n->outputs) {
        if (uses_[o.get()].empty() && !needed_.contains(o.get())) continue;
        if (Inlined(o.get())) inlined_.insert(o.get());
        else Place(o.get());
      }
    }
    FusedBlock out;
    for (Step& s : steps_) {
      FusedStep f;
      f.node = s.node;
      if (s.group) f.fused = Finish(*s.group);
      out.steps.push_back(std::move(f));
    }
    out.refusals = std::move(refusals_);
    return out;
  }

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<Group> group;
  };

  void AddStep(const Node* node, std::unique_ptr<Group> group) { steps_.push_back({node, std::move(group)}); }

  void NeedInRegions(const Node& n) {
    for (const auto& r : n.regions) {
      for (const auto& inner : r->nodes) {
        for (const Value* v : inner->inputs) needed_.insert(v);
        NeedInRegions(*inner);
      }
      for (const Value* v : r->results) needed_.insert(v);
    }
  }

  void FindUses() {
    for (const auto& n : block_.nodes) {
      const bool fusible = IsFusible(*n, options_);
      for (const Value* v : n->inputs) {
        uses_[v].push_back(n.get());
        if (!fusible) needed_.insert(v);
      }
      NeedInRegions(*n);
    }
    for (const Value* v : block_.results) needed_.insert(v);
  }

  // Whether `v` is recomputed by its users instead of stored.
  bool Inlined(const Value* v) {
    const Node& n = *v->node;
    // A scalar constant is free, even where others need it stored: then it is both.
    if (!options_.enabled) return n.op->kind == OpKind::kConstant && !needed_.contains(v);
    if (needed_.contains(v)) return false;
    if (n.op->kind == OpKind::kReduce || n.op->kind == OpKind::kContraction || n.op->kind == OpKind::kWindow) {
      return false;
    }
    const std::vector<const Node*>& users = uses_[v];
    const int cost = Cost(v);
    if (cost <= kCheap) return true;
    if (cost > kMaxInlined) return Refuse(v, "its expression is too large to be inlined");
    if (static_cast<int>(CountReads(v)) > options_.max_buffers / 2) return Refuse(v, "it reads many buffers");
    std::unordered_set<const Node*> distinct(users.begin(), users.end());
    if (distinct.size() > 1) return Refuse(v, "it has several users and costs more to recompute than to load");
    const Node& user = *users[0];
    // A user that reads an element more than once would recompute it as often.
    if (user.op->kind == OpKind::kWindow || user.op->kind == OpKind::kContraction) return Refuse(v, "its user reads every element several times");
    if (user.op->kind == OpKind::kPointwise || user.op->kind == OpKind::kView) {
      for (const auto& o : user.outputs)
        if (ProvablyEqual(NumElements(o->type.shape), NumElements(v->type.shape)) != std::optional<bool>(true) && o->type.shape.size() >= v->type.shape.size() &&
            user.op->kind == OpKind::kPointwise)
          return Refuse(v, "it is broadcast by its user and costs more to recompute than to load");
    }
    if (user.outputs.size() > 1) return Refuse(v, "its user has several results");
    return true;
  }

  bool Refuse(const Value* v, std::string reason) {
    const std::string value = v->node == nullptr ? v->name : StrCat(v->node->op->name, v->node->Location().empty() ? "" : StrCat(" at ", v->node->Location()));
    refusals_.push_back({value, std::move(reason)});
    return false;
  }

  int Cost(const Value* v) {
    std::vector<Expr> at;
    for (int d = 0; d < v->type.rank(); ++d) at.push_back(Expr::Index(-1 - d));
    return CountNodes(ExpandCalls(ElementOf(v, at)));
  }

  // The element of a value at a position, as computed by its op; operands inlined or loaded.
  class Ctx final : public ElementCtx {
   public:
    Ctx(Fuser& f, const Node& n, std::span<const TensorType> in, std::span<const TensorType> out, int output, std::span<const Expr> at)
        : ElementCtx(*n.op, n.op->AttrsOrDefault(n.attrs), in, out, output, at), fuser_(f), node_(n) {}
    Expr In(int i, std::span<const Expr> p) override { return fuser_.Read(node_.inputs[i], p, Expr()); }
    Expr InIf(int i, std::span<const Expr> p, Expr predicate) override { return fuser_.Read(node_.inputs[i], p, std::move(predicate)); }

   private:
    Fuser& fuser_;
    const Node& node_;
  };

  Expr ElementOf(const Value* v, std::span<const Expr> at) {
    const Node& n = *v->node;
    std::vector<TensorType> in, out;
    for (const Value* x : n.inputs) in.push_back(x->type);
    for (const auto& o : n.outputs) out.push_back(o->type);
    Ctx ctx(*this, n, in, out, v->index, at);
    const DType t = ComputeType(v->type.dtype);
    return Expr::Convert(n.op->element(ctx), t);
  }

  Expr Read(const Value* v, std::span<const Expr> at, Expr predicate) {
    const DType t = v->type.dtype;
    if (inlined_.contains(v)) {
      // A storage type rounds even where it is never stored.
      Expr e = ElementOf(v, at);
      if (ComputeType(t) != t) e = Expr::Convert(Expr::Convert(e, t), ComputeType(t));
      if (!predicate) return e;
      // Every load inside gets the predicate; the value is 0 where it does not hold.
      e = Guarded(e, predicate);
      return Expr::Select(predicate, e, Expr::Const(e.dtype(), 0));
    }
    std::vector<Expr> position(at.begin(), at.end());
    const int buffer = table_.Number(v);
    Expr load = predicate ? Expr::LoadIf(buffer, t, std::move(position), std::move(predicate)) : Expr::Load(buffer, t, std::move(position));
    return Expr::Convert(std::move(load), ComputeType(t));
  }

  static Expr Guarded(const Expr& e, const Expr& predicate) {
    return Rewrite(e, [&](const Expr& x) -> Expr {
      if (x.kind() != ExprKind::kLoad) return Expr();
      std::vector<Expr> position(x->args.begin(), x->args.end() - x->predicated);
      for (Expr& p : position) p = Guarded(p, predicate);
      return Expr::LoadIf(x->index, x->dtype, std::move(position), x->predicated ? predicate & x->args.back() : predicate);
    });
  }

  // Dimensions of a value in memory order, without ones.
  std::vector<int> LoopDims(const Value* v) {
    std::vector<int> dims;
    for (int d : layouts_.at(v))
      if (!IsOne(v->type.shape[d])) dims.push_back(d);
    return dims;
  }

  size_t CountReads(const Value* v) {
    std::vector<Expr> at;
    for (int d = 0; d < v->type.rank(); ++d) at.push_back(Expr::Index(-1 - d));
    std::unordered_set<int> read;
    ForEachLoad(ElementOf(v, at), [&](const Expr& load) { read.insert(load->index); });
    return read.size();
  }

  // Stores inlined operands of v, those that read most first, until v's kernel has no more buffers than it may.
  void LimitReads(const Value* v) {
    const std::vector<Value*>& operands = v->node->inputs;
    while (std::any_of(operands.begin(), operands.end(), [&](const Value* x) { return inlined_.contains(x); }) &&
           static_cast<int>(CountReads(v)) >= options_.max_buffers) {
      const Value* widest = nullptr;
      size_t most = 1;
      for (const Value* x : operands)
        if (inlined_.contains(x))
          if (const size_t n = CountReads(x); n > most) widest = x, most = n;
      if (widest == nullptr) return;
      Refuse(widest, "its user would read more buffers than a kernel may");
      // Others may have it inlined already: what it reads stays in memory for them.
      std::vector<Expr> at;
      for (int d = 0; d < widest->type.rank(); ++d) at.push_back(Expr::Index(-1 - d));
      ForEachLoad(ElementOf(widest, at), [&](const Expr& load) { needed_.insert(table_.At(load->index)); });
      inlined_.erase(widest);
      Place(widest);
    }
  }

  // A stored value: into an earlier group if it fits, else into one of its own.
  void Place(const Value* v) {
    LimitReads(v);
    if (options_.enabled) {
      for (size_t i = steps_.size(); i-- > 0;) {
        if (!steps_[i].group) continue;
        if (TryJoin(*steps_[i].group, v)) {
          produced_[v] = static_cast<int>(i);
          return;
        }
        if (steps_.size() - i > 24) break;
      }
    }
    auto group = std::make_unique<Group>();
    group->step = static_cast<int>(steps_.size());
    for (int d : LoopDims(v)) {
      group->outer.push_back(v->type.shape[d]);
      group->vars.push_back({FreshIndex(), v->type.shape[d]});
    }
    std::optional<Stage> stage = MakeStage(*group, v);
    SINTER_CHECK(stage.has_value());
    Add(*group, std::move(*stage));
    AddStep(nullptr, std::move(group));
    produced_[v] = static_cast<int>(steps_.size()) - 1;
  }

  void Add(Group& g, Stage stage) {
    ForEachLoad(stage.expr, [&](const Expr& load) { g.read.insert(table_.At(load->index)); });
    g.has_reduce |= HasReduce(stage.expr);
    g.stored.insert(stage.value);
    g.stages.push_back(std::move(stage));
  }

  // The stage of `v` in a group whose outer domain begins v's loops; nothing if it doesn't.
  std::optional<Stage> MakeStage(const Group& g, const Value* v) {
    std::vector<int> dims = LoopDims(v);
    if (dims.size() < g.outer.size()) return std::nullopt;
    for (size_t i = 0; i < g.outer.size(); ++i)
      if (!(v->type.shape[dims[i]] == g.outer[i])) return std::nullopt;
    Stage s;
    s.value = v;
    s.position.assign(v->type.rank(), I64(0));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i < g.outer.size()) {
        s.position[dims[i]] = Expr::Index(g.vars[i].id);
      } else {
        s.inner.push_back({FreshIndex(), v->type.shape[dims[i]]});
        s.position[dims[i]] = Expr::Index(s.inner.back().id);
      }
    }
    s.expr = ExpandCalls(ElementOf(v, s.position));
    return s;
  }

  bool TryJoin(Group& g, const Value* v) {
    if (static_cast<int>(g.stages.size()) >= options_.max_stages) return false;
    std::vector<int> dims = LoopDims(v);
    if (dims.size() < g.outer.size()) return false;
    for (size_t i = 0; i < g.outer.size(); ++i)
      if (!(v->type.shape[dims[i]] == g.outer[i])) return false;
    const bool has_inner = dims.size() > g.outer.size();
    std::optional<Stage> s = MakeStage(g, v);
    bool reads_group = false, legal = true;
    std::unordered_set<const Value*> reads;
    ForEachLoad(s->expr, [&](const Expr& load) {
      const Value* x = table_.At(load->index);
      reads.insert(x);
      if (!g.stored.contains(x)) {
        // Must be there before the group runs.
        auto it = produced_.find(x);
        legal &= it == produced_.end() || it->second < g.step;
        return;
      }
      reads_group = true;
      // Only its own outer point.
      std::vector<int> stored_dims = LoopDims(x);
      for (size_t i = 0; i < g.outer.size(); ++i) legal &= load->args[stored_dims[i]] == Expr::Index(g.vars[i].id);
    });
    if (!legal) return false;
    // Inner loops pay only where the row is still in cache; unrelated rows run better flattened.
    if (has_inner && (!reads_group || g.outer.empty())) return false;
    if (!has_inner && !reads_group && g.has_reduce != HasReduce(s->expr)) return false;
    reads.insert(g.read.begin(), g.read.end());
    if (static_cast<int>(reads.size() + g.stored.size()) + 1 > options_.max_buffers) return false;
    Add(g, std::move(*s));
    return true;
  }

  // Replaces a load of what the same point has just computed by the value itself.
  static Expr Forward(const Expr& e, const std::vector<const Stage*>& earlier, const ValueTable& table) {
    return Rewrite(e, [&](const Expr& x) -> Expr {
      if (x.kind() != ExprKind::kLoad || x->predicated) return Expr();
      for (const Stage* s : earlier) {
        if (table.At(x->index) != s->value || HasReduce(s->expr) || !s->inner.empty()) continue;
        if (!std::equal(x->args.begin(), x->args.end(), s->position.begin(), s->position.end())) continue;
        const DType t = s->value->type.dtype;
        return ComputeType(t) == t ? s->expr : Expr::Convert(s->expr, t);
      }
      return Expr();
    });
  }

  bool UsedOutside(const Group& g, const Value* v) {
    if (needed_.contains(v)) return true;
    // Users in this group, directly or through inlined values, load it there; everybody else needs memory.
    auto outside = [&](auto& self, const Value* x) -> bool {
      for (const Node* user : uses_[x]) {
        for (const auto& o : user->outputs) {
          if (inlined_.contains(o.get())) {
            if (self(self, o.get())) return true;
          } else if (!g.stored.contains(o.get()) && produced_.contains(o.get())) {
            return true;
          }
        }
      }
      return false;
    };
    return outside(outside, v);
  }

  FusedKernel Finish(const Group& g) {
    FusedKernel f;
    Kernel& k = f.kernel;
    k.outer = g.vars;
    std::unordered_map<const Value*, int> buffer;
    std::unordered_set<const Value*> local;
    // Stages whose value nobody outside needs keep it in local memory, shaped by the inner loops alone.
    std::vector<Stage> stages = g.stages;
    std::vector<const Stage*> earlier;
    for (Stage& s : stages) {
      s.expr = Forward(s.expr, earlier, table_);
      earlier.push_back(&s);
    }
    std::unordered_set<const Value*> loaded;
    for (const Stage& s : stages) ForEachLoad(s.expr, [&](const Expr& l) { loaded.insert(table_.At(l->index)); });
    std::erase_if(stages, [&](const Stage& s) { return !UsedOutside(g, s.value) && !loaded.contains(s.value); });

    auto add = [&](const Value* v, BufferRole role) {
      buffer[v] = static_cast<int>(k.buffers.size());
      KernelBuffer b{v->type.dtype, v->type.shape, layouts_.at(v), role};
      if (role == BufferRole::kLocal) {
        local.insert(v);
        b.shape.clear();
        b.order.clear();
        std::vector<int> dims = LoopDims(v);
        for (size_t i = g.outer.size(); i < dims.size(); ++i) {
          b.order.push_back(static_cast<int>(b.shape.size()));
          b.shape.push_back(v->type.shape[dims[i]]);
        }
      }
      k.buffers.push_back(std::move(b));
      f.values.push_back(role == BufferRole::kLocal ? nullptr : v);
    };
    for (const Stage& s : stages)
      ForEachLoad(s.expr, [&](const Expr& l) {
        const Value* v = table_.At(l->index);
        if (!g.stored.contains(v) && !buffer.contains(v)) add(v, BufferRole::kInput);
      });
    for (const Stage& s : stages) add(s.value, UsedOutside(g, s.value) ? BufferRole::kOutput : BufferRole::kLocal);

    auto inner_position = [&](const Value* v, std::span<const Expr> position) {
      std::vector<Expr> p;
      std::vector<int> dims = LoopDims(v);
      for (size_t i = g.outer.size(); i < dims.size(); ++i) p.push_back(position[dims[i]]);
      return p;
    };
    auto renumber = [&](auto& self, const Expr& e) -> Expr {
      return Rewrite(e, [&](const Expr& x) -> Expr {
        if (x.kind() != ExprKind::kLoad) return Expr();
        const Value* v = table_.At(x->index);
        std::vector<Expr> args;
        for (const Expr& a : x->args) args.push_back(self(self, a));
        Expr predicate = x->predicated ? args.back() : Expr();
        if (predicate) args.pop_back();
        if (local.contains(v)) args = inner_position(v, args);
        return predicate ? Expr::LoadIf(buffer[v], x->dtype, std::move(args), predicate) : Expr::Load(buffer[v], x->dtype, std::move(args));
      });
    };

    std::string name;
    for (const Stage& s : stages) {
      KernelStore store;
      store.buffer = buffer[s.value];
      store.position = local.contains(s.value) ? inner_position(s.value, s.position) : s.position;
      store.value = renumber(renumber, s.expr);
      // Stores over the same loops share a stage.
      const bool reduces = HasReduce(store.value);
      KernelStage* last = k.stages.empty() ? nullptr : &k.stages.back();
      bool reads_last = false;
      if (last)
        ForEachLoad(store.value, [&](const Expr& l) {
          for (const KernelStore& w : last->stores) reads_last |= w.buffer == l->index;
        });
      if (last && last->inner.empty() && s.inner.empty() && !reads_last && reduces == HasReduce(last->stores[0].value)) {
        last->stores.push_back(std::move(store));
      } else {
        KernelStage stage;
        stage.inner = s.inner;
        stage.stores.push_back(std::move(store));
        k.stages.push_back(std::move(stage));
      }
      if (s.value->node) {
        StrAppend(&name, name.empty() ? "" : "+", s.value->node->op->name);
        if (std::string at = s.value->node->Location(); !at.empty() && std::find(k.sources.begin(), k.sources.end(), at) == k.sources.end()) k.sources.push_back(at);
      }
    }
    k.name = name.size() > 120 ? name.substr(0, 117) + "..." : name;
    ChooseVectors(k);
    return f;
  }

  static void ChooseVectors(Kernel& k) {
    bool all_outer = !k.outer.empty();
    for (KernelStage& s : k.stages) {
      bool along = false, short_reduce = true;
      for (const KernelStore& store : s.stores) {
        along |= ReducesAlongMemory(store.value, k.buffers);
        const Dim size = ReductionSize(store.value);
        short_reduce &= size.is_const() && size.value() < 16;
      }
      if (!s.inner.empty()) s.vector = VectorAxis::kInner;
      else if ((along && !short_reduce) || (k.outer.empty() && HasReduce(s.stores[0].value))) s.vector = VectorAxis::kReduction;
      else s.vector = k.outer.empty() ? VectorAxis::kNone : VectorAxis::kOuter;
      all_outer &= s.vector == VectorAxis::kOuter;
    }
    // Lanes over outer points only if every stage has them.
    if (all_outer) return;
    for (KernelStage& s : k.stages)
      if (s.vector == VectorAxis::kOuter) s.vector = HasReduce(s.stores[0].value) ? VectorAxis::kReduction : VectorAxis::kNone;
  }

  const Block& block_;
  const Layouts& layouts_;
  const FusionOptions& options_;
  ValueTable table_;
  std::unordered_map<const Value*, std::vector<const Node*>> uses_;
  std::unordered_set<const Value*> needed_;   // must be in memory
  std::unordered_set<const Value*> inlined_;
  std::unordered_map<const Value*, int> produced_;  // step of each stored value
  std::vector<Step> steps_;
  std::vector<FusionRefusal> refusals_;
};

}  // namespace

FusedBlock FuseBlock(const Block& block, const Layouts& layouts, const FusionOptions& options) { return Fuser(block, layouts, options).Run(); }

}  // namespace sinter::codegen
