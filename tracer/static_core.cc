#include "sinter/tracer/static_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>

#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/optimize.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/fiber.h"
#include "sinter/tracer/learner.h"
#include "sinter/tracer/structure.h"

namespace sinter::tracer {
namespace {

double Seconds(std::chrono::steady_clock::time_point from) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count(); }

// A capture on a fresh session, started over while it finds cells that it writes.
Automaton LearnFunction(CaptureSession& session) {
  EnableGradGuard grad;  // what the function switches off itself stays off
  const LearnerOptions options;
  for (int attempt = 0; attempt < 256; ++attempt) {
    try {
      Automaton a = Learn(session, options);
      // A function without decisions ran once: the second run shows whether it does the same again.
      if (a.runs == 1) {
        std::vector<Segment> again = session.Run({});
        if (!(again[0] == a.start))
          throw Error(ErrorCode::kFailedPrecondition,
                      StrCat("capture: the function is not deterministic: a second run gave other operations: ", Difference(a.start, again[0])));
      }
      return a;
    } catch (const CaptureSession::Restart&) {
    }
  }
  throw Error(ErrorCode::kResourceExhausted, "capture: the function writes more and more state");
}

// The graph of what was learned, its values named as by an earlier capture.
std::unique_ptr<Graph> GraphLike(const Entry& entry, const Automaton& automaton, const CaptureSession& session) {
  std::vector<std::string> arguments, cells;
  for (size_t i = 0; i < entry.types.size(); ++i) arguments.push_back(entry.graph->body.params[i]->name);
  for (const StateSlot& s : entry.graph->states) cells.push_back(s.name);
  std::vector<FinalGrad> final_grads;
  return BuildGraph(automaton, session, entry.graph->name, arguments, cells, &final_grads);
}

// Whether a second capture gave the program of the first: the same graph over the same cells.
bool SameFunction(const Entry& entry, const Automaton& automaton, const CaptureSession& session) {
  if (session.externals().size() != entry.externals.size()) return false;
  for (size_t i = 0; i < entry.externals.size(); ++i) {
    const External &a = entry.externals[i], &b = session.externals()[i];
    if (a.owner != b.owner || (!a.owner && a.cell != b.cell)) return false;
  }
  const std::unique_ptr<Graph> now = GraphLike(entry, automaton, session);
  now->numerics = entry.graph->numerics;
  return Print(*now) == Print(*entry.graph);
}

}  // namespace

std::string HostNumberKey(double v) {
  if (std::isnan(v)) return StrCat("nan:", std::bit_cast<uint64_t>(v));
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
  return std::string(text.data(), end);
}

StaticCore::StaticCore(std::vector<InputSpec> specs, StaticOptions options, std::optional<CellNames> names)
    : specs_(std::move(specs)), options_(std::move(options)), of_module_(names.has_value()), names_(std::move(names).value_or(CellNames())) {
  std::map<std::string, Dim> symbols;
  for (const InputSpec& spec : specs_) {
    strict_ = strict_ || spec.strict();
    for (Dim d : spec.type().shape)
      for (Dim s : d.Symbols())
        if (auto [it, fresh] = symbols.emplace(s.ToString(), s); !fresh && !(it->second == s))
          throw Error(ErrorCode::kInvalidArgument,
                      StrCat(options_.name, ": the InputSpecs have two sizes named '", s.ToString(), "' with different facts (range, multiple); make one dim(\"", s.ToString(),
                             "\", {...}) and use it in both"));
  }
}

namespace {
std::string UnnamedState(size_t index) { return StrCat("state.", index); }
}  // namespace

std::string StaticCore::NameOf(const External& e, size_t index) const {
  for (const auto& [name, t] : names_)
    if (t.impl_ptr() == (e.owner ? e.owner : e.cell)) return e.owner ? name + ".grad" : name;
  return UnnamedState(index);
}

// The types that a call is captured for: those of the specs, whose symbols the call's sizes bind.
std::vector<TensorType> StaticCore::TypesFor(const std::vector<Tensor>& arguments, DimEnv& hints) const {
  if (!specs_.empty() && specs_.size() != arguments.size())
    throw Error(ErrorCode::kInvalidArgument, StrCat(options_.name, ": ", specs_.size(), " InputSpecs for ", arguments.size(), " tensor arguments"));
  std::vector<TensorType> types;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& t = arguments[i];
    if (!t.defined()) throw Error(ErrorCode::kInvalidArgument, StrCat(options_.name, ": argument ", i, " is undefined"));
    if (specs_.empty()) {
      types.push_back(SymbolicTypeOf(t.impl()));
      continue;
    }
    const TensorType& spec = specs_[i].type();
    auto mismatch = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument, StrCat(options_.name, ": argument ", i, specs_[i].name().empty() ? "" : " '" + specs_[i].name() + "'", ": expected ",
                                                      TypeToString(spec), ", got ", t.TypeString(), ": ", why));
    };
    if (t.dtype() != spec.dtype) mismatch("the element types differ; convert with .to()");
    if (t.rank() != spec.rank()) mismatch(StrCat("the rank is ", t.rank(), ", expected ", spec.rank()));
    const Shape shape = t.shape();
    for (int d = 0; d < spec.rank(); ++d) {
      const Dim want = spec.shape[d];
      if (want.is_symbol() && !hints.Get(want)) {
        try {
          hints.Set(want, shape[d]);
        } catch (const Error& e) {
          mismatch(e.message());
        }
      }
    }
    for (int d = 0; d < spec.rank(); ++d)
      if (const int64_t want = spec.shape[d].Eval(hints); want != shape[d])
        mismatch(StrCat("dimension ", d, " is ", shape[d], ", but ",
                        spec.shape[d].is_const() ? StrCat("it was declared as ", want, "; declare it kDynamic to allow other sizes")
                                                 : StrCat(spec.shape[d].ToString(), " is ", want, " here")));
    types.push_back(spec);
  }
  return types;
}

namespace {

// Fixes the sizes with a symbol of a condition to those of the call. False if there is none.
bool Fix(std::vector<TensorType>& types, const DimCond& condition, const DimEnv& sizes) {
  std::vector<Dim> symbols = condition.a.Symbols();
  const std::vector<Dim> more = condition.b.Symbols();
  symbols.insert(symbols.end(), more.begin(), more.end());
  bool changed = false;
  for (TensorType& t : types)
    for (Dim& d : t.shape) {
      const std::vector<Dim> of = d.Symbols();
      if (std::none_of(of.begin(), of.end(), [&](Dim s) { return std::find(symbols.begin(), symbols.end(), s) != symbols.end(); })) continue;
      d = Dim(d.Eval(sizes));
      changed = true;
    }
  return changed;
}

}  // namespace

std::shared_ptr<Entry> StaticCore::Find(const std::vector<TensorType>& types, const DimEnv* sizes, const std::string& host_key, std::string* miss) const {
  std::lock_guard lock(mutex_);
  std::string why = "the first call";
  for (const auto& e : entries_) {
    if (e->host_key != host_key) {
      why = StrCat("the host arguments are ", host_key, ", were ", e->host_key);
    } else if (!Serves(*e, types, sizes)) {
      why = StrCat("the argument types are ", TypesText(types), ", were ", TypesText(e->types), "; an InputSpec with kDynamic sizes would serve both");
    } else if (auto f = std::find_if(e->flags.begin(), e->flags.end(), [](const auto& f) { return *f.first != f.second; }); f != e->flags.end()) {
      why = "a module was switched between train() and eval()";
    } else if (std::any_of(e->had_grad.begin(), e->had_grad.end(), [](const auto& g) { return static_cast<bool>(g.first->grad) != g.second; })) {
      why = "a gradient that the function adds to or reads is there now and was not, or the other way round; clear it at one place";
    } else if (!SameState(*e)) {
      why = "a parameter or buffer changed its type or was frozen";
    } else if (const GuardedCond* g = sizes ? FindBroken(*e, *sizes) : nullptr) {
      why = StrCat("the sizes break the condition ", g->condition.ToString(), " (", g->message, g->location.empty() ? "" : StrCat(" at ", g->location), ")");
    } else {
      return e;
    }
  }
  *miss = why;
  return nullptr;
}

void StaticCore::Publish(const std::shared_ptr<Entry>& e, const std::string& why) {
  std::lock_guard lock(mutex_);
  log_.push_back(StrCat("compiled entry ", entries_.size(), ", because: ", why));
  if (static_cast<int>(entries_.size()) >= options_.max_entries) {
    auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a->last_used.load() < b->last_used.load(); });
    log_.push_back(StrCat("dropped the least used of ", entries_.size(), " entries (", TypesText((*oldest)->types), "): max_entries is ", options_.max_entries));
    entries_.erase(oldest);
  }
  entries_.push_back(e);
}

std::shared_ptr<Entry> StaticCore::Capture(std::vector<TensorType> types, const DimEnv& hints, const std::string& host_key, const FlatFunction& flat) {
  const auto start = std::chrono::steady_clock::now();
  auto entry = std::make_shared<Entry>();
  CaptureSession session(flat, types, hints, strict_);
  const Automaton automaton = LearnFunction(session);
  entry->host_key = host_key;
  entry->types = types;
  entry->flags = session.flags();
  entry->had_grad = session.had_grad();
  entry->externals = session.externals();
  entry->pinned = session.pinned();
  entry->calls_backward = session.backward();
  entry->runs = automaton.runs;
  entry->verified_turns = automaton.verified_turns;
  std::vector<std::string> arguments, cells;
  for (size_t i = 0; i < types.size(); ++i) arguments.push_back(i < specs_.size() && !specs_[i].name().empty() ? specs_[i].name() : StrCat("arg", i));
  for (size_t i = 0; i < entry->externals.size(); ++i) {
    const TensorImpl& cell = *entry->externals[i].cell;
    cells.push_back(NameOf(entry->externals[i], i));
    if (of_module_ && cell.requires_grad && cells.back() == UnnamedState(i))
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat(options_.name, ": the module computes with a trainable ", TypeToString(cell.type()),
                         " that it does not list, so parameters() does not have it and no optimizer trains it; add the member that holds it to SINTER_MODULE"));
  }
  entry->graph = BuildGraph(automaton, session, options_.name, arguments, cells, &entry->final_grads);
  entry->graph->numerics = options_.numerics;
  entry->writes_state = std::any_of(entry->graph->states.begin(), entry->graph->states.end(), [](const StateSlot& st) { return st.result >= 0; });
  const int left_grads = static_cast<int>(std::count_if(entry->final_grads.begin(), entry->final_grads.end(), [](const FinalGrad& g) { return !g.cleared; }));
  entry->num_results = entry->graph->num_outputs - left_grads;
  entry->capture_seconds = Seconds(start);

  const auto compile = std::chrono::steady_clock::now();
  std::unique_ptr<Graph> optimized = entry->graph->Clone();
  codegen::Optimize(*optimized);
  codegen::CompileOptions o;
  o.fusion.enabled = options_.fuse;
  o.backend = codegen::CpuBackend();
  o.unverified_trips = false;
  entry->executable = codegen::Compile(*optimized, o, &entry->report);
  entry->compile_seconds = Seconds(compile);
  return entry;
}

std::shared_ptr<Entry> StaticCore::Prepare(const std::vector<Tensor>& arguments, const std::string& host_key, const FlatFunction& flat) {
  DimEnv sizes;
  std::vector<TensorType> types = TypesFor(arguments, sizes);
  std::string miss;
  if (auto e = Find(types, &sizes, host_key, &miss)) return e;
  std::lock_guard capture(capture_mutex_);
  if (auto e = Find(types, &sizes, host_key, &miss)) return e;
  // Sizes for which a guard of the program does not hold get a program of their own.
  for (;;) {
    std::shared_ptr<Entry> e = Capture(types, sizes, host_key, flat);
    const GuardedCond* broken = FindBroken(*e, sizes);
    if (broken == nullptr || !Fix(types, broken->condition, sizes)) {
      Publish(e, miss);
      return e;
    }
    if (miss == "the first call") miss = StrCat("the sizes break the condition ", broken->condition.ToString(), " (", broken->message, ")");
  }
}

std::shared_ptr<Entry> StaticCore::PrepareFromSpecs(size_t num_arguments, const FlatFunction& flat) {
  if (specs_.size() != num_arguments)
    throw Error(ErrorCode::kFailedPrecondition, StrCat(options_.name, ": compiling without a call needs an InputSpec for each of the ", num_arguments, " arguments, got ", specs_.size()));
  std::vector<TensorType> types;
  for (const InputSpec& s : specs_) types.push_back(s.type());
  std::string miss;
  std::lock_guard capture(capture_mutex_);
  if (auto e = Find(types, nullptr, "", &miss)) return e;
  std::shared_ptr<Entry> e = Capture(std::move(types), DimEnv(), "", flat);
  Publish(e, "compile() or save() asked for it");
  return e;
}

std::shared_ptr<Entry> StaticCore::Again(std::span<const Tensor* const> arguments, const std::string& host_key) const {
  std::lock_guard lock(mutex_);
  const Entry* e = last_.get();
  if (e == nullptr || e->host_key != host_key || e->types.size() != arguments.size()) return nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& t = e->types[i];
    if (!arguments[i]->defined()) return nullptr;
    const TensorImpl& a = arguments[i]->impl();
    if (a.symbolic || a.dtype != t.dtype || a.rank() != t.rank()) return nullptr;
    // Fixed sizes here; symbols, their facts and guards are checked when the program binds its inputs.
    for (int d = 0; d < t.rank(); ++d)
      if (t.shape[d].is_const() && t.shape[d].value() != a.shape[d]) return nullptr;
  }
  return SameState(*e) ? last_ : nullptr;
}

std::vector<Tensor> StaticCore::Call(std::span<const Tensor* const> operands, const std::string& host_key, FunctionRef<FlatFunction()> make) {
  // Inside another capture the function itself is part of that capture.
  auto copies = [&] {
    std::vector<Tensor> r;
    for (const Tensor* t : operands) r.push_back(*t);
    return r;
  };
  if (Recorder::Current() != nullptr) {
    Fiber::OfThread().CheckRoom();
    return make()(copies());
  }
  if (std::shared_ptr<Entry> e = options_.verify == VerifyMode::kAlways ? nullptr : Again(operands, host_key)) {
    e->last_used = ++clock_;
    try {
      return RunEntry(e, operands, nullptr);
    } catch (const TripLimit&) {
      // The long way below verifies more turns.
    } catch (const BrokenGuard&) {
      // These sizes get a program of their own.
    }
  }
  const FlatFunction flat = make();
  const std::vector<Tensor> arguments = copies();
  std::shared_ptr<Entry> e = Prepare(arguments, host_key, flat);
  e->last_used = ++clock_;
  for (;;) {
    try {
      const bool verify = options_.verify == VerifyMode::kAlways || (options_.verify == VerifyMode::kFirstCall && !e->verified.load());
      std::vector<Tensor> results = RunEntry(e, operands, verify ? &flat : nullptr);
      if (verify) e->verified = true;
      std::lock_guard lock(mutex_);
      last_ = e;
      return results;
    } catch (const TripLimit&) {
      // Nothing was committed: compare more, then run again.
      e = VerifyMoreTurns(e, arguments, flat);
    }
  }
}

std::shared_ptr<Entry> StaticCore::VerifyMoreTurns(const std::shared_ptr<Entry>& entry, const std::vector<Tensor>& arguments, const FlatFunction& flat) {
  DimEnv hints;
  TypesFor(arguments, hints);
  std::vector<TensorType> types = entry->types;
  const int64_t before = entry->verified_turns;
  std::lock_guard capture(capture_mutex_);
  if (entry->verified_turns > before) return entry;  // another thread did it
  CaptureSession session(flat, types, hints, strict_);
  const Automaton automaton = LearnFunction(session);
  if (!SameFunction(*entry, automaton, session)) {
    std::shared_ptr<Entry> now = Capture(std::move(types), hints, entry->host_key, flat);
    std::lock_guard lock(mutex_);
    log_.push_back("the function changed since it was captured (a host value that it reads): captured again");
    if (auto at = std::find(entries_.begin(), entries_.end(), entry); at != entries_.end()) *at = now;
    return now;
  }
  {
    EnableGradGuard grad;
    CheckLongRuns(session, automaton, before * 8);
  }
  entry->verified_turns = before * 8;
  std::lock_guard lock(mutex_);
  log_.push_back(StrCat("a loop ran more than ", before, " turns: compared with the function up to ", before * 8));
  return entry;
}

std::shared_ptr<Entry> StaticCore::Present() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Entry>> fit;
  for (const auto& e : entries_)
    if (SameState(*e)) fit.push_back(e);
  if (fit.size() > 1) {
    std::string list;
    for (const auto& e : fit) StrAppend(&list, "\n  ", TypesText(e->types), e->host_key.empty() ? "" : StrCat(" with host arguments ", e->host_key));
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(options_.name, ": several programs are compiled, and it is not clear which one is meant:", list,
                       "\nclear() the function and call it for one of them, or make a function of the tensors alone (a lambda with the host arguments fixed) and give InputSpecs"));
  }
  return fit.empty() ? nullptr : fit[0];
}

std::vector<std::shared_ptr<Entry>> StaticCore::entries() const {
  std::lock_guard lock(mutex_);
  return entries_;
}

void StaticCore::Clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
  last_ = nullptr;
  log_.clear();
}

std::string StaticCore::Explain() const {
  std::lock_guard lock(mutex_);
  std::string s;
  if (entries_.empty()) s = "nothing is compiled yet: call the function, or compile() it for its InputSpecs\n";
  for (const std::string& l : log_) StrAppend(&s, l, "\n");
  for (size_t i = 0; i < entries_.size(); ++i) s += DescribeEntry(*entries_[i], i);
  return s;
}

}  // namespace sinter::tracer
