#include "sinter/runtime/executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "sinter/graph/strings.h"
#include "sinter/runtime/arena_plan.h"
#include "sinter/runtime/strides.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter {
namespace {

// About 20 microseconds of element operations: less is not worth handing to another thread.
constexpr int64_t kGrainWork = 1 << 15;

Shape EvalShape(const SymShape& shape, const DimEnv& env) {
  Shape r;
  for (Dim d : shape) r.push_back(d.Eval(env));
  return r;
}

bool HasStrides(const TensorView& v, const Shape& strides) {
  for (size_t i = 0; i < strides.size(); ++i)
    if (v.sizes[i] > 1 && v.strides[i] != strides[i]) return false;
  return true;
}

}  // namespace

/// Everything that depends on sizes alone.
struct Executable::ShapePlan {
  std::vector<int64_t> symbol_values;
  struct Buffer {
    Shape sizes, strides;
    int64_t bytes = 0;
    int64_t offset = 0;  // kArena
  };
  std::vector<Buffer> buffers;
  struct Step {
    std::vector<int64_t> sizes;
    int64_t points = 0, grain = 1, scratch = 0;
  };
  std::vector<Step> steps;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;  // of one thread
};

/// What one call needs besides its operands.
struct Executable::Context {
  MemoryBlock arena;
  std::vector<void*> pointers;
  std::vector<void*> operands;    // of the step that runs
  std::vector<TensorView> views;
  std::vector<MemoryBlock> copies;
  std::vector<int64_t> turns;
};

Executable::Executable(Plan plan) : plan_(std::move(plan)) {
  for (const PlanStep& s : plan_.steps) max_operands_ = std::max(max_operands_, s.buffers.size());
  for (int b : plan_.inputs)
    for (Dim d : plan_.buffers[b].type.shape)
      for (Dim s : d.Symbols())
        if (std::find(symbols_.begin(), symbols_.end(), s) == symbols_.end()) symbols_.push_back(s);
}

Executable::~Executable() { delete spare_.load(); }

DimEnv Executable::Bind(std::span<const TensorView> inputs) const {
  if (inputs.size() != plan_.inputs.size())
    throw Error(ErrorCode::kInvalidArgument, StrCat("takes ", plan_.inputs.size(), " inputs, got ", inputs.size()));
  DimEnv env;
  auto mismatch = [&](size_t i, const std::string& why) {
    Shape got(inputs[i].sizes.begin(), inputs[i].sizes.end());
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("input ", i, plan_.input_names[i].empty() ? "" : " '" + plan_.input_names[i] + "'", ": expected ",
                       TypeToString(plan_.buffers[plan_.inputs[i]].type), ", got ", TypeToString(ConcreteType{inputs[i].dtype, got}), ": ", why));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = plan_.buffers[plan_.inputs[i]].type;
    if (inputs[i].dtype != type.dtype) mismatch(i, "the element types differ; convert the tensor");
    if (inputs[i].rank() != type.rank()) mismatch(i, "the ranks differ");
    for (int d = 0; d < type.rank(); ++d)
      if (type.shape[d].is_symbol() && !env.Get(type.shape[d])) {
        try {
          env.Set(type.shape[d], inputs[i].sizes[d]);
        } catch (const Error& e) {
          mismatch(i, StrCat("dimension ", d, ": ", e.message()));
        }
      }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = plan_.buffers[plan_.inputs[i]].type;
    for (int d = 0; d < type.rank(); ++d)
      if (const int64_t want = type.shape[d].Eval(env); want != inputs[i].sizes[d])
        mismatch(i, StrCat("dimension ", d, " is ", inputs[i].sizes[d], ", expected ",
                           type.shape[d].is_const() ? StrCat("the fixed size ", want, "; declare it kDynamic in the InputSpec to allow others")
                                                    : StrCat(type.shape[d].ToString(), " = ", want)));
  }
  for (size_t g = 0; g < plan_.guards.size(); ++g)
    if (!plan_.guards[g].Eval(env))
      throw BrokenGuard(ErrorCode::kInvalidArgument, StrCat("these sizes break the condition ", plan_.guards[g].ToString(), ": ", plan_.guard_messages[g]));
  return env;
}

ConcreteType Executable::OutputType(int i, const DimEnv& env) const {
  const TensorType& t = plan_.buffers[plan_.outputs[i]].type;
  return {t.dtype, EvalShape(t.shape, env)};
}

std::unique_ptr<Executable::ShapePlan> Executable::MakeShapePlan(const DimEnv& env) const {
  auto plan = std::make_unique<ShapePlan>();
  for (Dim s : symbols_) plan->symbol_values.push_back(env.Get(s).value_or(-1));
  std::vector<ArenaBlock> blocks;
  std::vector<size_t> owners;
  for (const PlanBuffer& b : plan_.buffers) {
    ShapePlan::Buffer s;
    s.sizes = EvalShape(b.type.shape, env);
    s.strides = DenseStrides(s.sizes, b.order);
    s.bytes = static_cast<int64_t>(ByteCount(NumElements(s.sizes), ItemSize(b.type.dtype)));
    if (b.home == PlanBuffer::Home::kArena) {
      blocks.push_back({s.bytes, b.first_use, b.last_use});
      owners.push_back(plan->buffers.size());
    }
    plan->buffers.push_back(std::move(s));
  }
  ArenaPlan arena = PlanArena(blocks);
  SINTER_CHECK(CheckArena(blocks, arena), "the memory plan overlaps");
  for (size_t i = 0; i < owners.size(); ++i) plan->buffers[owners[i]].offset = arena.offsets[i];
  plan->arena_bytes = arena.bytes;
  for (const PlanStep& step : plan_.steps) {
    ShapePlan::Step s;
    for (Dim d : step.sizes) s.sizes.push_back(d.Eval(env));
    if (step.kind == PlanStep::Kind::kKernel) {
      s.points = step.points.Eval(env);
      s.grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, step.work_per_point.Eval(env)));
      s.scratch = step.scratch_bytes.Eval(env);
      plan->scratch_bytes = std::max(plan->scratch_bytes, s.scratch);
    }
    plan->steps.push_back(std::move(s));
  }
  return plan;
}

const Executable::ShapePlan& Executable::PlanFor(const DimEnv& env, std::unique_ptr<ShapePlan>& owned) const {
  auto matches = [&](const ShapePlan& p) {
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (env.Get(symbols_[i]).value_or(-1) != p.symbol_values[i]) return false;
    return true;
  };
  const int known = num_published_.load(std::memory_order_acquire);
  for (int i = 0; i < known; ++i)
    if (const ShapePlan& p = *published_[i].load(std::memory_order_relaxed); matches(p)) return p;
  owned = MakeShapePlan(env);
  std::lock_guard lock(mutex_);
  const int now = num_published_.load(std::memory_order_relaxed);
  for (int i = known; i < now; ++i)
    if (const ShapePlan& p = *published_[i].load(std::memory_order_relaxed); matches(p)) return p;
  if (now == kMaxShapePlans) return *owned;  // this call's own
  shape_plans_.push_back(std::move(owned));
  published_[now].store(shape_plans_.back().get(), std::memory_order_relaxed);
  num_published_.store(now + 1, std::memory_order_release);
  return *shape_plans_.back();
}

const Shape& Executable::Prepared::OutputSizes(int i) const { return plan_->buffers[static_cast<size_t>(executable_->plan_.outputs[i])].sizes; }
const Shape& Executable::Prepared::OutputStrides(int i) const { return plan_->buffers[static_cast<size_t>(executable_->plan_.outputs[i])].strides; }

Executable::Prepared Executable::Prepare(std::span<const TensorView> inputs) const {
  Prepared r;
  r.executable_ = this;
  // The sizes of all inputs say what the symbols are.
  auto matches = [&](const ShapePlan& p) {
    if (inputs.size() != plan_.inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t b = static_cast<size_t>(plan_.inputs[i]);
      const Shape& sizes = p.buffers[b].sizes;
      if (inputs[i].dtype != plan_.buffers[b].type.dtype || !std::equal(sizes.begin(), sizes.end(), inputs[i].sizes.begin(), inputs[i].sizes.end())) return false;
    }
    return true;
  };
  const int known = num_published_.load(std::memory_order_acquire);
  for (int i = 0; i < known; ++i)
    if (const ShapePlan* p = published_[i].load(std::memory_order_relaxed); matches(*p)) {
      r.plan_ = p;
      return r;
    }
  std::unique_ptr<ShapePlan> owned;
  r.plan_ = &PlanFor(Bind(inputs), owned);
  r.owned_ = std::move(owned);
  return r;
}

void Executable::Run(const Prepared& prepared, std::span<const TensorView> inputs, std::span<const TensorView> outputs, int64_t verified_turns) const {
  RunSteps(*prepared.plan_, inputs, outputs, verified_turns, nullptr);
}

void Executable::Run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const { Run(Bind(inputs), inputs, outputs); }

void Executable::Run(const DimEnv& env, std::span<const TensorView> inputs, std::span<const TensorView> outputs, int64_t verified_turns) const {
  std::unique_ptr<ShapePlan> owned;
  RunSteps(PlanFor(env, owned), inputs, outputs, verified_turns, nullptr);
}

std::vector<StepProfile> Executable::Profile(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  std::unique_ptr<ShapePlan> owned;
  std::vector<StepProfile> profile;
  for (const PlanStep& s : plan_.steps) profile.push_back({s.name, s.location, 0});
  RunSteps(PlanFor(Bind(inputs), owned), inputs, outputs, 0, &profile);
  return profile;
}

void Executable::RunSteps(const ShapePlan& shape, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                          int64_t verified_turns, std::vector<StepProfile>* profile) const {
  // A context from the spare slot, the pool, or new; returned on every way out.
  struct Borrow {
    const Executable& e;
    std::unique_ptr<Context> c;
    explicit Borrow(const Executable& e) : e(e), c(e.spare_.exchange(nullptr, std::memory_order_acquire)) {
      if (c) return;
      std::lock_guard lock(e.pool_mutex_);
      if (!e.pool_.empty()) {
        c = std::move(e.pool_.back());
        e.pool_.pop_back();
      } else {
        c = std::make_unique<Context>();
      }
    }
    ~Borrow() {
      c->copies.clear();
      Context* expected = nullptr;
      if (e.spare_.compare_exchange_strong(expected, c.get(), std::memory_order_release)) {
        c.release();
        return;
      }
      std::lock_guard lock(e.pool_mutex_);
      if (e.pool_.size() < 16) e.pool_.push_back(std::move(c));
    }
  } borrow(*this);
  Context& c = *borrow.c;
  const size_t threads = static_cast<size_t>(NumThreads());
  const size_t scratch_stride = (static_cast<size_t>(shape.scratch_bytes) + 63) / 64 * 64;
  const size_t arena_bytes = (static_cast<size_t>(shape.arena_bytes) + 63) / 64 * 64;
  // One scratch area per thread that may take part in a step.
  const size_t total = arena_bytes + scratch_stride * (threads + 1);
  if (c.arena.bytes() < total) c.arena = MemoryBlock(total);
  std::byte* base = c.arena.as<std::byte>();
  std::byte* scratch = base + arena_bytes;

  c.pointers.assign(plan_.buffers.size(), nullptr);
  c.turns.assign(plan_.steps.size(), 0);
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    switch (buffer.home) {
      case PlanBuffer::Home::kInput: {
        const TensorView& v = inputs[buffer.index];
        if (HasStrides(v, shape.buffers[b].strides)) {
          c.pointers[b] = v.data;
        } else {
          c.copies.emplace_back(static_cast<size_t>(shape.buffers[b].bytes));
          c.pointers[b] = c.copies.back().data();
          CopyView(v, {c.pointers[b], buffer.type.dtype, shape.buffers[b].sizes, shape.buffers[b].strides});
        }
        break;
      }
      case PlanBuffer::Home::kOutput:
        c.pointers[b] = outputs[buffer.index].data;
        break;
      case PlanBuffer::Home::kConstant:
        c.pointers[b] = const_cast<std::byte*>(plan_.constants[buffer.index].bytes->data());
        break;
      case PlanBuffer::Home::kArena:
        c.pointers[b] = base + shape.buffers[b].offset;
        break;
    }
  }

  auto view = [&](int b) {
    return TensorView{c.pointers[b], plan_.buffers[b].type.dtype, shape.buffers[b].sizes, shape.buffers[b].strides};
  };
  bool from_back = false;  // the step was reached by a jump back, so a loop goes on
  c.operands.resize(max_operands_);
  void** const operands = c.operands.data();
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    const ShapePlan::Step& s = shape.steps[i];
    const auto start = profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    switch (step.kind) {
      case PlanStep::Kind::kKernel: {
        for (size_t k = 0; k < step.buffers.size(); ++k) operands[k] = step.buffers[k] < 0 ? nullptr : c.pointers[step.buffers[k]];
        if (s.points <= s.grain || threads == 1 || !step.kernel->Splits()) {
          if (s.points > 0) step.kernel->Run(operands, s.sizes.data(), 0, s.points, scratch);
        } else {
          // As many parts as threads; each part has a scratch area of its own.
          const int64_t parts = std::min<int64_t>(static_cast<int64_t>(threads), (s.points + s.grain - 1) / s.grain);
          ParallelFor(parts, [&](int64_t part) {
            step.kernel->Run(operands, s.sizes.data(), s.points * part / parts, s.points * (part + 1) / parts,
                             scratch + static_cast<size_t>(part) * scratch_stride);
          });
        }
        break;
      }
      case PlanStep::Kind::kStructured:
        c.views.clear();
        for (int b : step.buffers) c.views.push_back(view(b));
        try {
          step.structured(*step.op, step.op->AttrsOrDefault(step.attrs).get(), std::span(c.views).first(static_cast<size_t>(step.inputs)),
                          std::span(c.views).subspan(static_cast<size_t>(step.inputs)));
        } catch (const Error& e) {
          throw Error(e.code(), StrCat(e.message(), step.location.empty() ? "" : StrCat(" (", step.name, " at ", step.location, ")")));
        }
        break;
      case PlanStep::Kind::kCopy:
        if (c.pointers[step.buffers[0]] != c.pointers[step.buffers[1]]) CopyView(view(step.buffers[0]), view(step.buffers[1]));
        break;
      case PlanStep::Kind::kJump:
        from_back = step.target <= static_cast<int>(i);
        i = static_cast<size_t>(step.target) - 1;
        break;
      case PlanStep::Kind::kJumpUnless:
        if (*static_cast<const bool*>(c.pointers[step.buffers[0]]) == false) i = static_cast<size_t>(step.target) - 1;
        break;
      case PlanStep::Kind::kCountTurn:
        if (!from_back) c.turns[i] = 0;
        from_back = false;
        if (++c.turns[i] > std::max(step.trip_limit, verified_turns) && step.trip_limit > 0)
          throw TripLimit(ErrorCode::kFailedPrecondition,
                      StrCat("the loop at ", step.location, " passed its ", std::max(step.trip_limit, verified_turns),
                             " verified turns; what it does beyond was never compared with the function. Load with LoadOptions.unverified_trips = kAllow to accept that"));
        break;
    }
    if (profile) (*profile)[static_cast<size_t>(&step - plan_.steps.data())].seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

int64_t Executable::PeakBytes(const DimEnv& env, bool planned) const {
  std::unique_ptr<ShapePlan> plan = MakeShapePlan(env);
  if (planned) return plan->arena_bytes;
  int64_t total = 0;
  for (size_t b = 0; b < plan_.buffers.size(); ++b)
    if (plan_.buffers[b].home == PlanBuffer::Home::kArena) total += (plan->buffers[b].bytes + 63) / 64 * 64;
  return total;
}

HostOutputs AllocateOutputs(const Executable& executable, const DimEnv& env) {
  HostOutputs r;
  const int n = executable.num_outputs();
  for (int i = 0; i < n; ++i) {
    r.types.push_back(executable.OutputType(i, env));
    const ConcreteType& t = r.types.back();
    r.strides.push_back(DenseStrides(t.shape, executable.OutputOrder(i)));
    r.memory.emplace_back(ByteCount(NumElements(t.shape), ItemSize(t.dtype)));
  }
  for (size_t i = 0; i < r.types.size(); ++i) r.views.push_back({r.memory[i].data(), r.types[i].dtype, r.types[i].shape, r.strides[i]});
  return r;
}

int Executable::NumKernels() const {
  int n = 0;
  for (const PlanStep& s : plan_.steps) n += s.kind == PlanStep::Kind::kKernel || s.kind == PlanStep::Kind::kStructured;
  return n;
}

}  // namespace sinter
