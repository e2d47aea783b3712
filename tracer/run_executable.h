#pragma once

#include <span>
#include <vector>

#include "sinter/eager/tensor_impl.h"
#include "sinter/runtime/executable.h"

namespace sinter::tracer {

/// Runs on tensors; outputs are new tensors in the program's layouts. `verified_turns`: as in Executable::Run.
std::vector<ImplPtr> RunExecutable(const Executable& executable, std::span<TensorImpl* const> inputs, int64_t verified_turns = 0);

}  // namespace sinter::tracer
