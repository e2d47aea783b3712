#include "sinter/tracer/capture_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sinter/eager/grad_mode.h"
#include "sinter/graph/call_stack.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/host_state.h"
#include "sinter/tracer/live_handles.h"

namespace sinter::tracer {

namespace {

// After its last prescribed decision a run is drained: it gets arbitrary answers and nothing is kept, until it returns. One that
// doesn't is ended by this.
struct EndOfRun {};
constexpr int kMaxDrained = 3000;

// Trainable cells that a value depends on, each as it was after so many writes; sorted.
using Deps = std::vector<std::pair<int, int>>;

Deps Union(const Deps& a, const Deps& b) {
  Deps r;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(r));
  return r;
}

}  // namespace

/// The recorder of one run.
class CaptureRun final : public Recorder, public GuardSink {
 public:
  CaptureRun(CaptureSession& session, const Path& path) : s_(session), path_(path), fiber_(Fiber::OfThread()), handles_(fiber_) {}

  /// Segments go to `see` and are not kept; when it says no the rest of the run is drained.
  void Stream(FunctionRef<bool(const Segment&)> see, size_t lines_from) {
    see_ = see;
    lines_from_ = lines_from;
  }
  /// Keeps what the function's variables hold at these decisions.
  void Watch(const std::vector<size_t>& decisions) { watched_ = decisions; }
  const std::vector<HostState>& watched_states() const { return states_; }

  std::vector<Segment> Execute() {
    {
      ScopedRecorder recorder(this);
      ScopedGuardSink sink(this);
      try {
        fiber_.Run([this] { Body(); });
      } catch (const EndOfRun&) {
      }
    }
    if (fault_.has_value() && !drained_) throw *fault_;
    return std::move(segments_);
  }

  // Recorder ------------------------------------------------------------------------------------------------------
  std::vector<ImplPtr> Record(const OpDef& op, const AttrPtr& attrs, std::span<TensorImpl* const> inputs, std::span<const TensorType> types) override {
    CheckFault();
    const bool grad = GradEnabled();
    const bool stops = &op == &DefOf<ops::StopGradient>();
    TraceOp t;
    t.op = &op;
    t.attrs = attrs;
    Deps deps;
    for (TensorImpl* in : inputs) {
      const ImplPtr operand = grad && !stops ? WithoutGradient(*in) : ImplPtr(in);
      t.inputs.push_back(RefOf(*operand));
      deps = Union(deps, DepsOf(*operand));
    }
    if (!grad || stops) deps.clear();
    t.types.assign(types.begin(), types.end());
    if (!drained_ && closed_ >= lines_from_) t.stack = CaptureCallStack(1);
    std::vector<ImplPtr> out;
    for (size_t i = 0; i < types.size(); ++i) {
      out.push_back(NewSymbolic({Ref::kLocal, static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(i)}, types[i]));
      if (!op.no_grad) deps_[out.back().get()] = deps;
      if (!grad) cut_.insert(out.back().get());
      if (op.kind == OpKind::kView && !inputs.empty()) {
        out.back()->is_view = true;
        const TensorImpl* base = inputs[0];
        if (auto root = root_.find(base); root != root_.end()) base = root->second;
        root_[out.back().get()] = base;
      }
    }
    if (!drained_) ops_.push_back(std::move(t));
    return out;
  }

  bool Decide(TensorImpl& predicate) override {
    CheckFault();
    if (drained_) return DrainedAnswer();
    const TensorType type = SymbolicTypeOf(predicate);
    if (NumElements(type.shape) != Dim(1))
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat("condition: a tensor as a condition must have one element, this one is ", TypeToString(type), "; say any() or all()"));
    if (std::find(watched_.begin(), watched_.end(), closed_) != watched_.end()) states_.push_back(CaptureHostState(fiber_.top()));
    Segment s;
    s.kind = Segment::kBranch;
    s.predicate = RefOf(predicate);
    s.stack = CaptureCallStack(1, 64);
    s.key = "branch";
    for (void* a : s.stack) StrAppend(&s.key, " ", reinterpret_cast<uintptr_t>(a));
    Close(s);
    if (drained_ || closed_ > path_.size()) {
      drained_ = true;
      return DrainedAnswer();
    }
    return path_[closed_ - 1];
  }

  void HostRead(TensorImpl& t, std::string_view what) override {
    if (!t.symbolic) {
      // A state cell or an outer tensor: its present value would be frozen into the program.
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat(what, " during a capture would freeze the present value of ", TypeToString(t.type()),
                         " into the program; keep it a Tensor, or read it before the captured function"));
    }
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(what, " needs the value of ", TypeToString(t.symbolic->type),
                       ", which is not known during a capture; keep it a Tensor, or move the read out of the captured function"));
  }

  int64_t HostSize(const Dim& dim, std::string_view what) override {
    if (dim.is_const()) return dim.value();
    int64_t value = 0;
    try {
      value = dim.Eval(s_.hints_);
    } catch (const Error&) {
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat(what, " asks for the size ", dim.ToString(), " as a number, but it is symbolic in this capture; use x.dim(i), which stays symbolic"));
    }
    if (drained_) return value;
    if (s_.strict_)
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat(what, " asks for the size ", dim.ToString(), " as a number, which would pin it to ", value, ", and an InputSpec is strict; use x.dim(i), which stays symbolic"));
    AddGuard({DimCond::kEq, dim, Dim(value)}, StrCat(what, " pinned the size ", dim.ToString(), " to ", value));
    const std::string note = StrCat(dim.ToString(), " == ", value, " (", UserLocation(CaptureCallStack(1)), ")");
    if (std::find(s_.pinned_.begin(), s_.pinned_.end(), note) == s_.pinned_.end()) s_.pinned_.push_back(note);
    return value;
  }

  void Assign(TensorImpl& cell, TensorImpl& value) override {
    CheckFault();
    CheckNoViews(cell);
    if (arguments_.contains(&cell))
      throw Error(ErrorCode::kUnimplemented,
                  "capture: an argument of the captured function is written in place, which the caller's tensor would have to show; write `x = x + ...` instead, or clone() it first");
    const Ref ref = RefOf(value);
    const Deps deps = DepsOf(value);
    const bool cut = cut_.contains(&Now(value));
    if (cell.symbolic) {
      if (!(cell.symbolic->type == SymbolicTypeOf(value)))
        throw Error(ErrorCode::kInvalidArgument, StrCat("an in-place write of ", TypeToString(SymbolicTypeOf(value)), " doesn't fit into ", TypeToString(cell.symbolic->type)));
      if (cut) cut_.insert(&cell);
      else cut_.erase(&cell);
      cell.symbolic->kind = ref.kind;
      cell.symbolic->index = Pack(ref);
      cell.symbolic->epoch = ref.kind == Ref::kLocal || ref.kind == Ref::kParam ? epoch_ : 0;
      deps_[&cell] = deps;
      return;
    }
    const int e = s_.ExternalIndex(cell);
    if (!s_.externals_[e].written) {
      s_.externals_[e].written = true;
      s_.written_.push_back(e);
      s_.restart_ = true;
    }
    ImplPtr& current = current_[e];
    current = NewSymbolic(ref, SymbolicTypeOf(value));
    deps_[current.get()] = deps;
    if (cut) cut_.insert(current.get());
    ++writes_[e];
  }

  void Backward(TensorImpl& loss, TensorImpl* seed) override {
    s_.backward_ = true;
    std::vector<int> cells = Leaves(loss, "backward");
    std::vector<ImplPtr> grads = Gradient(loss, seed, cells);
    for (size_t i = 0; i < cells.size(); ++i) {
      TensorImpl& cell = *s_.externals_[cells[i]].cell;
      ImplPtr old = ReadGrad(cell);
      if (old) {
        TensorImpl* in[] = {old.get(), grads[i].get()};
        const TensorType types[] = {SymbolicTypeOf(*grads[i])};
        grads[i] = Record(DefOf<ops::Add>(), nullptr, in, types)[0];
      }
      grads_[cells[i]] = grads[i];
    }
  }

  std::vector<ImplPtr> Gradients(std::span<TensorImpl* const> outputs, std::span<TensorImpl* const> inputs,
                                 std::span<TensorImpl* const> seeds) override {
    // Either all outputs have a seed or none.
    const bool seeded = std::any_of(seeds.begin(), seeds.end(), [](const TensorImpl* s) { return s != nullptr; });
    std::vector<TensorImpl*> operands(outputs.begin(), outputs.end());
    std::vector<ImplPtr> ones;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const TensorType type = SymbolicTypeOf(*outputs[k]);
      if (seeds[k] == nullptr && NumElements(type.shape) != Dim(1))
        throw Error(ErrorCode::kInvalidArgument, StrCat("grad: output ", k, " (", TypeToString(type), ") has more than one element; reduce it (sum, mean) or give a seed"));
      if (!seeded) continue;
      if (seeds[k] == nullptr) {
        const AttrPtr one = MakeAttrs(ops::Full::Attrs{{type.shape.begin(), type.shape.end()}, 1, type.dtype});
        ones.push_back(Record(DefOf<ops::Full>(), one, {}, std::span(&type, 1))[0]);
      }
      operands.push_back(seeds[k] ? seeds[k] : ones.back().get());
    }
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    std::vector<TensorType> types;
    for (TensorImpl* t : inputs) types.push_back(SymbolicTypeOf(*t));
    return Record(DefOf<ops::Gradient>(), MakeAttrs(ops::Gradient::Attrs{seeded, static_cast<int64_t>(outputs.size())}), operands, types);
  }

  void AssignGrad(TensorImpl& t, TensorImpl* value) override {
    if (t.symbolic) throw Error(ErrorCode::kFailedPrecondition, "a gradient is assigned to an intermediate value during a capture; only parameters keep one");
    grads_[s_.ExternalIndex(t)] = value ? ImplPtr(value) : ImplPtr();
  }

  ImplPtr ReadGrad(TensorImpl& t) override {
    if (t.symbolic)
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("capture: grad() of ", TypeToString(t.symbolic->type),
                         ", which is an argument or an intermediate value; only parameters collect a gradient in a captured function: use grad({loss}, {x})"));
    auto it = grads_.find(s_.ExternalIndex(t));
    return it != grads_.end() ? it->second : s_.GradBefore(t);
  }

  void NoteFlag(const std::shared_ptr<const bool>& flag) override {
    if (drained_) return;
    for (const auto& [known, value] : s_.flags_)
      if (known == flag) return;
    s_.flags_.emplace_back(flag, *flag);
  }

  void HandleCreated(Tensor* handle) noexcept override { handles_.Created(handle); }
  void HandleDestroyed(Tensor* handle) noexcept override { handles_.Destroyed(handle); }
  void HandleAssigned(Tensor* handle) noexcept override {
    if (handles_.Assigned(handle) || fault_.has_value()) return;
    fault_ = Error(ErrorCode::kFailedPrecondition,
                   "capture: a Tensor variable outside of the captured function is assigned in it; return the value, or make the variable a Buffer or a Parameter");
  }

  // A compiled function called in the captured one is a part of it, its handles too.
  void BeginUserCode() {
    if (!std::exchange(began_, true)) handles_.Forget();
  }

  // GuardSink -----------------------------------------------------------------------------------------------------
  void AddGuard(const DimCond& condition, std::string message) override {
    if (drained_) return;
    for (const GuardedCond& g : s_.guards_)
      if (g.condition == condition) return;
    s_.guards_.push_back({condition, std::move(message), UserLocation(CaptureCallStack(1))});
  }

 private:
  static uint32_t Pack(const Ref& r) { return r.index | r.output << 24; }

  void Body() {
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < s_.arguments_.size(); ++i) {
      arguments.emplace_back(NewSymbolic({Ref::kArgument, static_cast<uint32_t>(i), 0}, s_.arguments_[i]));
      arguments_.insert(&arguments.back().impl());
    }
    std::vector<Tensor> results;
    try {
      results = s_.function_(arguments);
    } catch (const EndOfRun&) {
      throw;
    } catch (...) {
      if (drained_) return;
      if (closed_ == 0) throw;  // before any decision: simply an error
      Segment s;
      s.kind = Segment::kThrow;
      s.exception = std::current_exception();
      s.key = "throw";
      try {
        throw;
      } catch (const std::exception& e) {
        StrAppend(&s.key, " ", e.what());
      } catch (...) {
      }
      s.ops = std::move(ops_);
      Emit(std::move(s));
      return;
    }
    if (drained_) return;
    CheckFault();
    Finish(results);
    results.clear();
    for (const auto& [h, order] : handles_.all())
      if (h->defined() && h->impl().symbolic && h->impl().symbolic->kind != Ref::kArgument)
        throw Error(ErrorCode::kFailedPrecondition,
                    StrCat("capture: a tensor made inside the captured function (", TypeToString(h->impl().symbolic->type),
                           ") outlives its call, in a container or variable outside; return it instead"));
  }

  void Finish(const std::vector<Tensor>& results) {
    Segment s;
    s.kind = Segment::kReturn;
    s.key = "return";
    auto add = [&](TensorImpl& t) {
      s.values.push_back(RefOf(t));
      s.types.push_back(SymbolicTypeOf(t));
      StrAppend(&s.key, " ", TypeToString(s.types.back()));
    };
    for (const Tensor& t : results) {
      if (!t.defined()) throw Error(ErrorCode::kInvalidArgument, "capture: the function returns an undefined tensor");
      add(*WithoutGradient(t.impl()));
    }
    s.num_results = static_cast<int>(results.size());
    for (int e : s_.written_) {
      auto it = current_.find(e);
      add(it == current_.end() ? *s_.externals_[e].cell : *it->second);
    }
    std::vector<FinalGrad> grads;
    for (const auto& [e, g] : grads_) {
      grads.push_back({e, !g});
      StrAppend(&s.key, " grad ", e, g ? "" : " cleared");
      if (g) add(*g);
    }
    s.final_grads = std::move(grads);
    s.ops = std::move(ops_);
    Emit(std::move(s));
  }

  void Emit(Segment&& s) {
    ++closed_;
    if (!see_) {
      segments_.push_back(std::move(s));
      return;
    }
    if (!(*see_)(s)) drained_ = true;
    ForgetDeadValues();
  }

  // Values that no handle has any more; the others are kept so that no new one gets their address.
  void ForgetDeadValues() {
    std::erase_if(keep_, [&](const ImplPtr& t) {
      if (!t->unique()) return false;
      mine_.erase(t.get());
      deps_.erase(t.get());
      root_.erase(t.get());
      cut_.erase(t.get());
      stopped_.erase(t.get());
      arguments_.erase(t.get());
      return true;
    });
  }

  // Ends a segment at a decision: every live symbolic value becomes a parameter of what follows.
  void Close(Segment& s) {
    std::vector<TensorImpl*> slots;
    std::unordered_map<const TensorImpl*, size_t> number;
    auto slot = [&](TensorImpl& t) {
      auto [it, fresh] = number.emplace(&t, slots.size());
      if (fresh) slots.push_back(&t);
      return it->second;
    };
    for (int e : s_.written_) {
      ImplPtr& current = current_[e];
      if (!current) current = NewSymbolic({Ref::kExternal, static_cast<uint32_t>(e), 0}, SymbolicTypeOf(*s_.externals_[e].cell));
      StrAppend(&s.key, " w", e, ":", slot(*current));
    }
    for (const auto& [e, g] : grads_) StrAppend(&s.key, " g", e, g ? g->symbolic ? StrCat(":", slot(*g)) : ":x" : ":none");
    const std::vector<LiveHandles::Place> handles = handles_.InOrder();
    // An argument keeps its cell for the library's own handles; the function's handles of it get one that can stand for other values.
    std::unordered_map<const TensorImpl*, ImplPtr> renamed;
    for (const auto& [h, on_stack, number] : handles) {
      if (!h->defined() || !h->impl().symbolic || h->impl().symbolic->kind != Ref::kArgument) continue;
      TensorImpl& t = h->impl();
      ImplPtr& own = renamed[&t];
      if (!own) {
        own = NewSymbolic({Ref::kArgument, t.symbolic->index, 0}, t.symbolic->type);
        arguments_.insert(own.get());
      }
      h->slot() = own;
    }
    for (const LiveHandles::Place& place : handles) {
      if (!place.handle->defined()) continue;
      TensorImpl& t = place.handle->impl();
      if (!t.symbolic) {
        StrAppend(&s.key, " ", place.ToString(), "=c", s_.ExternalIndex(t));
      } else if (!Stale(t)) {
        StrAppend(&s.key, " ", place.ToString(), ":", slot(t));
      }
    }
    if (std::count_if(handles.begin(), handles.end(), [](const auto& h) { return !h.on_stack; }) > 4000)
      throw Error(ErrorCode::kFailedPrecondition, "capture: the number of live tensors grows in each turn of a data-dependent loop; use a tensor of fixed size");
    for (TensorImpl* t : slots) {
      s.values.push_back(RefOf(*t));
      s.types.push_back(t->symbolic->type);
      StrAppend(&s.key, " ", TypeToString(t->symbolic->type), t->requires_grad ? "!" : "");
    }
    s.ops = std::move(ops_);
    ops_.clear();
    ++epoch_;
    for (size_t i = 0; i < slots.size(); ++i) {
      SymbolicValue& v = *slots[i]->symbolic;
      v.kind = Ref::kParam;
      v.index = static_cast<uint32_t>(i);
      v.epoch = epoch_;
    }
    Emit(std::move(s));
  }

  bool Stale(const TensorImpl& t) const {
    const SymbolicValue& v = *t.symbolic;
    return (v.kind == Ref::kLocal || v.kind == Ref::kParam) && v.epoch != epoch_;
  }

  Ref RefOf(TensorImpl& t) {
    if (!t.symbolic) {
      const int e = s_.ExternalIndex(t);
      if (auto it = current_.find(e); it != current_.end()) return RefOf(*it->second);
      return {Ref::kExternal, static_cast<uint32_t>(e), 0};
    }
    const SymbolicValue& v = *t.symbolic;
    if (drained_) return {};
    if (Stale(t) || !mine_.contains(&t))
      throw Error(ErrorCode::kFailedPrecondition,
                  "capture: a tensor made inside a captured function outlives its call (it was stored in a global or captured variable); return it instead");
    return {static_cast<Ref::Kind>(v.kind), v.kind == Ref::kLocal ? v.index & 0xffffff : v.index, v.kind == Ref::kLocal ? v.index >> 24 : 0};
  }

  ImplPtr NewSymbolic(const Ref& ref, const TensorType& type) {
    ImplPtr t(new TensorImpl());
    t->dtype = type.dtype;
    t->symbolic = std::make_unique<SymbolicValue>();
    t->symbolic->type = type;
    t->symbolic->kind = ref.kind;
    t->symbolic->index = ref.kind == Ref::kLocal ? Pack(ref) : ref.index;
    t->symbolic->epoch = ref.kind == Ref::kLocal || ref.kind == Ref::kParam ? epoch_ : 0;
    mine_.insert(t.get());
    keep_.push_back(t);
    return t;
  }

  Deps DepsOf(TensorImpl& t) {
    if (!t.symbolic) {
      const int e = s_.ExternalIndex(t);
      Deps d = t.requires_grad ? Deps{{e, writes_[e]}} : Deps{};
      if (auto it = current_.find(e); it != current_.end() && !t.requires_grad) d = Union(d, deps_[it->second.get()]);
      return d;
    }
    auto it = deps_.find(&t);
    return it == deps_.end() ? Deps() : it->second;
  }

  std::vector<int> Leaves(TensorImpl& loss, std::string_view what) {
    std::vector<int> cells;
    for (const auto& [e, writes] : DepsOf(Now(loss))) {
      if (writes != writes_[e])
        throw Error(ErrorCode::kFailedPrecondition,
                    StrCat(what, ": the loss was computed with a parameter (", TypeToString(s_.externals_[static_cast<size_t>(e)].cell->type()),
                           ") that was written since, by an optimizer step perhaps; call backward() before that, or compute the loss again"));
      cells.push_back(e);
    }
    if (cells.empty())
      throw Error(ErrorCode::kFailedPrecondition, StrCat(what, ": the loss depends on nothing that requires a gradient in this capture"));
    return cells;
  }

  std::vector<ImplPtr> Gradient(TensorImpl& loss, TensorImpl* seed, const std::vector<int>& cells) {
    const TensorType type = SymbolicTypeOf(loss);
    if (seed == nullptr && NumElements(type.shape) != Dim(1))
      throw Error(ErrorCode::kInvalidArgument, StrCat("backward: ", TypeToString(type), " has more than one element; reduce it (sum, mean) or give the gradient of each element as the seed"));
    std::vector<TensorImpl*> operands = {&loss};
    if (seed) operands.push_back(seed);
    std::vector<TensorType> types;
    for (int e : cells) {
      operands.push_back(s_.externals_[e].cell.get());
      types.push_back(SymbolicTypeOf(*s_.externals_[e].cell));
    }
    return Record(DefOf<ops::Gradient>(), MakeAttrs(ops::Gradient::Attrs{seed != nullptr}), operands, types);
  }

  // What stands for a cell now, where it was written.
  TensorImpl& Now(TensorImpl& t) {
    if (t.symbolic) return t;
    auto it = current_.find(s_.ExternalIndex(t));
    return it == current_.end() ? t : *it->second;
  }

  // A value that was computed with gradients off, as an operand where they are on: no gradient flows into it.
  ImplPtr WithoutGradient(TensorImpl& t) {
    TensorImpl& now = Now(t);
    if (!cut_.contains(&now) || t.requires_grad) return ImplPtr(&t);
    ImplPtr& stopped = stopped_[&now];
    if (!stopped || Stale(*stopped)) {
      TensorImpl* in[] = {&now};
      const TensorType types[] = {SymbolicTypeOf(now)};
      stopped = Record(DefOf<ops::StopGradient>(), nullptr, in, types)[0];
    }
    return stopped;
  }

  // A write to a tensor of which a view is still in use would have to show in the view.
  void CheckNoViews(const TensorImpl& cell) {
    auto fail = [&] {
      throw Error(ErrorCode::kUnimplemented,
                  "capture: an in-place write to a tensor that shares memory with a view still in use; write `x = ...` instead, or clone() the view");
    };
    auto root = [&](const TensorImpl* t) {
      auto it = root_.find(t);
      return it == root_.end() ? t : it->second;
    };
    const TensorImpl* memory = root(&cell);
    if (memory != &cell && !memory->symbolic) fail();  // a view of a state cell
    for (const auto& [h, order] : handles_.all())
      if (h->defined() && &h->impl() != &cell && root(&h->impl()) == memory) fail();
  }

  bool DrainedAnswer() {
    if (++drained_decisions_ > kMaxDrained && std::uncaught_exceptions() == 0) throw EndOfRun();
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 63;
  }

  // Before the function does anything else.
  void CheckFault() {
    if (fault_.has_value() && !drained_) throw *fault_;
    fiber_.CheckRoom();
  }

  CaptureSession& s_;
  const Path& path_;
  Fiber& fiber_;
  LiveHandles handles_;
  bool began_ = false;
  std::vector<Segment> segments_;
  size_t closed_ = 0;  // segments so far
  size_t lines_from_ = 0;
  std::optional<FunctionRef<bool(const Segment&)>> see_;
  std::vector<TraceOp> ops_;
  uint64_t epoch_ = 1;
  std::map<int, ImplPtr> current_;          // written cells
  std::map<int, ImplPtr> grads_;
  std::vector<ImplPtr> keep_;
  std::set<const TensorImpl*> mine_;
  std::unordered_map<const TensorImpl*, Deps> deps_;
  std::unordered_map<const TensorImpl*, const TensorImpl*> root_;  // view -> what it is a view of, in the end
  std::map<int, int> writes_;               // of each cell so far
  std::set<const TensorImpl*> cut_;         // computed with gradients off
  std::unordered_map<const TensorImpl*, ImplPtr> stopped_;  // what stands for those where gradients are on
  std::set<const TensorImpl*> arguments_;                          // cells that stand for arguments
  std::vector<size_t> watched_;
  std::vector<HostState> states_;
  std::optional<Error> fault_;
  bool drained_ = false;
  int drained_decisions_ = 0;
  uint64_t random_ = 0x853c49e6748fea9bu;
};

void BeginUserCode() {
  if (auto* run = dynamic_cast<CaptureRun*>(Recorder::Current())) run->BeginUserCode();
}

TensorImpl& External::Current() const {
  if (!owner) return *cell;
  if (!owner->grad)
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat("the program reads the gradient that a ", TypeToString(owner->type()), " had before the call, and there is none now; compute it in the function"));
  return *owner->grad;
}

int CaptureSession::ExternalIndex(TensorImpl& cell) {
  auto [it, fresh] = external_index_.emplace(&cell, static_cast<int>(externals_.size()));
  if (fresh) externals_.push_back({ImplPtr(&cell), false, ImplPtr()});
  return it->second;
}

// The gradient's own identity changes from call to call: an alias stands for whichever the cell has.
ImplPtr CaptureSession::GradBefore(TensorImpl& cell) {
  auto [it, fresh] = grads_before_.emplace(&cell, ImplPtr());
  if (fresh) {
    had_grad_.emplace_back(ImplPtr(&cell), static_cast<bool>(cell.grad));
    if (const TensorImpl* g = cell.grad.get()) {
      it->second = NewAlias(*g, g->shape, g->strides, g->offset);
      externals_[static_cast<size_t>(ExternalIndex(*it->second))].owner = ImplPtr(&cell);
    }
  }
  return it->second;
}

void CaptureSession::Follow(const Path& path, size_t lines_from, FunctionRef<bool(const Segment&)> see) {
  CaptureRun run(*this, path);
  run.Stream(see, lines_from);
  run.Execute();
}

std::optional<std::string> CaptureSession::HostChange(const Path& path, const std::vector<size_t>& decisions) {
  CaptureRun run(*this, path);
  run.Watch(decisions);
  run.Execute();
  return run.watched_states().size() == decisions.size() ? SteadyChange(run.watched_states()) : std::nullopt;
}

std::vector<Segment> CaptureSession::Run(const Path& path) {
  CaptureRun run(*this, path);
  std::vector<Segment> segments = run.Execute();
  if (restart_) {
    restart_ = false;
    throw Restart();
  }
  return segments;
}

}  // namespace sinter::tracer
