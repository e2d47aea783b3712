#pragma once

#include <cstdint>
#include <optional>

#include "sinter/graph/expr.h"

/// Evaluation of expression nodes on constants, bit for bit as the executors do. Nothing where a kind isn't folded.
namespace sinter {

std::optional<uint64_t> FoldUnary(ExprKind kind, DType t, uint64_t a);
std::optional<uint64_t> FoldBinary(ExprKind kind, DType t, uint64_t a, uint64_t b);
std::optional<uint64_t> FoldConvert(DType from, DType to, uint64_t a);

}  // namespace sinter
