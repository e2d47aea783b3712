#pragma once

#include <llvm/IR/IRBuilder.h>

#include "sinter/graph/expr.h"

/// The scalar and vector forms of every arithmetic node as LLVM instructions. Operands may be scalars or vectors alike; all operands of
/// one call have the same number of lanes. Storage types are integers in registers (f16 and bf16: i16, i8 and u8: i8), bool is i1.
namespace sinter::codegen::cpu {

/// The register type of one lane.
llvm::Type* LaneType(llvm::LLVMContext& context, DType t);
/// The type of one lane in memory: as in registers, but a bool is a byte.
llvm::Type* MemoryType(llvm::LLVMContext& context, DType t);
/// `scalar` itself, or a vector of `lanes` of it (0: scalar).
llvm::Type* WithLanes(llvm::Type* scalar, int lanes);
/// The lanes of a value, 0 for a scalar.
int LanesOf(const llvm::Value* v);

/// A constant of type `t` in every lane.
llvm::Constant* ConstantOf(llvm::LLVMContext& context, DType t, uint64_t bits, int lanes);

using Builder = llvm::IRBuilder<>;

/// `t` is the type of the operands.
llvm::Value* EmitUnary(Builder& b, ExprKind kind, DType t, llvm::Value* x);
llvm::Value* EmitBinary(Builder& b, ExprKind kind, DType t, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitFma(Builder& b, llvm::Value* x, llvm::Value* y, llvm::Value* z);
llvm::Value* EmitConvert(Builder& b, DType from, DType to, llvm::Value* x);
llvm::Value* EmitBitcast(Builder& b, DType to, llvm::Value* x);
/// Replaces NaNs by the canonical one.
llvm::Value* EmitCanonicalNan(Builder& b, DType t, llvm::Value* x);
/// acc (op) value of a reduction other than kContract.
llvm::Value* EmitAccumulate(Builder& b, ReduceKind kind, DType t, llvm::Value* acc, llvm::Value* value);

}  // namespace sinter::codegen::cpu
