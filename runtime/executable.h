#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/runtime/compiled_kernel.h"
#include "sinter/runtime/kernels/registry.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/tensor_view.h"

/// A compiled program: a flat list of steps over buffers whose sizes are expressions.
namespace sinter {

/// Memory of one value. Dense, dimension order.back() innermost.
struct PlanBuffer {
  enum class Home : uint8_t {
    kInput,     ///< an argument or a state, given by the caller; `index` among the inputs
    kOutput,    ///< a result, given by the caller; `index` among the outputs
    kConstant,  ///< `index` among the constants
    kArena,     ///< an intermediate; lives from step `first_use` to step `last_use`
  };
  TensorType type;
  std::vector<int> order;
  Home home = Home::kArena;
  int index = 0;
  int first_use = 0, last_use = 0;
};

/// One step. Steps run in order, except for jumps.
struct PlanStep {
  enum class Kind : uint8_t {
    kKernel,      ///< a compiled kernel over `buffers`
    kStructured,  ///< a structured kernel of the runtime: `inputs` operands of `buffers`, then results
    kCopy,        ///< buffers[0] to buffers[1], of one type, whatever the layouts
    kJump,        ///< to step `target`
    kJumpUnless,  ///< to step `target` unless the bool in buffers[0] holds
    kCountTurn,   ///< a loop head: Error when it runs more than `trip_limit` times in one call (0: no limit)
  } kind = Kind::kKernel;
  std::vector<int> buffers;
  // kKernel
  std::shared_ptr<const CompiledKernel> kernel;
  std::vector<Dim> sizes;   ///< the kernel's run-time sizes
  Dim points = 1;           ///< of the outer domain
  Dim work_per_point = 1;   ///< element operations, for splitting among threads
  Dim scratch_bytes = 0;
  // kStructured
  const OpDef* op = nullptr;
  AttrPtr attrs;
  kernels::StructuredFn structured = nullptr;
  int inputs = 0;
  // jumps
  int target = 0;
  int64_t trip_limit = 0;
  std::string name;      ///< of the ops inside, for profiles
  std::string location;  ///< the user's line
};

/// A plan that no one has run yet: what the compiler makes.
struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  std::vector<TensorLiteral> constants;
  std::vector<int> inputs;                 ///< buffer of each argument and state
  std::vector<std::string> input_names;
  std::vector<int> outputs;                ///< buffer of each output and written state
  std::vector<DimCond> guards;
  std::vector<std::string> guard_messages;
};

/// A loop ran more turns than were verified at capture. Nothing was written but outputs.
class TripLimit : public Error {
 public:
  using Error::Error;
};

/// Sizes that break a guard of the program: it was made for others. Nothing was run.
class BrokenGuard : public Error {
 public:
  using Error::Error;
};

struct StepProfile {
  std::string name;
  std::string location;
  double seconds = 0;
};

/// Immutable; Run may be called from many threads at once. Steady state (a shape signature seen before, outputs lent by the caller)
/// takes no lock and allocates nothing.
class Executable {
 public:
  explicit Executable(Plan plan);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Plan& plan() const { return plan_; }
  int num_inputs() const { return static_cast<int>(plan_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(plan_.outputs.size()); }

  /// Sizes of symbols from the sizes of inputs: wrong rank, dtype, fixed size or inconsistent symbols are an Error that names the
  /// input; broken guards too.
  DimEnv Bind(std::span<const TensorView> inputs) const;
  /// Shape and memory order of output i under an assignment.
  ConcreteType OutputType(int i, const DimEnv& env) const;
  const std::vector<int>& OutputOrder(int i) const { return plan_.buffers[plan_.outputs[i]].order; }

  struct ShapePlan;
  /// What depends on the inputs' types alone: found again without work for sizes that were seen before.
  class Prepared {
   public:
    const Shape& OutputSizes(int i) const;
    /// In the layout of OutputOrder.
    const Shape& OutputStrides(int i) const;

   private:
    friend class Executable;
    const Executable* executable_ = nullptr;
    const ShapePlan* plan_ = nullptr;
    std::shared_ptr<const ShapePlan> owned_;
  };
  /// Checks the inputs as Bind does.
  Prepared Prepare(std::span<const TensorView> inputs) const;
  void Run(const Prepared& prepared, std::span<const TensorView> inputs, std::span<const TensorView> outputs, int64_t verified_turns = 0) const;

  /// Runs. Inputs may have any strides (copied if not in the plan's layout); outputs must be dense in the layout of OutputOrder.
  /// An output may share memory with an input only if they are the same state, of one layout; it is then written last.
  void Run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const;
  /// The same with a known assignment. `verified_turns`: loops may run that often, or as often as their step says.
  void Run(const DimEnv& env, std::span<const TensorView> inputs, std::span<const TensorView> outputs, int64_t verified_turns = 0) const;
  /// Runs once on one thread and times each step.
  std::vector<StepProfile> Profile(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const;

  /// Peak bytes of intermediates under an assignment, without running; `planned` false: every intermediate at its own place.
  int64_t PeakBytes(const DimEnv& env, bool planned = true) const;
  int NumKernels() const;

 private:
  struct Context;
  const ShapePlan& PlanFor(const DimEnv& env, std::unique_ptr<ShapePlan>& owned) const;
  std::unique_ptr<ShapePlan> MakeShapePlan(const DimEnv& env) const;
  void RunSteps(const ShapePlan& shape, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                int64_t verified_turns, std::vector<StepProfile>* profile) const;

  Plan plan_;
  std::vector<Dim> symbols_;
  size_t max_operands_ = 0;  // of a step
  static constexpr int kMaxShapePlans = 64;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ShapePlan>> shape_plans_;       // append only
  mutable std::array<std::atomic<const ShapePlan*>, kMaxShapePlans> published_{};
  mutable std::atomic<int> num_published_{0};
  mutable std::mutex pool_mutex_;
  mutable std::vector<std::unique_ptr<Context>> pool_;
  mutable std::atomic<Context*> spare_{nullptr};
};

/// New host memory for the results of one call, in the layouts that the executable writes.
struct HostOutputs {
  std::vector<ConcreteType> types;
  std::vector<Shape> strides;
  std::vector<MemoryBlock> memory;
  std::vector<TensorView> views;  ///< into the above
};
HostOutputs AllocateOutputs(const Executable& executable, const DimEnv& env);

}  // namespace sinter
