#include <unordered_set>

#include "sinter/graph/call_stack.h"
#include "sinter/graph/graph.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

class Verifier {
 public:
  Verifier(const Graph& g, std::string_view after) : graph_(g), after_(after) {}

  void Run() {
    if (graph_.num_args + static_cast<int>(graph_.states.size()) != static_cast<int>(graph_.body.params.size()))
      Fail(nullptr, "parameters are not the arguments and states");
    std::unordered_set<int> written;
    for (const StateSlot& s : graph_.states) {
      if (s.param < graph_.num_args || s.param >= static_cast<int>(graph_.body.params.size())) Fail(nullptr, StrCat("state '", s.name, "' has no parameter"));
      if (s.result < 0) continue;
      if (s.result < graph_.num_outputs || s.result >= static_cast<int>(graph_.body.results.size()) || !written.insert(s.result).second)
        Fail(nullptr, StrCat("state '", s.name, "' has a wrong result"));
      if (!(graph_.body.results[s.result]->type == graph_.body.params[s.param]->type))
        Fail(nullptr, StrCat("state '", s.name, "' is ", TypeToString(graph_.body.params[s.param]->type), " but is written as ",
                             TypeToString(graph_.body.results[s.result]->type)));
    }
    if (graph_.num_outputs + static_cast<int>(written.size()) != static_cast<int>(graph_.body.results.size()))
      Fail(nullptr, "results are not the outputs and written states");
    CheckBlock(graph_.body);
  }

 private:
  [[noreturn]] void Fail(const Node* n, std::string problem) {
    std::string text = StrCat("graph '", graph_.name, "'", after_.empty() ? "" : StrCat(" after pass '", after_, "'"), ": ", problem);
    if (n != nullptr) {
      StrAppend(&text, " in node '", n->op ? n->op->name : "?", "'");
      if (std::string at = n->Location(); !at.empty()) StrAppend(&text, " (", at, ")");
      if (n->parent == nullptr) throw InternalError(__FILE__, __LINE__, text + " (it belongs to no block)");
      int k = 0, here = -1;
      for (const auto& x : n->parent->nodes) {
        if (x.get() == n) here = k;
        ++k;
      }
      k = 0;
      for (const auto& x : n->parent->nodes) {
        if (k >= here - 5 && k <= here + 5) StrAppend(&text, "\n  ", k == here ? "> " : "  ", x->op ? x->op->name : "?");
        ++k;
      }
    }
    if (after_.empty()) throw Error(ErrorCode::kInvalidArgument, text);
    throw InternalError(__FILE__, __LINE__, text);
  }

  void Define(const Value* v) {
    if (!visible_.insert(v).second) Fail(nullptr, "a value is defined twice");
    scope_.push_back(v);
    if (v->type.rank() > kMaxRank) Fail(v->node, StrCat("rank above ", kMaxRank));
  }

  void CheckUse(const Node* n, const Value* v) {
    if (v == nullptr) Fail(n, "an operand is missing");
    if (!visible_.contains(v)) Fail(n, "an operand is used before it is defined, or outside of its region");
  }

  void CheckBlock(const Block& b) {
    const size_t mark = scope_.size();
    for (const auto& p : b.params) Define(p.get());
    for (const auto& n : b.nodes) {
      if (n->op == nullptr) Fail(n.get(), "no op");
      if (n->parent != &b) Fail(n.get(), "wrong parent");
      for (const Value* v : n->inputs) CheckUse(n.get(), v);
      for (const auto& r : n->regions) CheckBlock(*r);
      CheckTypes(*n);
      for (const auto& o : n->outputs) {
        if (o->node != n.get()) Fail(n.get(), "a result belongs to another node");
        Define(o.get());
      }
    }
    for (const Value* v : b.results) CheckUse(b.parent, v);
    while (scope_.size() > mark) visible_.erase(scope_.back()), scope_.pop_back();
  }

  void CheckTypes(const Node& n) {
    if (n.op == &DefOf<ops::If>()) {
      if (n.inputs.size() != 1 || n.inputs[0]->type.dtype != kBool || NumElements(n.inputs[0]->type.shape) != Dim(1)) Fail(&n, "the predicate is not one bool");
      if (n.regions.size() != 2) Fail(&n, "needs two regions");
      for (const auto& r : n.regions) {
        if (!r->params.empty()) Fail(&n, "a region has parameters");
        CheckResults(n, r->results);
      }
      return;
    }
    if (n.op == &DefOf<ops::While>()) {
      if (n.regions.size() != 2 || n.inputs.size() != n.outputs.size()) Fail(&n, "needs two regions and one result per carried value");
      for (const auto& r : n.regions) {
        if (r->params.size() != n.inputs.size()) Fail(&n, "a region has another number of parameters");
        for (size_t i = 0; i < n.inputs.size(); ++i)
          if (!(r->params[i]->type == n.outputs[i]->type) || !(n.inputs[i]->type == n.outputs[i]->type)) Fail(&n, "a carried value changes its type");
      }
      const auto& condition = n.regions[0]->results;
      if (condition.size() != 1 || condition[0]->type.dtype != kBool || NumElements(condition[0]->type.shape) != Dim(1)) Fail(&n, "the condition is not one bool");
      CheckResults(n, n.regions[1]->results);
      return;
    }
    if (!n.regions.empty()) Fail(&n, "has regions");
    std::vector<TensorType> in;
    for (const Value* v : n.inputs) in.push_back(v->type);
    // Guards were taken when the node was added.
    struct Ignore final : GuardSink {
      void AddGuard(const DimCond&, std::string) override {}
    } sink;
    ScopedGuardSink scope(&sink);
    std::vector<TensorType> out;
    try {
      out = InferTypes(*n.op, in, n.attrs);
    } catch (const Error& e) {
      Fail(&n, e.message());
    }
    if (out.size() != n.outputs.size()) Fail(&n, "wrong number of results");
    for (size_t i = 0; i < out.size(); ++i)
      if (!(out[i] == n.outputs[i]->type)) Fail(&n, StrCat("result ", i, " is ", TypeToString(n.outputs[i]->type), ", its op says ", TypeToString(out[i])));
  }

  void CheckResults(const Node& n, const std::vector<Value*>& results) {
    if (results.size() != n.outputs.size()) Fail(&n, "a region gives another number of results");
    for (size_t i = 0; i < results.size(); ++i)
      if (!(results[i]->type == n.outputs[i]->type)) Fail(&n, StrCat("a region's result ", i, " has another type"));
  }

  const Graph& graph_;
  std::string_view after_;
  std::unordered_set<const Value*> visible_;
  std::vector<const Value*> scope_;
};

}  // namespace

void Verify(const Graph& graph, std::string_view after) { Verifier(graph, after).Run(); }

}  // namespace sinter
