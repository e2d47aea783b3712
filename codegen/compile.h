#pragma once

#include <functional>
#include <memory>

#include "sinter/codegen/fusion.h"
#include "sinter/graph/graph.h"
#include "sinter/runtime/executable.h"

namespace sinter::codegen {

/// Makes a kernel runnable: the interpreter, LLVM, a CUDA device.
using KernelBackend = std::function<std::shared_ptr<const CompiledKernel>(const Kernel&)>;

struct CompileOptions {
  FusionOptions fusion;
  KernelBackend backend;            ///< required
  bool unverified_trips = true;     ///< loops may pass the turns that were verified at capture
  /// Called with every kernel, in order: for dumps and for targets that only emit.
  std::function<void(const FusedKernel&)> on_kernel;
};

struct CompileReport {
  int nodes = 0;            ///< of the decomposed graph
  int kernels = 0;
  int structured = 0;
  std::vector<FusionRefusal> refusals;
  std::vector<std::string> claims;   ///< nodes that a library may do
};

/// Lowers a graph (decomposed and optimised already, see Optimize) to an executable: fuses, plans memory, compiles kernels. The
/// inputs of the executable are the graph's parameters, its outputs the graph's results.
std::shared_ptr<const Executable> Compile(const Graph& graph, const CompileOptions& options, CompileReport* report = nullptr);

/// The interpreter as an executable: one kernel per node, no code generation.
std::shared_ptr<const Executable> CompileInterpreted(const Graph& graph);

}  // namespace sinter::codegen
