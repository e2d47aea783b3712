#include "sinter/codegen/cpu/emitter.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "sinter/graph/error.h"

namespace sinter::codegen::cpu {

KernelEmitter::KernelEmitter(const Kernel& kernel, std::vector<Dim> sizes, Products products, int width, llvm::Module& module)
    : k_(kernel),
      sizes_(std::move(sizes)),
      products_(std::move(products)),
      width_(width),
      module_(module),
      context_(module.getContext()),
      b_(module.getContext()) {
  for (const KernelBuffer& buffer : k_.buffers) {
    strides_.push_back(Strides(buffer));
    Dim stride = 1;
    for (size_t i = buffer.order.size(); i-- > 0;) {
      const Dim size = buffer.shape[buffer.order[i]];
      products_.emplace(size * stride, std::pair(size, stride));
      stride *= size;
    }
  }
}

llvm::Function* KernelEmitter::Run(const std::string& name) {
  llvm::Type* ptr = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::FunctionType* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, i64, i64, ptr}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  entry_ = llvm::BasicBlock::Create(context_, "entry", function_);
  Push({}, entry_);

  Value* local = function_->getArg(4);
  outer_lanes_ = AllStagesOuter();
  const int lanes = LaneCount(k_.stages);
  for (size_t i = 0; i < k_.buffers.size(); ++i) {
    const KernelBuffer& buffer = k_.buffers[i];
    lane_locals_.push_back(nullptr);
    if (buffer.role != BufferRole::kLocal) {
      bases_.push_back(Here().CreateLoad(ptr, b_.CreateConstGEP1_64(ptr, function_->getArg(0), i)));
      continue;
    }
    bases_.push_back(local);
    if (outer_lanes_) {
      lane_locals_.back() = Alloca(WithLanes(MemoryType(context_, buffer.dtype), lanes), "local");
    } else {
      Value* bytes = I64(ItemSize(buffer.dtype));
      for (Dim d : buffer.shape) {
        Value* size = SizeValue(d);
        bytes = Here().CreateMul(bytes, size);
      }
      bytes = Here().CreateAnd(Step(bytes, 63), I64(-64));
      local = b_.CreateGEP(b_.getInt8Ty(), local, bytes);
    }
  }
  OuterDomain();
  Here().CreateRetVoid();
  Pop();
  return function_;
}

Builder& KernelEmitter::At(size_t depth) {
  b_.SetInsertPoint(chain_[depth]->block);
  return b_;
}

KernelEmitter::Level& KernelEmitter::Push(std::vector<int> vars, llvm::BasicBlock* block) {
  for (int v : vars) depth_of_var_[v] = chain_.size();
  chain_.push_back(std::make_unique<Level>());
  chain_.back()->vars = std::move(vars);
  chain_.back()->block = block;
  return *chain_.back();
}

void KernelEmitter::Pop() {
  for (int v : chain_.back()->vars) depth_of_var_.erase(v);
  chain_.pop_back();
}

KernelEmitter::Open KernelEmitter::OpenLoop(std::vector<int> vars, Value* start, Value* end, std::span<Value* const> carried) {
  Open loop;
  loop.first = llvm::BasicBlock::Create(context_, "loop", function_);
  loop.exit = llvm::BasicBlock::Create(context_, "after");
  loop.condition = Here().CreateICmpSLT(start, end);
  loop.end = end;
  loop.initial.push_back(start);
  loop.initial.insert(loop.initial.end(), carried.begin(), carried.end());
  b_.SetInsertPoint(loop.first);
  loop.index = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
  for (Value* c : carried) loop.carried.push_back(b_.CreatePHI(c->getType(), 2));
  Push(std::move(vars), loop.first);
  return loop;
}

std::vector<llvm::Value*> KernelEmitter::CloseLoop(Open& loop, Value* next, std::span<Value* const> carried) {
  Builder& b = Here();
  b.CreateCondBr(b.CreateICmpSLT(next, loop.end), loop.first, loop.exit);
  llvm::BasicBlock* last = chain_.back()->block;
  Pop();
  llvm::BasicBlock* before = chain_.back()->block;
  Here().CreateCondBr(loop.condition, loop.first, loop.exit);
  loop.index->addIncoming(loop.initial[0], before);
  loop.index->addIncoming(next, last);
  function_->insert(function_->end(), loop.exit);
  chain_.back()->block = loop.exit;
  std::vector<Value*> results;
  for (size_t i = 0; i < carried.size(); ++i) {
    loop.carried[i]->addIncoming(loop.initial[i + 1], before);
    loop.carried[i]->addIncoming(carried[i], last);
    llvm::PHINode* after = Here().CreatePHI(carried[i]->getType(), 2);
    after->addIncoming(loop.initial[i + 1], before);
    after->addIncoming(carried[i], last);
    results.push_back(after);
  }
  return results;
}

KernelEmitter::Open KernelEmitter::OpenBlock(Value* condition, std::vector<int> vars) {
  Open block;
  block.first = llvm::BasicBlock::Create(context_, "block", function_);
  block.condition = condition;
  if (condition != nullptr) block.exit = llvm::BasicBlock::Create(context_, "after");
  Push(std::move(vars), block.first);
  return block;
}

std::vector<llvm::Value*> KernelEmitter::CloseBlock(Open& block, std::span<Value* const> inside, std::span<Value* const> outside) {
  llvm::BasicBlock* last = chain_.back()->block;
  Pop();
  llvm::BasicBlock* before = chain_.back()->block;
  if (block.condition == nullptr) {
    Here().CreateBr(block.first);
    chain_.back()->block = last;
    return {inside.begin(), inside.end()};
  }
  Here().CreateCondBr(block.condition, block.first, block.exit);
  b_.SetInsertPoint(last);
  b_.CreateBr(block.exit);
  function_->insert(function_->end(), block.exit);
  chain_.back()->block = block.exit;
  std::vector<Value*> results;
  for (size_t i = 0; i < inside.size(); ++i) {
    llvm::PHINode* phi = Here().CreatePHI(inside[i]->getType(), 2);
    phi->addIncoming(inside[i], last);
    phi->addIncoming(outside[i], before);
    results.push_back(phi);
  }
  return results;
}

llvm::Value* KernelEmitter::Alloca(llvm::Type* type, const llvm::Twine& name, int64_t count) {
  llvm::IRBuilder<> b(entry_, entry_->begin());
  llvm::AllocaInst* a = b.CreateAlloca(type, count == 1 ? nullptr : I64(count), name);
  return a;
}

bool KernelEmitter::HasSizeValue(Dim d) const {
  return d.is_const() || products_.contains(d) || std::find(sizes_.begin(), sizes_.end(), d) != sizes_.end();
}

llvm::Value* KernelEmitter::SizeValue(Dim d) {
  if (d.is_const()) return I64(d.value());
  if (auto it = size_values_.find(d); it != size_values_.end()) return it->second;
  Value* v;
  if (auto it = std::find(sizes_.begin(), sizes_.end(), d); it != sizes_.end()) {
    Value* at = At(0).CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(1), static_cast<uint64_t>(it - sizes_.begin()));
    v = b_.CreateLoad(b_.getInt64Ty(), at);
  } else {
    auto product = products_.find(d);
    SINTER_CHECK(product != products_.end(), "a size that the kernel doesn't get: " + d.ToString());
    Value* a = SizeValue(product->second.first);
    Value* c = SizeValue(product->second.second);
    v = At(0).CreateMul(a, c);
  }
  size_values_.emplace(d, v);
  return v;
}

const KernelEmitter::Lanes* KernelEmitter::ActiveLanes() const {
  for (size_t i = chain_.size(); i-- > 0;)
    if (chain_[i]->lanes) return &*chain_[i]->lanes;
  return nullptr;
}

}  // namespace sinter::codegen::cpu
