#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sinter/codegen/kernel.h"
#include "sinter/graph/dim.h"

namespace sinter::eager {

/// A kernel ready to run on concrete sizes. Its symbols are those of SizeSymbol.
class OpKernel {
 public:
  /// `symbols` is the number of size symbols that the kernel may use: SizeSymbol(0) .. SizeSymbol(symbols - 1).
  OpKernel(const codegen::Kernel& kernel, int symbols);

  /// Runs the whole kernel, on several threads when it is large. `values[i]` is the value of SizeSymbol(i).
  void Run(void* const* buffers, std::span<const int64_t> values) const;

 private:
  int64_t Evaluate(const Dim& d, std::span<const int64_t> values) const;

  std::shared_ptr<const codegen::CompiledKernel> code_;
  std::vector<Dim> sizes_;
  std::vector<int> symbol_of_size_;  // the symbol that a size is, or -1
  Dim points_, work_, scratch_;
  int points_symbol_ = -1;
  bool constant_work_ = false;
};

/// The i-th of a fixed sequence of symbols (any value >= 0) that all kernels of single ops share.
Dim SizeSymbol(int i);

}  // namespace sinter::eager
