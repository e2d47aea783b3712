#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "sinter/codegen/cpu/emitter.h"
#include "sinter/codegen/interpret_ops.h"
#include "sinter/graph/error.h"
#include "sinter/graph/numerics.h"

// Reductions by the tree of ReduceKind, with lanes over results (partial results of 16 lanes of the tree in memory) or, for a single
// result, over the reduced values (the tree's 16 lanes are the vector).
namespace sinter::codegen::cpu {
namespace {

constexpr int64_t kMaxUnrolled = 32;      // values of a reduction that is written out in full
constexpr int64_t kMaxUnrolledNodes = 512;
constexpr int kMaxDepth = 56;             // of the binary counter: 2^63 / 1024 blocks
constexpr int kFreeLanes = 64;            // of reductions whose result doesn't depend on the order

// Whether any order of combination gives the same bits.
bool IsOrderFree(const ExprNode& n) {
  if (n.reduce == ReduceKind::kContract) return false;
  return !IsFloating(n.dtype) || n.reduce == ReduceKind::kMax || n.reduce == ReduceKind::kMin;
}

}  // namespace

llvm::Value* KernelEmitter::EmitReduce(const Expr& e, size_t depth, int lanes) {
  // What lies inside `depth` doesn't see this reduction's loops.
  std::vector<std::unique_ptr<Level>> aside;
  for (size_t i = depth + 1; i < chain_.size(); ++i) aside.push_back(std::move(chain_[i]));
  chain_.resize(depth + 1);

  Reduction r{*e, {}, {}, I64(1), 1, 1, lanes};
  Dim size = 1;
  for (const LoopVar& l : e->loops) {
    r.vars.push_back(l.id);
    r.extents.push_back(SizeValue(l.extent));
    r.total = At(0).CreateMul(r.total, r.extents.back());
    size *= l.extent;
  }
  r.least = size.lower_bound();
  r.most = size.upper_bound();
  Value* v = Choose(r);
  if (r.least <= 0 && e->reduce != ReduceKind::kContract) {
    const bool zero = e->reduce == ReduceKind::kSum;
    Value* empty = zero ? ConstantOf(context_, e.dtype(), 0, lanes) : Identity(*e, lanes);
    v = Here().CreateSelect(Here().CreateICmpEQ(r.total, I64(0)), empty, v);
  }
  for (auto& level : aside) chain_.push_back(std::move(level));
  return v;
}

llvm::Value* KernelEmitter::Choose(const Reduction& r) {
  const bool contract = r.node.reduce == ReduceKind::kContract;
  const bool by_lane = !contract && ActiveLanes() == nullptr;
  const int64_t nodes = NodeCount(r.node.args);
  const bool short_enough = r.least == r.most && r.most <= kMaxUnrolled && r.most * nodes <= kMaxUnrolledNodes;
  if (short_enough && (!by_lane || r.most <= 4)) return Unrolled(r);
  if (contract) return Contract(r);
  if (!by_lane) return ByResult(r);
  if (r.vars.size() == 1) return ByLane(r);

  // Rows of whole vectors need no vector that spans two rows.
  const Dim row = r.node.loops.back().extent;
  if (ProvablyDivisible(row, Dim(kReduceLanes))) return ByLane(r);
  if (row.is_const()) return ByResult(r);
  Value* result = Alloca(MemoryType(context_, r.node.dtype), "reduced");
  Value* whole = Here().CreateICmpEQ(b_.CreateAnd(r.extents.back(), I64(kReduceLanes - 1)), I64(0));
  Open a = OpenBlock(whole);
  StorePartial(r, result, I64(0), ByLane(r));
  CloseBlock(a);
  Open b = OpenBlock(Here().CreateNot(whole));
  StorePartial(r, result, I64(0), ByResult(r));
  CloseBlock(b);
  return LoadPartial(r, result, I64(0));
}

llvm::Value* KernelEmitter::Identity(const ExprNode& n, int lanes) { return ConstantOf(context_, n.dtype, ReduceIdentity(n.reduce, n.dtype), lanes); }

KernelEmitter::Position KernelEmitter::Start(const Reduction& r) const {
  // One variable is the flattened index itself.
  return r.vars.size() == 1 ? Position() : Position(r.vars.size(), llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), 0));
}

void KernelEmitter::BindPosition(const Reduction& r, Value* k, std::span<Value* const> at) {
  if (r.vars.size() == 1) return Bind(r.vars[0], k);
  for (size_t d = 0; d < r.vars.size(); ++d) Bind(r.vars[d], at[d]);
}

KernelEmitter::Position KernelEmitter::NextPosition(const Reduction& r, std::span<Value* const> at, int64_t step) {
  Position next(at.begin(), at.end());
  if (next.empty()) return next;
  Builder& b = Here();
  Value* carry = I64(step);
  for (size_t d = next.size(); d-- > 0;) {
    Value* v = b.CreateAdd(next[d], carry);
    Value* wraps = b.CreateICmpEQ(v, r.extents[d]);
    next[d] = b.CreateSelect(wraps, I64(0), v);
    carry = b.CreateZExt(wraps, b.getInt64Ty());
  }
  return next;
}

// Combines up to 16 lanes of the tree: l with l + 8, then 4, 2, 1. Absent lanes hold the identity, which changes nothing.
llvm::Value* KernelEmitter::FoldUnrolled(const ExprNode& n, std::vector<Value*> lanes) {
  for (size_t half = kReduceLanes / 2; half > 0; half /= 2)
    for (size_t l = 0; l < half; ++l)
      if (l + half < lanes.size()) lanes[l] = EmitAccumulate(Here(), n.reduce, n.dtype, lanes[l], lanes[l + half]);
  return lanes[0];
}

// The same in memory, as loops: it runs once in 1024 values, and its code would be the larger part of the kernel.
llvm::Value* KernelEmitter::FoldPartials(const Reduction& r, Value* partials) {
  Value* half = I64(kReduceLanes / 2);
  Open halves = OpenLoop({}, I64(1), I64(kReduceLanes), std::span(&half, 1));
  Open lanes = OpenLoop({}, I64(0), halves.carried[0]);
  Value* low = LoadPartial(r, partials, lanes.index);
  Value* high = LoadPartial(r, partials, Here().CreateAdd(lanes.index, halves.carried[0]));
  StorePartial(r, partials, lanes.index, EmitAccumulate(Here(), r.node.reduce, r.node.dtype, low, high));
  CloseLoop(lanes, Step(lanes.index, 1));
  Value* next = Here().CreateLShr(halves.carried[0], I64(1));
  CloseLoop(halves, Here().CreateShl(halves.index, I64(1)), std::span(&next, 1));
  return LoadPartial(r, partials, I64(0));
}

llvm::Value* KernelEmitter::FoldLanes(const ExprNode& n, Value* v) {
  Builder& b = Here();
  for (int half = LanesOf(v) / 2; half > 0; half /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) low.push_back(i), high.push_back(i + half);
    v = EmitAccumulate(b, n.reduce, n.dtype, b.CreateShuffleVector(v, low), b.CreateShuffleVector(v, high));
  }
  return b.CreateExtractElement(v, uint64_t{0});
}

llvm::Value* KernelEmitter::Unrolled(const Reduction& r) {
  const ExprNode& n = r.node;
  const bool contract = n.reduce == ReduceKind::kContract;
  if (r.most <= 0) return contract ? ConstantOf(context_, n.dtype, 0, r.lanes) : Identity(n, r.lanes);
  std::vector<Value*> lanes;
  Value* acc = ConstantOf(context_, n.dtype, 0, r.lanes);
  for (int64_t k = 0; k < r.most; ++k) {
    Open block = OpenBlock(nullptr, r.vars);
    int64_t rest = k;
    for (size_t d = r.vars.size(); d-- > 0;) {
      const int64_t extent = n.loops[d].extent.value();
      Bind(r.vars[d], I64(rest % extent));
      rest /= extent;
    }
    Value* v = Get(n.args[0], r.lanes);
    if (contract) {
      Value* w = Get(n.args[1], r.lanes);
      acc = IsFloating(n.dtype) ? EmitFma(Here(), v, w, acc) : Here().CreateAdd(acc, Here().CreateMul(v, w));
    } else if (k < kReduceLanes) {
      lanes.push_back(v);
    } else {
      lanes[k % kReduceLanes] = EmitAccumulate(Here(), n.reduce, n.dtype, lanes[k % kReduceLanes], v);
    }
    CloseBlock(block);
  }
  return contract ? acc : FoldUnrolled(n, std::move(lanes));
}

llvm::Value* KernelEmitter::Contract(const Reduction& r) {
  const ExprNode& n = r.node;
  Value* zero = ConstantOf(context_, n.dtype, 0, r.lanes);
  auto block = [&](Value* from, Value* to, const Position& at) {
    std::vector<Value*> carried = {zero};
    carried.insert(carried.end(), at.begin(), at.end());
    Open loop = OpenLoop(r.vars, from, to, carried);
    const std::vector<Value*> now(loop.carried.begin(), loop.carried.end());
    BindPosition(r, loop.index, std::span(now).subspan(1));
    Value* x = Get(n.args[0], r.lanes);
    Value* y = Get(n.args[1], r.lanes);
    Builder& b = Here();
    std::vector<Value*> next = {IsFloating(n.dtype) ? EmitFma(b, x, y, now[0]) : b.CreateAdd(now[0], b.CreateMul(x, y))};
    const Position after = NextPosition(r, std::span(now).subspan(1), 1);
    next.insert(next.end(), after.begin(), after.end());
    return CloseLoop(loop, Step(loop.index, 1), next);
  };
  if (r.most <= kContractionBlock) return block(I64(0), r.total, Start(r))[0];

  std::vector<Value*> carried = {zero};
  const Position start = Start(r);
  carried.insert(carried.end(), start.begin(), start.end());
  Open blocks = OpenLoop({}, I64(0), r.total, carried);
  Value* from = blocks.index;
  Value* next = Step(from, kContractionBlock);
  Value* to = Here().CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, r.total);
  std::vector<Value*> result = block(from, to, Position(blocks.carried.begin() + 1, blocks.carried.end()));
  Value* sum = EmitBinary(Here(), ExprKind::kAdd, n.dtype, blocks.carried[0], result[0]);
  result[0] = Here().CreateSelect(Here().CreateICmpEQ(from, I64(0)), result[0], sum);
  return CloseLoop(blocks, next, result)[0];
}

// The blocks of a reduction and their combination.
llvm::Value* KernelEmitter::Tree(const Reduction& r, const EmitBlock& block) {
  if (r.most <= kReduceBlock) return block(I64(0), r.total, Start(r)).value;
  Value* stack = Alloca(WithLanes(MemoryType(context_, r.node.dtype), r.lanes), "blocks", kMaxDepth);
  Open blocks = OpenLoop({}, I64(0), r.total, Start(r));
  Value* from = blocks.index;
  Value* next = Step(from, kReduceBlock);
  Value* to = Here().CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, r.total);
  BlockResult result = block(from, to, Position(blocks.carried.begin(), blocks.carried.end()));
  PushBlock(r, stack, Here().CreateLShr(from, I64(10)), result.value);
  CloseLoop(blocks, next, result.at);
  return FinishBlocks(r, stack, Here().CreateLShr(Step(r.total, kReduceBlock - 1), I64(10)));
}

// One accumulator, where the order doesn't matter.
llvm::Value* KernelEmitter::OneByOne(const Reduction& r) {
  const ExprNode& n = r.node;
  std::vector<Value*> carried = {Identity(n, r.lanes)};
  const Position start = Start(r);
  carried.insert(carried.end(), start.begin(), start.end());
  Open loop = OpenLoop(r.vars, I64(0), r.total, carried);
  const std::vector<Value*> now(loop.carried.begin(), loop.carried.end());
  BindPosition(r, loop.index, std::span(now).subspan(1));
  Value* v = Get(n.args[0], r.lanes);
  std::vector<Value*> next = {EmitAccumulate(Here(), n.reduce, n.dtype, now[0], v)};
  const Position after = NextPosition(r, std::span(now).subspan(1), 1);
  next.insert(next.end(), after.begin(), after.end());
  return CloseLoop(loop, Step(loop.index, 1), next)[0];
}

llvm::Value* KernelEmitter::ByResult(const Reduction& r) {
  const ExprNode& n = r.node;
  if (IsOrderFree(n)) return OneByOne(r);
  Value* partial = Alloca(WithLanes(MemoryType(context_, n.dtype), r.lanes), "partial", kReduceLanes);
  return Tree(r, [&](Value* from, Value* to, const Position& at) -> BlockResult {
    Open clear = OpenLoop({}, I64(0), I64(kReduceLanes));
    StorePartial(r, partial, clear.index, Identity(n, r.lanes));
    CloseLoop(clear, Step(clear.index, 1));
    Open loop = OpenLoop(r.vars, from, to, at);
    const Position now(loop.carried.begin(), loop.carried.end());
    BindPosition(r, loop.index, now);
    Value* v = Get(n.args[0], r.lanes);
    Value* lane = Here().CreateAnd(loop.index, I64(kReduceLanes - 1));
    Value* acc = LoadPartial(r, partial, lane);
    StorePartial(r, partial, lane, EmitAccumulate(Here(), n.reduce, n.dtype, acc, v));
    const Position next = NextPosition(r, now, 1);
    Position after = CloseLoop(loop, Step(loop.index, 1), next);
    return {FoldPartials(r, partial), std::move(after)};
  });
}

llvm::Value* KernelEmitter::ByLane(const Reduction& r) {
  const ExprNode& n = r.node;
  const int lane_var = r.vars.back();
  const bool free = IsOrderFree(n) && r.vars.size() == 1 && r.most >= 2 * kReduceLanes;
  const int count = free ? kFreeLanes : kReduceLanes;
  auto turn = [&](Value* k, std::span<Value* const> at, Value* mask, Value* acc) {
    chain_.back()->lanes = Lanes{lane_var, count, mask};
    BindPosition(r, k, at);
    Value* v = Vector(n.args[0]);
    Value* next = EmitAccumulate(Here(), n.reduce, n.dtype, acc, v);
    return mask == nullptr ? next : Here().CreateSelect(mask, next, acc);
  };
  auto block = [&](Value* from, Value* to, const Position& at) -> BlockResult {
    Value* whole = Here().CreateAdd(from, b_.CreateAnd(b_.CreateSub(to, from), I64(-count)));
    std::vector<Value*> carried = {Identity(n, count)};
    carried.insert(carried.end(), at.begin(), at.end());
    Open loop = OpenLoop(r.vars, from, whole, carried);
    const std::vector<Value*> now(loop.carried.begin(), loop.carried.end());
    std::vector<Value*> next = {turn(loop.index, std::span(now).subspan(1), nullptr, now[0])};
    const Position moved = NextPosition(r, std::span(now).subspan(1), count);
    next.insert(next.end(), moved.begin(), moved.end());
    std::vector<Value*> after = CloseLoop(loop, Step(loop.index, count), next);
    Value* acc = after[0];
    // Only a single loop has a rest: the others run over rows of whole vectors.
    if (r.vars.size() == 1 && !ProvablyDivisible(n.loops[0].extent, Dim(count))) {
      Open rest = OpenBlock(Here().CreateICmpSLT(whole, to), r.vars);
      Value* left = Here().CreateVectorSplat(static_cast<unsigned>(count), b_.CreateSub(to, whole));
      Value* mask = Here().CreateICmpSLT(Iota(count), left);
      Value* inside[] = {turn(whole, {}, mask, acc)};
      acc = CloseBlock(rest, inside, std::span(&acc, 1))[0];
    }
    return {FoldLanes(n, acc), Position(after.begin() + 1, after.end())};
  };
  return free ? block(I64(0), r.total, {}).value : Tree(r, block);
}

// Adds a block's result to the binary counter: as many entries are combined with it as the block's number has ones at its end.
void KernelEmitter::PushBlock(const Reduction& r, Value* stack, Value* block, Value* result) {
  Value* depth = Here().CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, block);
  Value* merges = Here().CreateBinaryIntrinsic(llvm::Intrinsic::cttz, b_.CreateNot(block), b_.getFalse());
  Open loop = OpenLoop({}, I64(0), merges, std::span(&result, 1));
  Value* left = LoadPartial(r, stack, Here().CreateSub(Step(depth, -1), loop.index));
  Value* merged = EmitAccumulate(Here(), r.node.reduce, r.node.dtype, left, loop.carried[0]);
  result = CloseLoop(loop, Step(loop.index, 1), std::span(&merged, 1))[0];
  StorePartial(r, stack, Here().CreateSub(depth, merges), result);
}

llvm::Value* KernelEmitter::FinishBlocks(const Reduction& r, Value* stack, Value* blocks) {
  Value* depth = Here().CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, blocks);
  Value* top = Here().CreateBinaryIntrinsic(llvm::Intrinsic::smax, Step(depth, -1), I64(0));
  Value* result = LoadPartial(r, stack, top);
  Open loop = OpenLoop({}, I64(0), top, std::span(&result, 1));
  Value* left = LoadPartial(r, stack, Here().CreateSub(Step(top, -1), loop.index));
  Value* merged = EmitAccumulate(Here(), r.node.reduce, r.node.dtype, left, loop.carried[0]);
  return CloseLoop(loop, Step(loop.index, 1), std::span(&merged, 1))[0];
}

llvm::Value* KernelEmitter::LoadPartial(const Reduction& r, Value* base, Value* index) {
  llvm::Type* type = WithLanes(MemoryType(context_, r.node.dtype), r.lanes);
  Builder& b = Here();
  return FromMemory(b, r.node.dtype, b.CreateLoad(type, b.CreateGEP(type, base, index)));
}

void KernelEmitter::StorePartial(const Reduction& r, Value* base, Value* index, Value* v) {
  llvm::Type* type = WithLanes(MemoryType(context_, r.node.dtype), r.lanes);
  Builder& b = Here();
  if (r.node.dtype == kBool) v = b.CreateZExt(v, type);
  b.CreateStore(v, b.CreateGEP(type, base, index));
}

}  // namespace sinter::codegen::cpu
