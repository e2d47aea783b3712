#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/graph/expr.h"
#include "sinter/graph/type.h"
#include "sinter/runtime/compiled_kernel.h"

/// Kernel IR: what one launch computes, as loops with symbolic extents over scalar expressions. The interpreter runs it, the LLVM
/// emitter and the CUDA emitter print it; all three give the same bits.
///
/// A kernel is an outer domain (parallel: its points may run in any order and on any thread) and a list of stages. For one
/// outer point the stages run in order; a stage runs over its own inner domain and stores values. A stage may load what an
/// earlier stage of the same outer point stored into a `kLocal` or an output buffer at positions of that outer point.
namespace sinter::codegen {

enum class BufferRole : uint8_t { kInput, kOutput, kLocal /* of one outer point, in scratch memory */ };

/// A dense buffer: sizes by logical dimension, laid out with dimension order.back() innermost (unit stride).
struct KernelBuffer {
  DType dtype = DType::kFloat32;
  SymShape shape;
  std::vector<int> order;  ///< permutation of the dimensions, outermost first; {0, 1, ...} is row-major
  BufferRole role = BufferRole::kInput;
};

struct KernelStore {
  int buffer = 0;
  std::vector<Expr> position;  ///< logical, i64
  Expr value;                  ///< in ComputeType(buffer dtype); converted on the way to memory, NaN made canonical
};

/// Where vector lanes run in a stage.
enum class VectorAxis : uint8_t {
  kInner,      ///< over the last inner loop variable
  kOuter,      ///< over the last outer loop variable (the inner domain is then serial)
  kReduction,  ///< over the innermost variable of the stage's reductions, 16 lanes as the reduction tree has them
  kNone,
};

struct KernelStage {
  std::vector<LoopVar> inner;       ///< loops inside the outer domain, outermost first; may be empty
  std::vector<KernelStore> stores;  ///< evaluated at every inner point; calls are expanded (no kCall)
  VectorAxis vector = VectorAxis::kInner;
};

struct Kernel {
  std::string name;                   ///< for people and profiles; not part of the content
  std::vector<KernelBuffer> buffers;  ///< index = the number in kLoad and KernelStore
  std::vector<LoopVar> outer;         ///< outermost first; may be empty (one point)
  std::vector<KernelStage> stages;
  std::vector<std::string> sources;   ///< user lines of the nodes inside, for #line and profiles; not part of the content

  /// Distinct non-constant sizes that the kernel's code needs at run time, in a fixed order: the `sizes` argument of KernelFn.
  std::vector<Dim> RuntimeSizes() const;
  /// Printable form: the content that caches hash. Loop variables, symbols and buffers are renumbered by first use, so that
  /// equal kernels print the same whatever their names.
  std::string ToString() const;
};

/// Signature of compiled CPU kernels. `buffers[i]` points to the data of buffer i (kLocal: null); `sizes` are the values of
/// RuntimeSizes(); [begin, end) is the part of the flattened outer domain to do (row-major; one point if it is empty);
/// `scratch` holds the kLocal buffers of one outer point (ScratchBytes), 64-byte aligned. Thread-safe.
using KernelFn = void (*)(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch);

/// Bytes of scratch that the kLocal buffers need for one outer point, as a size expression: each is rounded up to 64.
Dim ScratchBytes(const Kernel& kernel);
/// Number of points of the outer domain.
Dim OuterPoints(const Kernel& kernel);

/// Checks positions against ranks, dtypes, that kLocal loads follow their stores, and that no kCall is left.
void VerifyKernel(const Kernel& kernel);

using sinter::CompiledKernel;

/// Interprets the kernel's expressions on tiles of lanes. No code is generated: ready at once, and the oracle for the emitters.
std::shared_ptr<const CompiledKernel> InterpretKernel(const Kernel& kernel);

}  // namespace sinter::codegen
