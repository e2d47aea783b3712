#include <algorithm>
#include <unordered_set>

#include "sinter/codegen/cpu/emitter.h"
#include "sinter/graph/error.h"

// Expressions: where each is computed, and as one value or one per lane.
namespace sinter::codegen::cpu {

const ExprNode* KernelEmitter::Representative(const Expr& e) {
  if (auto it = representatives_.find(e.get()); it != representatives_.end()) return it->second;
  std::vector<const ExprNode*> args;
  for (const Expr& a : e->args) args.push_back(Representative(a));
  auto equal = [&](const ExprNode& x) {
    if (x.kind != e->kind || x.dtype != e->dtype || x.predicated != e->predicated || x.reduce != e->reduce || x.index != e->index) return false;
    if (x.bits != e->bits || !(x.dim == e->dim) || x.args.size() != args.size() || x.loops.size() != e->loops.size()) return false;
    for (size_t i = 0; i < args.size(); ++i)
      if (representatives_.at(x.args[i].get()) != args[i]) return false;
    for (size_t i = 0; i < x.loops.size(); ++i)
      if (x.loops[i].id != e->loops[i].id || !(x.loops[i].extent == e->loops[i].extent)) return false;
    return true;
  };
  const ExprNode* found = nullptr;
  auto [from, to] = by_hash_.equal_range(e->hash);
  for (auto it = from; it != to && found == nullptr; ++it)
    if (equal(*it->second)) found = it->second;
  if (found == nullptr) by_hash_.emplace(e->hash, found = e.get());
  keep_.push_back(e);
  return representatives_.emplace(e.get(), found).first->second;
}

const std::vector<int>& KernelEmitter::Free(const Expr& e) {
  if (auto it = free_.find(e.get()); it != free_.end()) return it->second;
  std::vector<int> vars;
  auto add = [&](int v) {
    if (std::find(vars.begin(), vars.end(), v) == vars.end()) vars.push_back(v);
  };
  if (e.kind() == ExprKind::kIndex) add(e->index);
  if (e.kind() == ExprKind::kLoad && lane_locals_[e->index] != nullptr) add(k_.outer.back().id);
  for (const Expr& a : e->args)
    for (int v : Free(a)) add(v);
  for (const LoopVar& l : e->loops) std::erase(vars, l.id);
  keep_.push_back(e);
  return free_.emplace(e.get(), std::move(vars)).first->second;
}

bool KernelEmitter::ReadsWritten(const Expr& e) {
  if (auto it = reads_written_.find(e.get()); it != reads_written_.end()) return it->second;
  bool r = e.kind() == ExprKind::kLoad && k_.buffers[e->index].role != BufferRole::kInput;
  for (const Expr& a : e->args) r = ReadsWritten(a) || r;
  keep_.push_back(e);
  return reads_written_.emplace(e.get(), r).first->second;
}

size_t KernelEmitter::Depth(const Expr& e) {
  size_t depth = ReadsWritten(e) ? stage_depth_ : 0;
  for (int v : Free(e)) {
    auto it = depth_of_var_.find(v);
    SINTER_CHECK(it != depth_of_var_.end(), "a loop variable outside of its loop: " + k_.name);
    depth = std::max(depth, it->second);
  }
  SINTER_CHECK(depth < chain_.size(), "an expression deeper than its use: " + k_.name);
  return depth;
}

bool KernelEmitter::VariesByLane(const Expr& e) {
  const Lanes* lanes = ActiveLanes();
  if (lanes == nullptr) return false;
  const std::vector<int>& free = Free(e);
  return std::find(free.begin(), free.end(), lanes->var) != free.end();
}

llvm::Value* KernelEmitter::Scalar(const Expr& e) {
  const size_t depth = Depth(e);
  const ExprNode* node = Representative(e);
  auto& known = chain_[depth]->scalars;
  if (auto it = known.find(node); it != known.end()) return it->second;
  Value* v = Define(e, depth, 0);
  chain_[depth]->scalars[node] = v;
  return v;
}

llvm::Value* KernelEmitter::Vector(const Expr& e) {
  const Lanes* lanes = ActiveLanes();
  SINTER_CHECK(lanes != nullptr, "a vector outside of lanes");
  const size_t depth = Depth(e);
  if (!VariesByLane(e)) return Splat(Scalar(e), depth, lanes->count);
  const ExprNode* node = Representative(e);
  auto& known = chain_[depth]->vectors;
  if (auto it = known.find(node); it != known.end()) return it->second;
  Value* v = Define(e, depth, lanes->count);
  chain_[depth]->vectors[node] = v;
  return v;
}

llvm::Value* KernelEmitter::Splat(Value* scalar, size_t depth, int lanes) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(scalar))
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes)), c);
  Value*& v = chain_[depth]->splats[{scalar, lanes}];
  if (v == nullptr) v = At(depth).CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
  return v;
}

llvm::Value* KernelEmitter::Iota(int lanes, int64_t step) {
  std::vector<llvm::Constant*> values;
  for (int i = 0; i < lanes; ++i) values.push_back(I64(i * step));
  return llvm::ConstantVector::get(values);
}

llvm::Value* KernelEmitter::Define(const Expr& e, size_t depth, int lanes) {
  const ExprNode& n = *e;
  switch (n.kind) {
    case ExprKind::kConst: return ConstantOf(context_, n.dtype, n.bits, 0);
    case ExprKind::kSize: return SizeValue(n.dim);
    case ExprKind::kIndex: {
      const Lanes* active = ActiveLanes();
      SINTER_CHECK(lanes != 0 && active != nullptr && active->var == n.index, "an unbound loop variable: " + k_.name);
      Value* base = Splat(Scalar(e), depth, lanes);
      return At(depth).CreateAdd(base, Iota(lanes));
    }
    case ExprKind::kLoad: return lanes == 0 ? ScalarLoad(n, depth) : VectorLoad(n, depth);
    case ExprKind::kReduce: return EmitReduce(e, depth, lanes);
    case ExprKind::kInput:
    case ExprKind::kCall: SINTER_CHECK(false, "calls and inputs must be expanded: " + k_.name);
    default: break;
  }
  Value* args[3] = {};
  SINTER_CHECK(!n.args.empty() && n.args.size() <= 3);
  for (size_t i = 0; i < n.args.size(); ++i) args[i] = Get(n.args[i], lanes);
  Builder& b = At(depth);
  const DType in = n.args[0].dtype();
  switch (n.kind) {
    case ExprKind::kSelect: return b.CreateSelect(args[0], args[1], args[2]);
    case ExprKind::kFma: return EmitFma(b, args[0], args[1], args[2]);
    case ExprKind::kConvert: return EmitConvert(b, in, n.dtype, args[0]);
    case ExprKind::kBitcast: return EmitBitcast(b, n.dtype, args[0]);
    default: return n.args.size() == 1 ? EmitUnary(b, n.kind, in, args[0]) : EmitBinary(b, n.kind, in, args[0], args[1]);
  }
}

int KernelEmitter::NodeCount(std::span<const Expr> roots) {
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& e : roots) ForEachExpr(e, seen, [](const Expr&) {});
  return static_cast<int>(seen.size());
}

int KernelEmitter::NodeCount(std::span<const KernelStage> stages) {
  std::vector<Expr> roots;
  for (const KernelStage& s : stages)
    for (const KernelStore& store : s.stores) roots.push_back(store.value);
  return NodeCount(roots);
}

}  // namespace sinter::codegen::cpu
