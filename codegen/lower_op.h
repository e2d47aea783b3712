#pragma once

#include <span>
#include <vector>

#include "sinter/codegen/kernel.h"
#include "sinter/graph/op.h"
#include "sinter/runtime/strides.h"

namespace sinter::codegen {

/// The kernel that computes result `output` of one op by its element rule. Buffer i is operand i, the last
/// buffer is the result; `in_orders` and `out_order` are their layouts (KernelBuffer::order). Sizes may be
/// symbolic. The loops run over the result in its memory order and are all parallel; lanes run over the last
/// one, or, where a reduction runs along neighbouring memory of an operand, over the reduction.
Kernel KernelFromOp(const OpDef& op, const AttrPtr& attrs, std::span<const TensorType> in,
                    std::span<const TensorType> out, std::span<const std::vector<int>> in_orders,
                    const std::vector<int>& out_order, int output = 0);

/// Number of values that the reductions of an expression combine for one element (1 without a reduction):
/// what one point of a kernel costs.
Dim ReductionSize(const Expr& e);

/// Whether the innermost variable of a reduction in `e` walks along unit stride of some loaded buffer.
bool ReducesAlongMemory(const Expr& e, std::span<const KernelBuffer> buffers);

}  // namespace sinter::codegen
