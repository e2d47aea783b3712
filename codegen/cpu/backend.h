#pragma once

#include "sinter/codegen/compile.h"

namespace sinter::codegen {

/// The kernels of this machine's CPU: compiled by LLVM; with SINTER_INTERPRET=1 interpreted.
KernelBackend CpuBackend();

}  // namespace sinter::codegen
