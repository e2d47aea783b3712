#include "sinter/eager/compute.h"

#include "sinter/graph/strings.h"
#include "sinter/runtime/kernels/registry.h"

namespace sinter::eager {
namespace {

TensorView ViewOf(const TensorImpl& t) { return {t.data(), t.dtype, t.shape, t.strides}; }

absl::InlinedVector<TensorView, 4> ViewsOf(Operands in) {
  absl::InlinedVector<TensorView, 4> views;
  for (const TensorImpl* t : in) views.push_back(ViewOf(*t));
  return views;
}

Shape LayoutStrides(const Shape& shape, kernels::OutputLayout layout) {
  if (layout == kernels::OutputLayout::kRowMajor) return RowMajorStrides(shape);
  return DenseStrides(shape, ChannelsLastOrder(static_cast<int>(shape.size())));
}

void ComputeStructured(const kernels::StructuredKernel& kernel, const OpDef& op, const AttrPtr& attrs,
                       Operands in, Results& out) {
  absl::InlinedVector<TensorView, 2> results;
  for (const ConcreteType& t : TypesOf(op, attrs, in)) {
    out.push_back(NewTensor(t.dtype, t.shape, LayoutStrides(t.shape, kernel.layout)));
    results.push_back(ViewOf(*out.back()));
  }
  kernel.run(op, op.AttrsOrDefault(attrs).get(), ViewsOf(in), results);
}

// The operand's memory under the op's view rule; null where that can't be.
ImplPtr TryView(const OpDef& op, const AttrPtr& attrs, const TensorImpl& in, const ConcreteType& type) {
  ViewCtx c{op.AttrsOrDefault(attrs).get(), in.shape, in.strides, type.shape, {}, 0};
  if (!op.view(c)) return nullptr;
  ImplPtr out = NewAlias(in, type.shape, std::move(c.out_strides), in.offset + c.out_offset);
  out->is_view = true;
  return out;
}

void ComputeView(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  auto types = TypesOf(op, attrs, in);
  ImplPtr view = TryView(op, attrs, *in[0], types[0]);
  if (!view) {  // of a packed copy then
    ImplPtr packed = RowMajor(ImplPtr(in[0]));
    if (packed.get() != in[0]) view = TryView(op, attrs, *packed, types[0]);
    if (view) view->is_view = false;
  }
  if (view)
    out.push_back(std::move(view));
  else
    ComputeElements(op, attrs, in, types, out);
}

const kernels::StructuredKernel* FindStructured(const OpDef& op, const AttrPtr& attrs, Operands in) {
  const kernels::StructuredKernel* kernel = kernels::FindKernel(op);
  if (kernel == nullptr || kernel->supports == nullptr) return kernel;
  return kernel->supports(op, op.AttrsOrDefault(attrs).get(), ViewsOf(in)) ? kernel : nullptr;
}

}  // namespace

absl::InlinedVector<ConcreteType, 2> TypesOf(const OpDef& op, const AttrPtr& attrs, Operands in) {
  absl::InlinedVector<ConcreteType, 3> types;
  for (const TensorImpl* t : in) types.push_back(t->type());
  return InferTypes(op, std::span<const ConcreteType>(types), attrs);
}

bool HasStructuredKernel(const OpDef& op, const AttrPtr& attrs, Operands in) {
  return FindStructured(op, attrs, in) != nullptr;
}

void Compute(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  if (op.kind == OpKind::kPointwise) {
    out.push_back(ComputePointwise(op, attrs, in));
    return;
  }
  if (op.view && in.size() == 1) return ComputeView(op, attrs, in, out);
  if (const kernels::StructuredKernel* kernel = FindStructured(op, attrs, in))
    return ComputeStructured(*kernel, op, attrs, in, out);
  auto types = TypesOf(op, attrs, in);
  if (!op.element)
    throw Error(ErrorCode::kUnimplemented,
                StrCat(op.name,
                       ": there is no way to compute this op here (operand types aren't "
                       "supported by its kernel); convert the operands to float32"));
  ComputeElements(op, attrs, in, types, out);
}

}  // namespace sinter::eager
