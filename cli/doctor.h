#pragma once

#include <string>

namespace sinter {

/// What was found on this machine (CPU, cache folder, CUDA toolkit, driver, GPU; why CUDA is not used), and whether a matrix product with
/// its gradient computes the same interpreted and compiled.
struct CheckResult {
  bool ok = false;
  std::string report;
};
CheckResult run_check();

}  // namespace sinter
