#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <unordered_set>

#include "sinter/codegen/cpu/emitter.h"

// The outer domain, the stages of one point, and lanes over loops.
namespace sinter::codegen::cpu {
namespace {

constexpr int kSmallBody = 24;   // nodes of expressions
constexpr int kLargeBody = 60;   // from here on, one body does whole and partial vectors: half the code

bool HasReduction(std::span<const KernelStage> stages) {
  for (const KernelStage& s : stages)
    for (const KernelStore& store : s.stores)
      if (AnyExpr(store.value, [](const Expr& e) { return e.kind() == ExprKind::kReduce; })) return true;
  return false;
}

}  // namespace

// Lanes run over outer points only where every stage does so; local buffers are then one value by lane.
bool KernelEmitter::AllStagesOuter() const {
  if (k_.outer.empty()) return false;
  for (const KernelStage& s : k_.stages)
    if (s.vector != VectorAxis::kOuter) return false;
  for (const KernelBuffer& b : k_.buffers)
    if (b.role == BufferRole::kLocal && !b.shape.empty()) return false;
  return true;
}

// Small bodies with reductions get several vectors at a time: each row of memory is then used for longer, and chains of dependent
// operations run side by side.
int KernelEmitter::LaneCount(std::span<const KernelStage> stages) const {
  return HasReduction(stages) && NodeCount(stages) <= kSmallBody ? std::min(kMaxLanes, 4 * width_) : width_;
}

void KernelEmitter::OuterDomain() {
  Value* begin = function_->getArg(2);
  Value* end = function_->getArg(3);
  const size_t rank = k_.outer.size();
  if (rank == 0) {
    Open point = OpenBlock(Here().CreateICmpSLT(begin, end));
    Stages();
    CloseBlock(point);
    return;
  }
  if (rank == 1) return Points(begin, end);

  // Row by row: a turn does the points of [begin, end) that share all coordinates but the last.
  std::vector<Value*> extents;
  std::vector<int> vars;
  for (const LoopVar& l : k_.outer) extents.push_back(SizeValue(l.extent));
  for (size_t d = 0; d + 1 < rank; ++d) vars.push_back(k_.outer[d].id);
  Open rows = OpenLoop(vars, begin, end);
  Builder& b = Here();
  Value* row = b.CreateUDiv(rows.index, extents.back());
  Value* from = b.CreateSub(rows.index, b.CreateMul(row, extents.back()));
  Value* left = b.CreateSub(end, rows.index);
  Value* to = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateAdd(from, left), extents.back());
  Value* next = b.CreateAdd(rows.index, b.CreateSub(to, from));
  for (size_t d = rank - 1; d-- > 0;) {
    if (d == 0) {
      Bind(vars[0], row);
      break;
    }
    Value* quotient = b.CreateUDiv(row, extents[d]);
    Bind(vars[d], b.CreateSub(row, b.CreateMul(quotient, extents[d])));
    row = quotient;
  }
  Points(from, to);
  CloseLoop(rows, next);
}

void KernelEmitter::Points(Value* begin, Value* end) {
  const int var = k_.outer.back().id;
  if (outer_lanes_) return LaneLoop(var, begin, end, k_.stages, [&] { Stages(); });
  Open loop = OpenLoop({var}, begin, end);
  Bind(var, loop.index);
  Stages();
  CloseLoop(loop, Step(loop.index, 1));
}

void KernelEmitter::Stages() {
  for (const KernelStage& s : k_.stages) {
    Open scope = OpenBlock(nullptr);
    stage_depth_ = Top();
    Stage(s, 0);
    CloseBlock(scope);
  }
}

void KernelEmitter::Stage(const KernelStage& s, size_t inner) {
  if (inner == s.inner.size()) return Stores(s);
  const LoopVar& l = s.inner[inner];
  Value* extent = SizeValue(l.extent);
  if (s.vector == VectorAxis::kInner && inner + 1 == s.inner.size()) return LaneLoop(l.id, I64(0), extent, {&s, 1}, [&] { Stores(s); });
  Open loop = OpenLoop({l.id}, I64(0), extent);
  Bind(l.id, loop.index);
  Stage(s, inner + 1);
  CloseLoop(loop, Step(loop.index, 1));
}

void KernelEmitter::Stores(const KernelStage& s) {
  const Lanes* lanes = ActiveLanes();
  std::vector<Value*> values;
  for (const KernelStore& store : s.stores) values.push_back(Get(store.value, lanes == nullptr ? 0 : lanes->count));
  for (size_t i = 0; i < s.stores.size(); ++i) Store(s.stores[i], values[i]);
}

void KernelEmitter::LaneLoop(int var, Value* lo, Value* hi, std::span<const KernelStage> stages, const std::function<void()>& body) {
  const int lanes = LaneCount(stages);
  const bool one_body = NodeCount(stages) >= kLargeBody || HasReduction(stages);
  Value* whole = Here().CreateAdd(lo, b_.CreateAnd(b_.CreateSub(hi, lo), I64(-lanes)));
  auto* constant_lo = llvm::dyn_cast<llvm::ConstantInt>(lo);
  auto* constant_whole = llvm::dyn_cast<llvm::ConstantInt>(whole);
  auto* constant_hi = llvm::dyn_cast<llvm::ConstantInt>(hi);
  if (one_body && !(constant_whole && constant_hi && constant_whole->getSExtValue() == constant_hi->getSExtValue())) {
    Open loop = OpenLoop({var}, lo, hi);
    Value* left = Here().CreateSub(hi, loop.index);
    chain_.back()->lanes = Lanes{var, lanes, nullptr, Here().CreateICmpSGE(left, I64(lanes)), left};
    Bind(var, loop.index);
    body();
    CloseLoop(loop, Step(loop.index, lanes));
    return;
  }
  const bool no_loop = constant_lo && constant_whole && constant_lo->getSExtValue() == constant_whole->getSExtValue();
  if (!no_loop) {
    Open loop = OpenLoop({var}, lo, whole);
    chain_.back()->lanes = Lanes{var, lanes, nullptr};
    Bind(var, loop.index);
    body();
    CloseLoop(loop, Step(loop.index, lanes));
  }
  if (constant_whole && constant_hi && constant_whole->getSExtValue() == constant_hi->getSExtValue()) return;
  Open rest = OpenBlock(Here().CreateICmpSLT(whole, hi), {var});
  Value* left = Here().CreateVectorSplat(static_cast<unsigned>(lanes), b_.CreateSub(hi, whole));
  chain_.back()->lanes = Lanes{var, lanes, Here().CreateICmpSLT(Iota(lanes), left)};
  Bind(var, whole);
  body();
  CloseBlock(rest);
}

}  // namespace sinter::codegen::cpu
