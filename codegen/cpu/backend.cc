#include "sinter/codegen/cpu/backend.h"

#include <cstdlib>
#include <string_view>

#include "sinter/codegen/cpu/compile_kernel.h"

namespace sinter::codegen {

KernelBackend CpuBackend() {
  static const bool interpret = [] {
    const char* v = std::getenv("SINTER_INTERPRET");
    return v != nullptr && std::string_view(v) == "1";
  }();
  if (interpret) return InterpretKernel;
  return [](const Kernel& k) { return CompileCpuKernel(k); };
}

}  // namespace sinter::codegen
