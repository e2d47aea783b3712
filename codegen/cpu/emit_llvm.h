#pragma once

#include <string>

#include "sinter/codegen/kernel.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace sinter::codegen::cpu {

/// Part of what identifies cached machine code: raised whenever the code that is emitted for a kernel changes.
inline constexpr int kEmitterVersion = 1;

/// Adds a function with the signature of KernelFn to `module`, whose data layout must be set. `width` is the number of lanes of the
/// vectors that the code is made of (a multiple of 8); results don't depend on it. Throws InternalError for a malformed kernel.
llvm::Function* EmitKernel(const Kernel& kernel, int width, const std::string& name, llvm::Module& module);

}  // namespace sinter::codegen::cpu
