#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sinter/codegen/cpu/compile_kernel.h"

/// Object code from kernels, and its way into this process.
namespace sinter::codegen::cpu {

/// "x86-64-v3" or "x86-64-v4", and the version of LLVM: part of what identifies cached code.
std::string TargetName(const CpuTarget& target);

/// The relocatable object of a kernel, with the one symbol kKernelSymbol.
std::string CompileToObject(const Kernel& kernel, const CpuTarget& target);
inline constexpr char kKernelSymbol[] = "sinter_kernel";

/// The textual LLVM code of a kernel, for people.
std::string KernelLlvmText(const Kernel& kernel, const CpuTarget& target);

/// Code in memory; it is unloaded when the last reference goes.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  KernelFn function = nullptr;
};

/// Links an object into the process. It sees no symbols of the process: code that calls into a library is an InternalError.
std::shared_ptr<const LoadedObject> LoadObject(std::string_view object);

}  // namespace sinter::codegen::cpu
