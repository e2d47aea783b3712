#include "sinter/runtime/kernels/check.h"
#include "sinter/runtime/kernels/constant.h"
#include "sinter/runtime/kernels/contraction_kernels.h"
#include "sinter/runtime/kernels/registry.h"

namespace sinter::kernels {

std::vector<KernelRow> BuiltinKernels() {
  std::vector<KernelRow> rows;
  for (auto family : {CheckKernels, ConstantKernels, ContractionKernels}) {
    std::vector<KernelRow> more = family();
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace sinter::kernels
