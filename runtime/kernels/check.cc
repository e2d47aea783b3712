#include "sinter/runtime/kernels/check.h"

#include "sinter/graph/ops/check.h"

namespace sinter::kernels {
namespace {

bool AllHold(const TensorView& v, int dim, const bool* at) {
  if (dim == v.rank()) return *at;
  for (int64_t i = 0; i < v.sizes[dim]; ++i)
    if (!AllHold(v, dim + 1, at + i * v.strides[dim])) return false;
  return true;
}

void RunChecked(const OpDef&, const AttrBox* attrs, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (!AllHold(in[1], 0, static_cast<const bool*>(in[1].data))) throw Error(ErrorCode::kOutOfRange, attrs->As<ops::Checked::Attrs>().message);
  CopyView(in[0], out[0]);
}

}  // namespace

std::vector<KernelRow> CheckKernels() { return {{&DefOf<ops::Checked>(), {.run = RunChecked}}}; }

}  // namespace sinter::kernels
