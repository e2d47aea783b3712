#pragma once

#include <span>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/runtime/tensor_view.h"

/// Kernels written by hand for ops where a special algorithm beats the element rule. They give the bits that
/// the rule gives.
namespace sinter::kernels {

/// `out` has the sizes that the shape rule says, in the layout that was asked for. Thread-safe.
using StructuredFn = void (*)(const OpDef& op, const AttrBox* attrs, std::span<const TensorView> in,
                              std::span<const TensorView> out);

enum class OutputLayout : uint8_t {
  kRowMajor,
  kChannelsLast,  ///< of rank 3 and more: dimension 1 innermost
};

struct StructuredKernel {
  StructuredFn run = nullptr;
  /// Whether it does this call; null: always. What it declines, the decomposition or the element rule does.
  bool (*supports)(const OpDef& op, const AttrBox* attrs, std::span<const TensorView> in) = nullptr;
  OutputLayout layout = OutputLayout::kRowMajor;
};

/// A row of a family's table, as in `{&DefOf<ops::Matmul>(), {.run = RunMatmul}}`.
struct KernelRow {
  const OpDef* op;
  StructuredKernel kernel;
};

/// Every kernel of Sinter; families are listed in all_kernels.cc.
std::vector<KernelRow> BuiltinKernels();
/// Null where an op has none.
const StructuredKernel* FindKernel(const OpDef& op);
/// Adds or replaces the kernel of an op; for programs with ops of their own, before the op is first used.
void RegisterKernel(const OpDef& op, StructuredKernel kernel);

}  // namespace sinter::kernels
