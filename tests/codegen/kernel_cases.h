#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "sinter/codegen/kernel.h"

/// Kernels written by hand, over one size n: what every executor of kernels is tested with.
namespace sinter::codegen::testing {

struct KernelCase {
  std::string name;
  std::function<Kernel(Dim n)> make;
};

inline void PrintTo(const KernelCase& c, std::ostream* os) { *os << c.name; }

std::vector<KernelCase> AllKernelCases();

}  // namespace sinter::codegen::testing
