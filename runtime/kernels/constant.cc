#include "sinter/runtime/kernels/constant.h"

#include <cstring>

#include "sinter/graph/ops/constant.h"

namespace sinter::kernels {
namespace {

void RunConstant(const OpDef&, const AttrBox* attrs, std::span<const TensorView>,
                 std::span<const TensorView> out) {
  const TensorLiteral& v = attrs->As<ops::Constant::Attrs>().value;
  const size_t bytes = static_cast<size_t>(out[0].numel()) * ItemSize(v.dtype);
  SINTER_CHECK(bytes == 0 || (v.bytes && v.bytes->size() == bytes), "a constant's bytes don't fit its shape");
  if (bytes > 0) std::memcpy(out[0].data, v.bytes->data(), bytes);
}

}  // namespace

std::vector<KernelRow> ConstantKernels() { return {{&DefOf<ops::Constant>(), {.run = RunConstant}}}; }

}  // namespace sinter::kernels
