#pragma once

#include <cstdint>

#include "sinter/graph/expr.h"

/// The interpreter's loops over lanes. Slots hold up to kLanes values of their type, densely.
namespace sinter::codegen {

inline constexpr int kLanes = 256;
/// Loops over slots run to the next multiple of this; what they compute beyond the last lane is never looked
/// at.
inline constexpr int kLaneStep = 16;
/// Bytes from slot to slot. Not a power of two: slots at the same offset of a page would be taken for one
/// another by the CPU's check of loads against earlier stores.
inline constexpr int kSlotBytes = kLanes * 8 + 128;

constexpr int RoundLanes(int n) { return (n + kLaneStep - 1) / kLaneStep * kLaneStep; }

/// out = op(a, b, c) for `n` lanes, a multiple of kLaneStep. `out` may be one of the operands. Operands that
/// an operation doesn't have are ignored.
using LaneFn = void (*)(const void* a, const void* b, const void* c, void* out, int n);

/// The loop of an arithmetic node (unary, binary, ternary; not kConvert) on operands of type `t`; for kSelect
/// the type of the choices.
LaneFn LaneOp(ExprKind kind, DType t);
/// The loop of kConvert.
LaneFn LaneConversion(DType from, DType to);
/// The loop that combines two partial results of a reduction (not kContract).
LaneFn LaneCombine(ReduceKind kind, DType t);
/// The bits of a reduction's identity (kContract and kSum differ: +0 and -0).
uint64_t ReduceIdentity(ReduceKind kind, DType t);

/// out[i] = bits, for exactly `n` elements.
void LaneFill(DType t, uint64_t bits, void* out, int n);
/// out[i] = from[i * stride], exactly.
void LaneLoad(DType t, const void* from, int64_t stride, void* out, int n);
/// The same, with 0 where the predicate is false, without reading there.
void LaneLoadIf(DType t, const void* from, int64_t stride, const uint8_t* predicate, void* out, int n);
/// out[i] = from[offset[i]]; without a predicate (null) all are read.
void LaneGather(DType t, const void* from, const int64_t* offset, const uint8_t* predicate, void* out, int n);
/// to[i * stride] = value[i], every NaN as the canonical one; `value` of a half type has canonical NaNs
/// already.
void LaneStore(DType t, void* to, int64_t stride, const void* value, int n);
void LaneScatter(DType t, void* to, const int64_t* offset, const void* value, int n);

}  // namespace sinter::codegen
