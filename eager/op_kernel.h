#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/kernel.h"
#include "sinter/graph/dim.h"

namespace sinter::eager {

/// Kernels of single ops are interpreted at first; those that have done some work are made anew by this
/// backend. Initially codegen::CpuBackend(); an empty one leaves them interpreted. Kernels that exist keep
/// what they have.
void SetKernelBackend(codegen::KernelBackend backend);

/// A kernel ready to run on concrete sizes. Its symbols are those of SizeSymbol.
class OpKernel {
 public:
  /// `symbols` is the number of size symbols that the kernel may use: SizeSymbol(0) .. SizeSymbol(symbols -
  /// 1).
  OpKernel(const codegen::Kernel& kernel, int symbols);

  /// Runs the whole kernel, on several threads when it is large. `values[i]` is the value of SizeSymbol(i).
  void Run(void* const* buffers, std::span<const int64_t> values) const;

 private:
  int64_t Evaluate(const Dim& d, std::span<const int64_t> values) const;

  const CompiledKernel& Code(int64_t work) const;

  codegen::Kernel kernel_;
  std::shared_ptr<const CompiledKernel> interpreted_;
  mutable std::once_flag promote_;
  mutable std::shared_ptr<const CompiledKernel> promoted_;    // written once, under promote_
  mutable std::atomic<const CompiledKernel*> code_{nullptr};  // the one to run
  mutable std::atomic<int64_t> work_done_{0};
  std::vector<Dim> sizes_;
  std::vector<int> symbol_of_size_;  // the symbol that a size is, or -1
  Dim points_, work_, scratch_;
  int points_symbol_ = -1;
  bool constant_work_ = false;
};

/// The i-th of a fixed sequence of symbols (any value >= 0) that all kernels of single ops share.
Dim SizeSymbol(int i);

}  // namespace sinter::eager
