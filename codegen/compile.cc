#include "sinter/codegen/compile.h"

#include <algorithm>

#include "sinter/codegen/claims/claims.h"
#include "sinter/codegen/lower_op.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const CompileOptions& options, CompileReport* report)
      : graph_(graph), options_(options), report_(report), layouts_(AssignLayouts(graph, options.fusion)) {}

  Plan Run() {
    for (const GuardedCond& g : graph_.guards) {
      plan_.guards.push_back(g.condition);
      plan_.guard_messages.push_back(g.location.empty() ? g.message : StrCat(g.message, " (", g.location, ")"));
    }
    for (size_t i = 0; i < graph_.body.params.size(); ++i) {
      const Value* v = graph_.body.params[i].get();
      plan_.inputs.push_back(NewBuffer(v, PlanBuffer::Home::kInput, static_cast<int>(i)));
      plan_.input_names.push_back(v->name);
    }
    // A value made by a step goes straight to the output's memory; one that is an input, or is returned twice, is copied.
    std::vector<const Value*> results(graph_.body.results.begin(), graph_.body.results.end());
    for (size_t i = 0; i < results.size(); ++i) {
      const Value* v = results[i];
      const bool first = std::find(results.begin(), results.begin() + static_cast<int64_t>(i), v) == results.begin() + static_cast<int64_t>(i);
      const bool constant = v->node != nullptr && v->node->op == &DefOf<ops::Constant>() && IsStructured(*v->node, options_.fusion);
      if (v->node != nullptr && first && !constant) {
        plan_.outputs.push_back(NewBuffer(v, PlanBuffer::Home::kOutput, static_cast<int>(i)));
      } else {
        plan_.buffers.push_back({v->type, layouts_.at(v), PlanBuffer::Home::kOutput, static_cast<int>(i)});
        plan_.outputs.push_back(static_cast<int>(plan_.buffers.size()) - 1);
        copies_.emplace_back(v, plan_.outputs.back());
      }
    }
    DoBlock(graph_.body);
    for (auto [v, to] : copies_) Copy(Buffer(v), to);
    for (PlanBuffer& b : plan_.buffers)
      if (b.home == PlanBuffer::Home::kArena && b.last_use < b.first_use) b.last_use = b.first_use;
    return std::move(plan_);
  }

 private:
  int Now() const { return static_cast<int>(plan_.steps.size()); }

  int NewBuffer(const Value* v, PlanBuffer::Home home, int index) {
    plan_.buffers.push_back({v->type, layouts_.at(v), home, index, Now(), -1});
    const int b = static_cast<int>(plan_.buffers.size()) - 1;
    buffers_[v] = b;
    return b;
  }

  /// The memory of a value; of a new one, an intermediate.
  int Buffer(const Value* v) {
    if (auto it = buffers_.find(v); it != buffers_.end()) return it->second;
    return NewBuffer(v, PlanBuffer::Home::kArena, 0);
  }

  void Touch(int b) {
    PlanBuffer& buffer = plan_.buffers[b];
    buffer.last_use = std::max(buffer.last_use, Now());
  }

  void Add(PlanStep step) {
    for (int b : step.buffers)
      if (b >= 0) Touch(b);
    plan_.steps.push_back(std::move(step));
  }

  void Copy(int from, int to) {
    if (from == to) return;
    PlanStep s;
    s.kind = PlanStep::Kind::kCopy;
    s.buffers = {from, to};
    s.name = "copy";
    Add(std::move(s));
  }

  void DoBlock(const Block& block) {
    FusedBlock fused = FuseBlock(block, layouts_, options_.fusion);
    for (FusedStep& s : fused.steps) {
      if (s.node == nullptr) AddKernel(s.fused);
      else if (s.node->op == &DefOf<ops::If>()) AddIf(*s.node);
      else if (s.node->op == &DefOf<ops::While>()) AddWhile(*s.node);
      else if (s.node->op == &DefOf<ops::Constant>()) AddConstant(*s.node);
      else AddStructured(*s.node);
    }
    if (report_) report_->refusals.insert(report_->refusals.end(), fused.refusals.begin(), fused.refusals.end());
  }

  void AddKernel(const FusedKernel& f) {
    if (options_.on_kernel) options_.on_kernel(f);
    PlanStep s;
    s.kind = PlanStep::Kind::kKernel;
    for (const Value* v : f.values) s.buffers.push_back(v ? Buffer(v) : -1);
    s.kernel = options_.backend(f.kernel);
    s.sizes = f.kernel.RuntimeSizes();
    s.points = OuterPoints(f.kernel);
    s.scratch_bytes = ScratchBytes(f.kernel);
    Dim work = 0;
    for (const KernelStage& stage : f.kernel.stages) {
      Dim inner = 1;
      for (const LoopVar& l : stage.inner) inner = inner * l.extent;
      for (const KernelStore& store : stage.stores) work = work + inner * Dim(8) * ReductionSize(store.value);
    }
    s.work_per_point = work;
    s.name = f.kernel.name;
    if (!f.kernel.sources.empty()) s.location = f.kernel.sources.front();
    Add(std::move(s));
    if (report_) ++report_->kernels;
  }

  void AddStructured(const Node& n) {
    const kernels::StructuredKernel* k = kernels::FindKernel(*n.op);
    if (k == nullptr)
      throw Error(ErrorCode::kUnimplemented, StrCat("op '", n.op->name, "' has no kernel here (at ", n.Location(), ")"));
    PlanStep s;
    s.kind = PlanStep::Kind::kStructured;
    for (const Value* v : n.inputs) s.buffers.push_back(Buffer(v));
    s.inputs = static_cast<int>(n.inputs.size());
    for (const auto& o : n.outputs) s.buffers.push_back(Buffer(o.get()));
    s.op = n.op;
    s.attrs = n.attrs;
    s.structured = k->run;
    if (const Claim* claim = FindClaim(n, graph_.numerics)) {
      s.structured = claim->run;
      if (report_) report_->claims.push_back(StrCat(n.op->name, n.Location().empty() ? "" : StrCat(" at ", n.Location()), " by ", claim->library));
    }
    s.name = n.op->name;
    s.location = n.Location();
    Add(std::move(s));
    if (report_) ++report_->structured;
  }

  void AddConstant(const Node& n) {
    plan_.constants.push_back(n.attrs->As<ops::Constant::Attrs>().value);
    NewBuffer(n.out(), PlanBuffer::Home::kConstant, static_cast<int>(plan_.constants.size()) - 1);
  }

  int AddJump(PlanStep::Kind kind, std::vector<int> buffers = {}) {
    PlanStep s;
    s.kind = kind;
    s.buffers = std::move(buffers);
    s.name = "jump";
    Add(std::move(s));
    return Now() - 1;
  }

  // The results of an `if` are written by both branches: their memory lives from before the first.
  void AddIf(const Node& n) {
    const int predicate = Buffer(n.inputs[0]);
    std::vector<int> results;
    for (const auto& o : n.outputs) results.push_back(Buffer(o.get()));
    const int to_else = AddJump(PlanStep::Kind::kJumpUnless, {predicate});
    DoBlock(*n.regions[0]);
    for (size_t i = 0; i < results.size(); ++i) Copy(Buffer(n.regions[0]->results[i]), results[i]);
    const int to_end = AddJump(PlanStep::Kind::kJump);
    plan_.steps[to_else].target = Now();
    DoBlock(*n.regions[1]);
    for (size_t i = 0; i < results.size(); ++i) Copy(Buffer(n.regions[1]->results[i]), results[i]);
    plan_.steps[to_end].target = Now();
    for (int b : results) Touch(b);
  }

  // The carried values stay at one place: condition, body and the code after read them there.
  void AddWhile(const Node& n) {
    const int begin = Now();
    std::vector<int> carried;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      carried.push_back(Buffer(n.out(static_cast<int>(i))));
      Copy(Buffer(n.inputs[i]), carried.back());
      buffers_[n.regions[0]->params[i].get()] = carried.back();
      buffers_[n.regions[1]->params[i].get()] = carried.back();
    }
    const int64_t verified = n.op->AttrsOrDefault(n.attrs)->As<ops::While::Attrs>().verified_turns;
    PlanStep head;
    head.kind = PlanStep::Kind::kCountTurn;
    head.trip_limit = options_.unverified_trips ? 0 : verified;
    head.name = "loop";
    head.location = n.Location();
    const int top = Now();
    Add(std::move(head));
    DoBlock(*n.regions[0]);
    const int exit = AddJump(PlanStep::Kind::kJumpUnless, {Buffer(n.regions[0]->results[0])});
    DoBlock(*n.regions[1]);
    // Results that are carried values themselves (a swap) are saved before the first is overwritten.
    std::vector<int> next;
    for (Value* v : n.regions[1]->results) {
      int b = Buffer(v);
      if (std::find(carried.begin(), carried.end(), b) != carried.end() && b != carried[next.size()]) {
        plan_.buffers.push_back({v->type, plan_.buffers[b].order, PlanBuffer::Home::kArena, 0, Now(), -1});
        const int saved = static_cast<int>(plan_.buffers.size()) - 1;
        Copy(b, saved);
        b = saved;
      }
      next.push_back(b);
    }
    for (size_t i = 0; i < next.size(); ++i) Copy(next[i], carried[i]);
    const int back = AddJump(PlanStep::Kind::kJump);
    plan_.steps[back].target = top;
    plan_.steps[exit].target = Now();
    // What lives before the loop and is read in it must survive every turn.
    for (PlanBuffer& b : plan_.buffers)
      if (b.first_use <= top && b.last_use >= top) b.last_use = std::max(b.last_use, Now());
    for (int b : carried) {
      plan_.buffers[b].first_use = std::min(plan_.buffers[b].first_use, begin);
      Touch(b);
    }
  }

  const Graph& graph_;
  const CompileOptions& options_;
  CompileReport* report_;
  Layouts layouts_;
  Plan plan_;
  std::unordered_map<const Value*, int> buffers_;
  std::vector<std::pair<const Value*, int>> copies_;
};

}  // namespace

std::shared_ptr<const Executable> Compile(const Graph& graph, const CompileOptions& options, CompileReport* report) {
  std::unique_ptr<Graph> lowered = graph.Clone();
  DecomposeComposites(*lowered);
  if (report) report->nodes = lowered->NumNodes();
  return std::make_shared<const Executable>(Planner(*lowered, options, report).Run());
}

std::shared_ptr<const Executable> CompileInterpreted(const Graph& graph) {
  CompileOptions options;
  options.fusion.enabled = false;
  options.backend = InterpretKernel;
  return Compile(graph, options);
}

}  // namespace sinter::codegen
