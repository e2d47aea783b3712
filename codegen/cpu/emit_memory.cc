#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "sinter/codegen/cpu/emitter.h"
#include "sinter/graph/error.h"

// Loads and stores: offsets, and how the lanes of one access lie in memory.
namespace sinter::codegen::cpu {

// The offset of a position in elements, as a sum whose terms that change rarely come first, so that their sum is computed rarely too.
Expr KernelEmitter::Offset(int buffer, std::span<const Expr> position) {
  std::vector<Expr> terms;
  auto add = [&](auto& self, const Expr& e, const Expr& scale) -> void {
    if (e.kind() == ExprKind::kAdd) {
      self(self, e->args[0], scale);
      self(self, e->args[1], scale);
    } else if (e.kind() == ExprKind::kMul && AsSize(e->args[1])) {
      self(self, e->args[0], Expr::Binary(ExprKind::kMul, scale, e->args[1]));
    } else if (e.kind() == ExprKind::kMul && AsSize(e->args[0])) {
      self(self, e->args[1], Expr::Binary(ExprKind::kMul, scale, e->args[0]));
    } else {
      terms.push_back(Expr::Binary(ExprKind::kMul, e, scale));
    }
  };
  for (size_t d = 0; d < position.size(); ++d) add(add, position[d], Expr::Size(strides_[buffer][d]));
  std::vector<std::pair<size_t, Expr>> by_depth;
  for (Expr& t : terms) {
    const size_t depth = Depth(t);
    by_depth.emplace_back(depth, std::move(t));
  }
  std::stable_sort(by_depth.begin(), by_depth.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Expr sum = Expr::ConstInt(kInt64, 0);
  for (const auto& [depth, t] : by_depth) sum = Expr::Binary(ExprKind::kAdd, sum, t);
  keep_.push_back(sum);
  return sum;
}

llvm::Value* KernelEmitter::Address(Builder& b, int buffer, Value* offset) {
  return b.CreateGEP(MemoryType(context_, k_.buffers[buffer].dtype), bases_[buffer], offset);
}

llvm::Value* KernelEmitter::FromMemory(Builder& b, DType t, Value* v) {
  return t == kBool ? b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

llvm::Value* KernelEmitter::ScalarLoad(const ExprNode& load, size_t depth) {
  const size_t rank = load.args.size() - load.predicated;
  const int buffer = load.index;
  SINTER_CHECK(lane_locals_[buffer] == nullptr, "a local value by lane is read as one");
  Value* offset = Scalar(Offset(buffer, {load.args.data(), rank}));
  Value* predicate = load.predicated ? Scalar(load.args.back()) : nullptr;
  Builder& b = At(depth);
  Value* address = Address(b, buffer, offset);
  // Where the predicate is false, a zero is read from elsewhere: no branch.
  if (predicate != nullptr) address = b.CreateSelect(predicate, address, Zeros());
  const DType t = load.dtype;
  return FromMemory(b, t, b.CreateAlignedLoad(MemoryType(context_, t), address, llvm::Align(ItemSize(t))));
}

llvm::Value* KernelEmitter::Zeros() {
  if (zeros_ == nullptr) {
    llvm::Type* type = WithLanes(b_.getInt64Ty(), kMaxLanes);
    zeros_ = Alloca(type, "zeros");
    llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(zeros_)->getNextNode());
    b.CreateStore(llvm::Constant::getNullValue(type), zeros_);
  }
  return zeros_;
}

std::optional<Dim> KernelEmitter::LaneStep(const Expr& offset) {
  std::optional<Dim> step = Coefficient(offset, ActiveLanes()->var);
  return step && HasSizeValue(*step) ? step : std::nullopt;
}

llvm::Value* KernelEmitter::Addresses(int buffer, const Expr& offset, size_t depth) {
  const Lanes* lanes = ActiveLanes();
  const std::optional<Dim> step = LaneStep(offset);
  Value* offsets;
  if (step) {
    Value* base = Scalar(offset);
    Value* by = SizeValue(*step);
    Builder& b = At(depth);
    if (step->is_const()) {
      offsets = b.CreateAdd(b.CreateVectorSplat(lanes->count, base), Iota(lanes->count, step->value()));
    } else {
      offsets = b.CreateAdd(b.CreateVectorSplat(lanes->count, base), b.CreateMul(b.CreateVectorSplat(lanes->count, by), Iota(lanes->count)));
    }
  } else {
    offsets = Vector(offset);
  }
  return Address(At(depth), buffer, offsets);
}

llvm::Value* KernelEmitter::VectorLoad(const ExprNode& load, size_t depth) {
  const size_t rank = load.args.size() - load.predicated;
  const int buffer = load.index;
  const DType t = load.dtype;
  const Lanes* lanes = ActiveLanes();
  llvm::Type* type = WithLanes(MemoryType(context_, t), lanes->count);
  if (lane_locals_[buffer] != nullptr) return FromMemory(At(depth), t, At(depth).CreateLoad(type, lane_locals_[buffer]));

  const Expr offset = Offset(buffer, {load.args.data(), rank});
  const std::optional<Dim> step = LaneStep(offset);
  const bool contiguous = step && *step == Dim(1);
  const bool one_predicate = load.predicated && contiguous && !VariesByLane(load.args.back());
  const llvm::Align align(ItemSize(t));
  Value* predicate = load.predicated ? (one_predicate ? Scalar(load.args.back()) : Vector(load.args.back())) : nullptr;
  Value* zero = llvm::Constant::getNullValue(type);
  if (contiguous) {
    Value* base = Scalar(offset);
    Builder& b = At(depth);
    Value* address = Address(b, buffer, base);
    if (one_predicate) address = b.CreateSelect(predicate, address, Zeros());
    return ForLanes(depth, [&](Builder& at, Value* mask) -> Value* {
      if (predicate != nullptr && !one_predicate) mask = mask == nullptr ? predicate : at.CreateAnd(mask, predicate);
      Value* v = mask == nullptr ? static_cast<Value*>(at.CreateAlignedLoad(type, address, align)) : at.CreateMaskedLoad(type, address, align, mask, zero);
      return FromMemory(at, t, v);
    });
  }
  Value* addresses = Addresses(buffer, offset, depth);
  return ForLanes(depth, [&](Builder& at, Value* mask) {
    if (predicate != nullptr) mask = mask == nullptr ? predicate : at.CreateAnd(mask, predicate);
    return FromMemory(at, t, at.CreateMaskedGather(type, addresses, align, mask, zero));
  });
}

llvm::Value* KernelEmitter::ForLanes(size_t depth, const std::function<Value*(Builder&, Value* mask)>& access) {
  const Lanes* lanes = ActiveLanes();
  if (lanes->whole == nullptr) return access(At(depth), lanes->mask);
  llvm::BasicBlock* all = llvm::BasicBlock::Create(context_, "all", function_);
  llvm::BasicBlock* some = llvm::BasicBlock::Create(context_, "some", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", function_);
  At(depth).CreateCondBr(lanes->whole, all, some, llvm::MDBuilder(context_).createBranchWeights(1000, 1));
  b_.SetInsertPoint(all);
  Value* v = access(b_, nullptr);
  b_.CreateBr(after);
  b_.SetInsertPoint(some);
  Value* mask = b_.CreateICmpSLT(Iota(lanes->count), b_.CreateVectorSplat(static_cast<unsigned>(lanes->count), lanes->left));
  Value* w = access(b_, mask);
  b_.CreateBr(after);
  chain_[depth]->block = after;
  if (v->getType()->isVoidTy()) return nullptr;
  llvm::PHINode* phi = At(depth).CreatePHI(v->getType(), 2);
  phi->addIncoming(v, all);
  phi->addIncoming(w, some);
  return phi;
}

void KernelEmitter::Store(const KernelStore& store, Value* value) {
  const DType t = k_.buffers[store.buffer].dtype;
  const Lanes* lanes = ActiveLanes();
  Builder& convert = Here();
  value = EmitConvert(convert, ComputeType(t), t, value);
  value = EmitCanonicalNan(convert, t, value);
  if (t == kBool) value = convert.CreateZExt(value, WithLanes(b_.getInt8Ty(), LanesOf(value)));
  if (lane_locals_[store.buffer] != nullptr) {
    convert.CreateStore(value, lane_locals_[store.buffer]);
    return;
  }
  const Expr offset = Offset(store.buffer, store.position);
  const llvm::Align align(ItemSize(t));
  if (lanes == nullptr) {
    Value* at = Scalar(offset);
    Builder& b = Here();
    b.CreateAlignedStore(value, Address(b, store.buffer, at), align);
    return;
  }
  const std::optional<Dim> step = LaneStep(offset);
  if (!step || !(*step == Dim(1))) {
    Value* addresses = Addresses(store.buffer, offset, Top());
    ForLanes(Top(), [&](Builder& b, Value* mask) { return b.CreateMaskedScatter(value, addresses, align, mask); });
    return;
  }
  Value* at = Scalar(offset);
  Value* address = Address(Here(), store.buffer, at);
  ForLanes(Top(), [&](Builder& b, Value* mask) -> Value* {
    if (mask == nullptr) return b.CreateAlignedStore(value, address, align);
    return b.CreateMaskedStore(value, address, align, mask);
  });
}

}  // namespace sinter::codegen::cpu
