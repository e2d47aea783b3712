#pragma once

#include <cstdint>

#include "sinter/graph/expr.h"

/// The interpreter's loops over lanes. Slots hold kLanes values of their type, densely.
namespace sinter::codegen {

inline constexpr int kLanes = 256;
inline constexpr int kSlotBytes = kLanes * 8;

/// Computes `n` lanes of a unary, binary or ternary node; `t` is the operands' type.
void LaneUnary(ExprKind kind, DType t, const void* a, void* out, int n);
void LaneBinary(ExprKind kind, DType t, const void* a, const void* b, void* out, int n);
void LaneFma(DType t, const void* a, const void* b, const void* c, void* out, int n);
void LaneSelect(DType t, const void* condition, const void* a, const void* b, void* out, int n);
void LaneConvert(DType from, DType to, const void* a, void* out, int n);
/// Replaces NaNs by the canonical one.
void LaneCanonicalNan(DType t, void* a, int n);
void LaneFill(DType t, uint64_t bits, void* out, int n);
/// out[i] = base[offset[i]], by elements of t; lanes with a false predicate (if given) get 0 and are not read.
void LaneGather(DType t, const void* base, const int64_t* offset, const uint8_t* predicate, void* out, int n);
void LaneScatter(DType t, void* base, const int64_t* offset, const void* value, int n);
/// acc = acc (op) value by lane.
void LaneAccumulate(ReduceKind kind, DType t, void* acc, const void* value, int n);
/// The bits of a reduction's identity (kContract and kSum differ: +0 and -0).
uint64_t ReduceIdentity(ReduceKind kind, DType t);

}  // namespace sinter::codegen
