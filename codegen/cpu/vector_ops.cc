#include "sinter/codegen/cpu/vector_ops.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Intrinsics.h>

#include "sinter/graph/error.h"

namespace sinter::codegen::cpu {
namespace {

using llvm::Value;

llvm::Constant* Int(Value* like, int64_t v) { return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(v), true); }

Value* Not(Builder& b, Value* x) { return b.CreateXor(x, Int(x, -1)); }

// The divisor as a constant other than 0 and -1, for which the machine's division is defined.
bool IsSafeDivisor(Value* y) {
  auto* c = llvm::dyn_cast<llvm::Constant>(y);
  if (c == nullptr) return false;
  if (c->getType()->isVectorTy()) c = c->getSplatValue();
  auto* i = llvm::dyn_cast_or_null<llvm::ConstantInt>(c);
  return i != nullptr && !i->isZero() && !i->isMinusOne();
}

struct Division {
  Value* quotient;
  Value* remainder;
};

// Truncating division with x / 0 = 0, x % 0 = x, and wrapping of the least number by -1.
Division Divide(Builder& b, Value* x, Value* y, bool need_quotient, bool need_remainder) {
  Division d{nullptr, nullptr};
  if (IsSafeDivisor(y)) {
    if (need_quotient) d.quotient = b.CreateSDiv(x, y);
    if (need_remainder) d.remainder = b.CreateSRem(x, y);
    return d;
  }
  Value* zero = b.CreateICmpEQ(y, Int(y, 0));
  Value* minus = b.CreateICmpEQ(y, Int(y, -1));
  Value* safe = b.CreateSelect(b.CreateOr(zero, minus), Int(y, 1), y);
  if (need_quotient) {
    Value* q = b.CreateSDiv(x, safe);
    q = b.CreateSelect(minus, b.CreateNeg(x), q);
    d.quotient = b.CreateSelect(zero, Int(y, 0), q);
  }
  if (need_remainder) {
    // x % 1 is 0, which is the remainder by -1 too.
    d.remainder = b.CreateSelect(zero, x, b.CreateSRem(x, safe));
  }
  return d;
}

// Whether rounding to minus infinity differs from truncation: the remainder is not 0 and has the other sign than the divisor.
Value* RoundsDown(Builder& b, Value* remainder, Value* y) {
  Value* differs = b.CreateICmpSLT(b.CreateXor(remainder, y), Int(y, 0));
  Value* inexact = b.CreateICmpNE(remainder, Int(y, 0));
  Value* defined = b.CreateICmpNE(y, Int(y, 0));
  return b.CreateAnd(b.CreateAnd(differs, inexact), defined);
}

Value* FloorDiv(Builder& b, Value* x, Value* y) {
  Division d = Divide(b, x, y, true, true);
  return b.CreateAdd(d.quotient, b.CreateSExt(RoundsDown(b, d.remainder, y), y->getType()));
}

Value* FloorMod(Builder& b, Value* x, Value* y) {
  Division d = Divide(b, x, y, false, true);
  return b.CreateAdd(d.remainder, b.CreateSelect(RoundsDown(b, d.remainder, y), y, Int(y, 0)));
}

Value* ShiftAmount(Builder& b, Value* y) { return b.CreateAnd(y, Int(y, y->getType()->getScalarSizeInBits() - 1)); }

[[noreturn]] void Unknown(ExprKind kind, DType t) {
  SINTER_CHECK(false, "no such operation: kind " + std::to_string(static_cast<int>(kind)) + " of " + std::string(DTypeName(t)));
  __builtin_unreachable();
}

Value* FloatBinary(Builder& b, ExprKind kind, DType t, Value* x, Value* y) {
  switch (kind) {
    case ExprKind::kAdd: return b.CreateFAdd(x, y);
    case ExprKind::kSub: return b.CreateFSub(x, y);
    case ExprKind::kMul: return b.CreateFMul(x, y);
    case ExprKind::kDiv: return b.CreateFDiv(x, y);
    case ExprKind::kMin: return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, y);
    case ExprKind::kMax: return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, y);
    case ExprKind::kLt: return b.CreateFCmpOLT(x, y);
    case ExprKind::kLe: return b.CreateFCmpOLE(x, y);
    case ExprKind::kEq: return b.CreateFCmpOEQ(x, y);
    case ExprKind::kNe: return b.CreateFCmpUNE(x, y);
    default: Unknown(kind, t);
  }
}

Value* BoolBinary(Builder& b, ExprKind kind, DType t, Value* x, Value* y) {
  switch (kind) {
    case ExprKind::kAnd: case ExprKind::kMin: case ExprKind::kMul: return b.CreateAnd(x, y);
    case ExprKind::kOr: case ExprKind::kMax: case ExprKind::kAdd: return b.CreateOr(x, y);
    case ExprKind::kXor: case ExprKind::kNe: return b.CreateXor(x, y);
    case ExprKind::kEq: return Not(b, b.CreateXor(x, y));
    case ExprKind::kLt: return b.CreateAnd(Not(b, x), y);
    case ExprKind::kLe: return b.CreateOr(Not(b, x), y);
    default: Unknown(kind, t);
  }
}

Value* IntBinary(Builder& b, ExprKind kind, DType t, Value* x, Value* y) {
  switch (kind) {
    case ExprKind::kAdd: return b.CreateAdd(x, y);
    case ExprKind::kSub: return b.CreateSub(x, y);
    case ExprKind::kMul: return b.CreateMul(x, y);
    case ExprKind::kDiv: return Divide(b, x, y, true, false).quotient;
    case ExprKind::kRem: return Divide(b, x, y, false, true).remainder;
    case ExprKind::kFloorDiv: return FloorDiv(b, x, y);
    case ExprKind::kFloorMod: return FloorMod(b, x, y);
    case ExprKind::kMin: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
    case ExprKind::kMax: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
    case ExprKind::kAnd: return b.CreateAnd(x, y);
    case ExprKind::kOr: return b.CreateOr(x, y);
    case ExprKind::kXor: return b.CreateXor(x, y);
    case ExprKind::kShl: return b.CreateShl(x, ShiftAmount(b, y));
    case ExprKind::kShr: return b.CreateAShr(x, ShiftAmount(b, y));
    case ExprKind::kShrLogical: return b.CreateLShr(x, ShiftAmount(b, y));
    case ExprKind::kLt: return b.CreateICmpSLT(x, y);
    case ExprKind::kLe: return b.CreateICmpSLE(x, y);
    case ExprKind::kEq: return b.CreateICmpEQ(x, y);
    case ExprKind::kNe: return b.CreateICmpNE(x, y);
    default: Unknown(kind, t);
  }
}

Value* IsNan(Builder& b, Value* x) { return b.CreateFCmpUNO(x, x); }

// f64 to f32 such that a further rounding to a half gives what one rounding of the f64 would: inexact results get an odd last bit.
Value* RoundToOdd(Builder& b, Value* x) {
  const int lanes = LanesOf(x);
  llvm::LLVMContext& c = b.getContext();
  llvm::Type* f32 = WithLanes(b.getFloatTy(), lanes);
  llvm::Type* i32 = WithLanes(b.getInt32Ty(), lanes);
  Value* f = b.CreateFPTrunc(x, f32);
  Value* back = b.CreateFPExt(f, x->getType());
  Value* inexact = b.CreateFCmpONE(back, x);
  Value* away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* bits = b.CreateBitCast(f, i32);
  Value* odd = b.CreateOr(b.CreateAdd(bits, b.CreateSExt(away, i32)), ConstantOf(c, kInt32, 1, lanes));
  return b.CreateBitCast(b.CreateSelect(inexact, odd, bits), f32);
}

Value* FloatToHalf(Builder& b, Value* x) {
  const int lanes = LanesOf(x);
  Value* half = b.CreateBitCast(b.CreateFPTrunc(x, WithLanes(b.getHalfTy(), lanes)), WithLanes(b.getInt16Ty(), lanes));
  return b.CreateSelect(IsNan(b, x), ConstantOf(b.getContext(), DType::kFloat16, CanonicalNan(kFloat16), lanes), half);
}

Value* FloatToBFloat16(Builder& b, Value* x) {
  const int lanes = LanesOf(x);
  Value* bits = b.CreateBitCast(x, WithLanes(b.getInt32Ty(), lanes));
  Value* odd = b.CreateAnd(b.CreateLShr(bits, Int(bits, 16)), Int(bits, 1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, Int(bits, 0x7fff)), odd), Int(bits, 16));
  Value* upper = b.CreateTrunc(rounded, WithLanes(b.getInt16Ty(), lanes));
  return b.CreateSelect(IsNan(b, x), ConstantOf(b.getContext(), DType::kBFloat16, CanonicalNan(kBFloat16), lanes), upper);
}

Value* Widen(Builder& b, DType from, Value* x) {
  const int lanes = LanesOf(x);
  if (from == kFloat16) return b.CreateFPExt(b.CreateBitCast(x, WithLanes(b.getHalfTy(), lanes)), WithLanes(b.getFloatTy(), lanes));
  Value* wide = b.CreateZExt(x, WithLanes(b.getInt32Ty(), lanes));
  return b.CreateBitCast(b.CreateShl(wide, Int(wide, 16)), WithLanes(b.getFloatTy(), lanes));
}

Value* FromFloat(Builder& b, DType from, DType to, Value* x) {
  const int lanes = LanesOf(x);
  auto saturate = [&](DType t) {
    llvm::Type* type = WithLanes(LaneType(b.getContext(), t), lanes);
    return b.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, x->getType()}, {x});
  };
  switch (to) {
    case DType::kFloat32: return from == kFloat32 ? x : b.CreateFPTrunc(x, WithLanes(b.getFloatTy(), lanes));
    case DType::kFloat64: return from == kFloat64 ? x : b.CreateFPExt(x, WithLanes(b.getDoubleTy(), lanes));
    case DType::kFloat16: return FloatToHalf(b, from == kFloat64 ? RoundToOdd(b, x) : x);
    case DType::kBFloat16: return FloatToBFloat16(b, from == kFloat64 ? RoundToOdd(b, x) : x);
    case DType::kInt32: return saturate(kInt32);
    case DType::kInt64: return saturate(kInt64);
    case DType::kInt8:
    case DType::kUInt8: {
      Value* wide = saturate(kInt32);
      wide = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide, llvm::ConstantInt::getSigned(wide->getType(), to == kInt8 ? -128 : 0));
      wide = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, wide, llvm::ConstantInt::getSigned(wide->getType(), to == kInt8 ? 127 : 255));
      return b.CreateTrunc(wide, WithLanes(b.getInt8Ty(), lanes));
    }
    case DType::kBool: return b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));
  }
  Unknown(ExprKind::kConvert, to);
}

Value* FromInteger(Builder& b, DType from, DType to, Value* x) {
  const int lanes = LanesOf(x);
  const bool is_unsigned = from == kBool || from == kUInt8;
  auto floating = [&](llvm::Type* t) {
    t = WithLanes(t, lanes);
    return is_unsigned ? b.CreateUIToFP(x, t) : b.CreateSIToFP(x, t);
  };
  switch (to) {
    case DType::kFloat32: return floating(b.getFloatTy());
    case DType::kFloat64: return floating(b.getDoubleTy());
    // Through f32: integers below 2^24 are exact there, and larger ones overflow a half or keep 8 bits of a bf16.
    case DType::kFloat16: return FloatToHalf(b, floating(b.getFloatTy()));
    case DType::kBFloat16: return FloatToBFloat16(b, floating(b.getFloatTy()));
    case DType::kBool: return b.CreateICmpNE(x, Int(x, 0));
    default: {
      llvm::Type* t = WithLanes(LaneType(b.getContext(), to), lanes);
      return is_unsigned ? b.CreateZExtOrTrunc(x, t) : b.CreateSExtOrTrunc(x, t);
    }
  }
}

}  // namespace

llvm::Type* LaneType(llvm::LLVMContext& context, DType t) {
  switch (t) {
    case DType::kFloat32: return llvm::Type::getFloatTy(context);
    case DType::kFloat64: return llvm::Type::getDoubleTy(context);
    case DType::kFloat16:
    case DType::kBFloat16: return llvm::Type::getInt16Ty(context);
    case DType::kInt8:
    case DType::kUInt8: return llvm::Type::getInt8Ty(context);
    case DType::kInt32: return llvm::Type::getInt32Ty(context);
    case DType::kInt64: return llvm::Type::getInt64Ty(context);
    case DType::kBool: return llvm::Type::getInt1Ty(context);
  }
  return nullptr;
}

llvm::Type* MemoryType(llvm::LLVMContext& context, DType t) {
  return t == kBool ? llvm::Type::getInt8Ty(context) : LaneType(context, t);
}

llvm::Type* WithLanes(llvm::Type* scalar, int lanes) {
  return lanes == 0 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

int LanesOf(const llvm::Value* v) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t == nullptr ? 0 : static_cast<int>(t->getNumElements());
}

llvm::Constant* ConstantOf(llvm::LLVMContext& context, DType t, uint64_t bits, int lanes) {
  llvm::Type* type = LaneType(context, t);
  llvm::Constant* c;
  if (type->isFloatTy()) {
    c = llvm::ConstantFP::get(type, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits & 0xffffffffu)));
  } else if (type->isDoubleTy()) {
    c = llvm::ConstantFP::get(type, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  } else {
    const unsigned width = type->getIntegerBitWidth();
    c = llvm::ConstantInt::get(type, width == 64 ? bits : bits & ((uint64_t{1} << width) - 1));
  }
  return lanes == 0 ? c : llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes)), c);
}

llvm::Value* EmitUnary(Builder& b, ExprKind kind, DType t, llvm::Value* x) {
  const bool floating = IsFloating(t);
  auto intrinsic = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x); };
  switch (kind) {
    case ExprKind::kNeg: return floating ? b.CreateFNeg(x) : b.CreateNeg(x);
    case ExprKind::kAbs: return floating ? intrinsic(llvm::Intrinsic::fabs) : b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());
    case ExprKind::kNot: return Not(b, x);
    case ExprKind::kFloor: return intrinsic(llvm::Intrinsic::floor);
    case ExprKind::kCeil: return intrinsic(llvm::Intrinsic::ceil);
    case ExprKind::kTrunc: return intrinsic(llvm::Intrinsic::trunc);
    case ExprKind::kRound: return intrinsic(llvm::Intrinsic::roundeven);
    case ExprKind::kSqrt: return intrinsic(llvm::Intrinsic::sqrt);
    case ExprKind::kIsNan: return IsNan(b, x);
    default: Unknown(kind, t);
  }
}

llvm::Value* EmitBinary(Builder& b, ExprKind kind, DType t, llvm::Value* x, llvm::Value* y) {
  if (t == kBool) return BoolBinary(b, kind, t, x, y);
  return IsFloating(t) ? FloatBinary(b, kind, t, x, y) : IntBinary(b, kind, t, x, y);
}

llvm::Value* EmitFma(Builder& b, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

llvm::Value* EmitConvert(Builder& b, DType from, DType to, llvm::Value* x) {
  if (from == to) return x;
  if (from == kFloat16 || from == kBFloat16) return EmitConvert(b, kFloat32, to, Widen(b, from, x));
  return IsFloating(from) ? FromFloat(b, from, to, x) : FromInteger(b, from, to, x);
}

llvm::Value* EmitBitcast(Builder& b, DType to, llvm::Value* x) {
  return b.CreateBitCast(x, WithLanes(LaneType(b.getContext(), to), LanesOf(x)));
}

llvm::Value* EmitCanonicalNan(Builder& b, DType t, llvm::Value* x) {
  if (t != kFloat32 && t != kFloat64) return x;
  return b.CreateSelect(IsNan(b, x), ConstantOf(b.getContext(), t, CanonicalNan(t), LanesOf(x)), x);
}

llvm::Value* EmitAccumulate(Builder& b, ReduceKind kind, DType t, llvm::Value* acc, llvm::Value* value) {
  switch (kind) {
    case ReduceKind::kSum: return EmitBinary(b, ExprKind::kAdd, t, acc, value);
    case ReduceKind::kProd: return EmitBinary(b, ExprKind::kMul, t, acc, value);
    case ReduceKind::kMax: return EmitBinary(b, ExprKind::kMax, t, acc, value);
    case ReduceKind::kMin: return EmitBinary(b, ExprKind::kMin, t, acc, value);
    case ReduceKind::kAny: return EmitBinary(b, ExprKind::kOr, t, acc, value);
    case ReduceKind::kAll: return EmitBinary(b, ExprKind::kAnd, t, acc, value);
    case ReduceKind::kContract: break;
  }
  SINTER_CHECK(false, "contractions accumulate by fma");
  __builtin_unreachable();
}

}  // namespace sinter::codegen::cpu
