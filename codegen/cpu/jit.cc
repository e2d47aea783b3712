#include "sinter/codegen/cpu/jit.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <mutex>

#include "sinter/codegen/cpu/emit_llvm.h"
#include "sinter/graph/error.h"

namespace sinter::codegen::cpu {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

std::string CpuName(const CpuTarget& target) { return target.avx512 ? "x86-64-v4" : "x86-64-v3"; }

template <class T>
T Must(llvm::Expected<T> value, const char* what) {
  if (!value) SINTER_CHECK(false, std::string(what) + ": " + llvm::toString(value.takeError()));
  return std::move(*value);
}

std::unique_ptr<llvm::TargetMachine> MachineFor(const CpuTarget& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  const llvm::Target* x86 = llvm::TargetRegistry::lookupTarget(kTriple, error);
  SINTER_CHECK(x86 != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // Constants are linked next to the code: the small model reaches them.
  return std::unique_ptr<llvm::TargetMachine>(x86->createTargetMachine(kTriple, CpuName(target), "", options, llvm::Reloc::PIC_,
                                                                       llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

struct Unit {
  explicit Unit(const llvm::TargetMachine& machine) {
    module.setDataLayout(machine.createDataLayout());
    module.setTargetTriple(kTriple);
  }
  llvm::LLVMContext context;
  llvm::Module module{"kernel", context};
};

// The linker of this process; lives as long as it.
struct Linker {
  Linker() : session(Must(llvm::orc::SelfExecutorProcessControl::Create(), "cannot start the linker")), layer(session) {
    session.setErrorReporter([](llvm::Error e) { llvm::consumeError(std::move(e)); });  // lookups report what went wrong
  }
  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer layer;
  std::atomic<int64_t> objects = 0;
};

Linker& ProcessLinker() {
  static Linker* linker = new Linker;
  return *linker;
}

class Loaded final : public LoadedObject {
 public:
  explicit Loaded(std::string_view object) {
    Linker& linker = ProcessLinker();
    library_ = &linker.session.createBareJITDylib("kernel" + std::to_string(linker.objects++));
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, "kernel");
    llvm::Error added = linker.layer.add(*library_, std::move(buffer));
    if (added) Fail(std::move(added));
    auto symbol = linker.session.lookup({library_}, kKernelSymbol);
    if (!symbol) Fail(symbol.takeError());
    function = symbol->getAddress().toPtr<KernelFn>();
  }
  ~Loaded() override { Unload(); }

 private:
  void Unload() { llvm::consumeError(ProcessLinker().session.removeJITDylib(*library_)); }
  [[noreturn]] void Fail(llvm::Error e) {
    const std::string text = llvm::toString(std::move(e));
    Unload();
    SINTER_CHECK(false, "cannot link a kernel: " + text);
    __builtin_unreachable();
  }
  llvm::orc::JITDylib* library_ = nullptr;
};

}  // namespace

std::string TargetName(const CpuTarget& target) { return CpuName(target) + " llvm " LLVM_VERSION_STRING; }

std::string CompileToObject(const Kernel& kernel, const CpuTarget& target) {
  std::unique_ptr<llvm::TargetMachine> machine = MachineFor(target);
  Unit unit(*machine);
  EmitKernel(kernel, target.width, kKernelSymbol, unit.module);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  SINTER_CHECK(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(unit.module);
  return {object.data(), object.size()};
}

std::string KernelLlvmText(const Kernel& kernel, const CpuTarget& target) {
  std::unique_ptr<llvm::TargetMachine> machine = MachineFor(target);
  Unit unit(*machine);
  EmitKernel(kernel, target.width, kKernelSymbol, unit.module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  unit.module.print(stream, nullptr);
  return text;
}

std::shared_ptr<const LoadedObject> LoadObject(std::string_view object) { return std::make_shared<Loaded>(object); }

}  // namespace sinter::codegen::cpu
