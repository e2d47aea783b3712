#pragma once

#include <span>

#include "absl/container/inlined_vector.h"
#include "sinter/eager/tensor_impl.h"
#include "sinter/graph/op.h"

/// Carries out one op on concrete cells: values only, no tape.
namespace sinter::eager {

using Results = absl::InlinedVector<ImplPtr, 2>;
using Operands = std::span<TensorImpl* const>;

/// Any op that is not a composite, or a composite for which HasStructuredKernel holds. Wrong operands are an
/// Error.
void Compute(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out);
/// Whether a kernel written by hand takes the whole call.
bool HasStructuredKernel(const OpDef& op, const AttrPtr& attrs, Operands in);

/// A pointwise op. The result has the layout of the first operand of its shape. `into`, if given, has the
/// result's type and receives it; it may be one of the operands.
ImplPtr ComputePointwise(const OpDef& op, const AttrPtr& attrs, Operands in, TensorImpl* into = nullptr);
/// Any op with an element rule; `types` are the results'.
void ComputeElements(const OpDef& op, const AttrPtr& attrs, Operands in, std::span<const ConcreteType> types,
                     Results& out);

/// The values of `t` as another element type.
ImplPtr Converted(const TensorImpl& t, DType dtype);
/// Result types of a call on concrete cells.
absl::InlinedVector<ConcreteType, 2> TypesOf(const OpDef& op, const AttrPtr& attrs, Operands in);

}  // namespace sinter::eager
