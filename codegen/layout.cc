#include "sinter/codegen/fusion.h"
#include "sinter/codegen/lower_op.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/runtime/kernels/registry.h"
#include "sinter/runtime/strides.h"

// Memory orders: structured kernels say what they produce; everything else follows its first operand of the same rank.
namespace sinter::codegen {
namespace {

std::vector<int> OrderOf(const Node& n, const Value& v, const Layouts& layouts, const FusionOptions& options) {
  const int rank = v.type.rank();
  if (rank < 3) return RowMajorOrder(rank);
  if (const kernels::StructuredKernel* k = kernels::FindKernel(*n.op); k != nullptr && n.op->kind == OpKind::kContraction) {
    const bool images = rank == 4 && k->layout == kernels::OutputLayout::kChannelsLast;
    return images ? ChannelsLastOrder(rank) : RowMajorOrder(rank);
  }
  if (IsStructured(n, options) || n.op->kind == OpKind::kView || n.op->kind == OpKind::kReduce) return RowMajorOrder(rank);
  for (const Value* in : n.inputs) {
    if (in->type.rank() != rank) continue;
    if (n.op->kind == OpKind::kPointwise && in->type.shape != v.type.shape) continue;
    return layouts.at(in);
  }
  return RowMajorOrder(rank);
}

void Visit(const Block& block, Layouts& layouts, const FusionOptions& options) {
  for (const auto& p : block.params)
    if (!layouts.contains(p.get())) layouts[p.get()] = RowMajorOrder(p->type.rank());
  for (const auto& n : block.nodes) {
    if (n->op->kind == OpKind::kControlFlow) {
      for (const auto& r : n->regions) Visit(*r, layouts, options);
      for (const auto& o : n->outputs) layouts[o.get()] = RowMajorOrder(o->type.rank());
      continue;
    }
    for (const auto& o : n->outputs) layouts[o.get()] = OrderOf(*n, *o, layouts, options);
  }
}

}  // namespace

bool IsStructured(const Node& n, const FusionOptions& options) {
  if (n.op->kind == OpKind::kControlFlow) return false;
  if (!n.op->element) return true;
  if (n.op->kind == OpKind::kConstant) return &DefOf<ops::Constant>() == n.op && NumElements(n.outputs[0]->type.shape) != Dim(1);
  if (n.op->kind != OpKind::kContraction || options.contractions_as_kernels) return false;
  const kernels::StructuredKernel* k = kernels::FindKernel(*n.op);
  if (k == nullptr) return false;
  if (k->supports == nullptr) return true;
  // What it supports depends on types, not on sizes: asked with empty tensors.
  const int64_t zeros[kMaxRank] = {};
  std::vector<TensorView> views;
  for (const Value* v : n.inputs)
    views.push_back({nullptr, v->type.dtype, {zeros, static_cast<size_t>(v->type.rank())}, {zeros, static_cast<size_t>(v->type.rank())}});
  return k->supports(*n.op, n.op->AttrsOrDefault(n.attrs).get(), views);
}

Layouts AssignLayouts(const Graph& graph, const FusionOptions& options) {
  Layouts layouts;
  Visit(graph.body, layouts, options);
  return layouts;
}

}  // namespace sinter::codegen
