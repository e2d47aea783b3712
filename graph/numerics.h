#pragma once

namespace sinter {

/// The length, in contracted values, of one block of a contraction. Each output element of a matrix product
/// or a convolution is defined as follows, on every device: the contracted index runs in the order that the
/// op states and is cut into blocks of this length; within a block, a chain `acc = fma(a, b, acc)` starts at
/// +0; the sums of the blocks are added in order, ((block0 + block1) + block2) ... An empty contraction gives
/// 0. The accumulator is f32 for f16, bf16 and f32, f64 for f64, and a wrapping i32 for integers. Results
/// depend on this number: it never changes.
inline constexpr int kContractionBlock = 256;

/// The tree of every other reduction (see ReduceKind): value r of R belongs to block r / kReduceBlock and
/// there to lane r % kReduceLanes. These numbers never change either.
inline constexpr int kReduceLanes = 16;
inline constexpr int kReduceBlock = 1024;

}  // namespace sinter
