#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/codegen/compile.h"
#include "sinter/eager/tensor.h"
#include "sinter/runtime/executable.h"
#include "sinter/tracer/capture_run.h"
#include "sinter/tracer/differentiable.h"

/// One compiled program of a captured function, and what it is for.
namespace sinter::tracer {

/// State cells by name.
using CellNames = std::vector<std::pair<std::string, Tensor>>;

/// One captured and compiled program.
struct Entry {
  std::string host_key;                                         ///< host arguments
  std::vector<TensorType> types;                                ///< of the arguments
  std::vector<std::pair<std::shared_ptr<const bool>, bool>> flags;  ///< training flags that the capture read
  std::vector<std::pair<ImplPtr, bool>> had_grad;               ///< cells whose gradient the capture asked for, and whether there was one
  std::unique_ptr<Graph> graph;                                 ///< as captured
  std::shared_ptr<const Executable> executable;
  codegen::CompileReport report;
  std::vector<External> externals;                              ///< by state of the graph
  std::vector<std::string> pinned;
  std::vector<FinalGrad> final_grads;
  bool writes_state = false;
  bool calls_backward = false;                                  ///< the function calls backward()
  int num_results = 0;
  std::atomic<int64_t> verified_turns{0};                       ///< of every loop, compared with the function
  int runs = 0;                                                 ///< of the function, to capture it
  double capture_seconds = 0, compile_seconds = 0;
  std::atomic<uint64_t> last_used{0};
  std::atomic<bool> verified{false};                            ///< a call was compared with the eager function
  std::once_flag differentiable_once;
  std::shared_ptr<Differentiable> differentiable;               ///< the graph, for gradients; made when needed
};

/// "float32[n, 4], int64[n]".
std::string TypesText(const std::vector<TensorType>& types);

/// Whether a program takes arguments of these types: its fixed sizes are those of the call, its symbols those of the types.
bool Serves(const Entry& e, const std::vector<TensorType>& types, const DimEnv* sizes);

/// A guard that these sizes break; null if none.
const GuardedCond* FindBroken(const Entry& e, const DimEnv& sizes);

/// Whether the flags and cells that a program was made for are as they were.
bool SameState(const Entry& e);

/// Lines about the program for explain().
std::string DescribeEntry(const Entry& e, size_t number);

}  // namespace sinter::tracer
