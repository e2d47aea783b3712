#include "sinter/codegen/lower_op.h"

namespace sinter::codegen {
namespace {

// Operands are loads from the buffers of the same number.
class LoadCtx final : public ElementCtx {
 public:
  using ElementCtx::ElementCtx;
  Expr In(int i, std::span<const Expr> position) override {
    return Computed(Expr::Load(i, in[i].dtype, Positions(position)));
  }
  Expr InIf(int i, std::span<const Expr> position, Expr predicate) override {
    return Computed(Expr::LoadIf(i, in[i].dtype, Positions(position), std::move(predicate)));
  }

 private:
  static std::vector<Expr> Positions(std::span<const Expr> p) { return {p.begin(), p.end()}; }
  static Expr Computed(Expr load) {
    const DType t = ComputeType(load.dtype());
    return Expr::Convert(std::move(load), t);
  }
};

}  // namespace

Dim ReductionSize(const Expr& e) {
  Dim size = 1;
  bool found = false;
  ForEachExpr(e, [&](const Expr& n) {
    if (n.kind() != ExprKind::kReduce) return;
    Dim product = 1;
    for (const LoopVar& v : n->loops) product = product * v.extent;
    size = found ? size + product : product;
    found = true;
  });
  return size;
}

bool ReducesAlongMemory(const Expr& e, std::span<const KernelBuffer> buffers) {
  bool along = false;
  ForEachExpr(e, [&](const Expr& reduce) {
    if (reduce.kind() != ExprKind::kReduce || reduce->reduce == ReduceKind::kContract || reduce->loops.empty())
      return;
    const int innermost = reduce->loops.back().id;
    for (const Expr& arg : reduce->args) {
      ForEachExpr(arg, [&](const Expr& load) {
        if (load.kind() != ExprKind::kLoad || buffers[load->index].order.empty()) return;
        const Expr& last = load->args[buffers[load->index].order.back()];
        along |= last.kind() == ExprKind::kIndex && last->index == innermost;
      });
    }
  });
  return along;
}

Kernel KernelFromOp(const OpDef& op, const AttrPtr& attrs, std::span<const TensorType> in,
                    std::span<const TensorType> out, std::span<const std::vector<int>> in_orders,
                    const std::vector<int>& out_order, int output) {
  SINTER_CHECK(op.element, "no element rule for " + op.name);
  Kernel k;
  k.name = op.name;
  for (size_t i = 0; i < in.size(); ++i)
    k.buffers.push_back({in[i].dtype, in[i].shape, in_orders[i], BufferRole::kInput});
  const TensorType& result = out[output];
  k.buffers.push_back({result.dtype, result.shape, out_order, BufferRole::kOutput});

  std::vector<Expr> at(result.rank(), I64(0));
  for (int d : out_order) {
    if (IsOne(result.shape[d])) continue;
    k.outer.push_back({FreshIndex(), result.shape[d]});
    at[d] = Expr::Index(k.outer.back().id);
  }
  const AttrPtr& given = op.AttrsOrDefault(attrs);
  LoadCtx ctx(op, given, in, out, output, at);
  Expr value = ExpandCalls(Expr::Convert(op.element(ctx), ComputeType(result.dtype)));

  KernelStage stage;
  stage.vector = ReducesAlongMemory(value, k.buffers) ? VectorAxis::kReduction : VectorAxis::kOuter;
  stage.stores.push_back({static_cast<int>(in.size()), at, std::move(value)});
  k.stages.push_back(std::move(stage));
  return k;
}

}  // namespace sinter::codegen
