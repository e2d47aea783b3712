#include "sinter/codegen/cpu/emit_llvm.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "sinter/codegen/cpu/emitter.h"
#include "sinter/graph/error.h"

namespace sinter::codegen::cpu {

llvm::Function* EmitKernel(const Kernel& kernel, int width, const std::string& name, llvm::Module& module) {
  VerifyKernel(kernel);
  Products products;
  const Kernel merged = MergeLoops(kernel, products);
  KernelEmitter emitter(merged, kernel.RuntimeSizes(), std::move(products), width, module);
  llvm::Function* function = emitter.Run(name);
#ifndef NDEBUG
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  if (llvm::verifyFunction(*function, &stream)) SINTER_CHECK(false, "invalid code for " + kernel.name + ": " + stream.str());
#endif
  return function;
}

}  // namespace sinter::codegen::cpu
