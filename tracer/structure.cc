#include "sinter/tracer/structure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "sinter/graph/call_stack.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/flow_graph.h"

namespace sinter::tracer {
namespace {

using Values = std::vector<Value*>;

// Where control may be after a piece of code, and the live values there.
struct Outcome {
  std::vector<int> exits;   // blocks of the automaton, ascending
  Value* label = nullptr;   // i64: the exit taken; null where there is one
  std::vector<Values> args;
};

class Structurer {
 public:
  Structurer(const Automaton& a, const CaptureSession& s, Graph& g) : a_(a), s_(s), g_(g), flow_(a) {}

  Outcome Run() {
    if (std::optional<int> bad = flow_.IrreducibleBlock())
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("capture: a host variable and the loop at ", UserLocation(a_.blocks[*bad].arrival.stack),
                         " together give a loop with two entries; make the variable a Tensor or an Int"))
          .WithFrames(a_.blocks[*bad].arrival.stack);
    Values arrived = EmitSegment(a_.start, g_.body, {});
    return Arrive(a_.entry, std::move(arrived), g_.body, {});
  }

 private:
  using Stops = std::set<int>;

  const Segment& ArrivalOf(int b) const { return a_.blocks[static_cast<size_t>(b)].arrival; }
  bool IsEnd(int b) const { return ArrivalOf(b).kind != Segment::kBranch; }

  Value* Lookup(const Ref& r, const Values& params, const std::vector<Values>& locals) const {
    switch (r.kind) {
      case Ref::kArgument: return g_.body.params[r.index].get();
      case Ref::kExternal: return g_.body.params[static_cast<size_t>(g_.num_args) + r.index].get();
      case Ref::kParam: return params[r.index];
      case Ref::kLocal: return locals[r.index][r.output];
    }
    return nullptr;
  }

  // The code of a segment; returns the live values at its end, the predicate last.
  Values EmitSegment(const Segment& s, sinter::Block& out, const Values& params) {
    if (s.kind == Segment::kThrow) {
      try {
        std::rethrow_exception(s.exception);
      } catch (const std::exception& e) {
        throw Error(ErrorCode::kUnimplemented,
                    StrCat("capture: an exception is thrown under a data-dependent condition: ", e.what(), "; return a flag tensor instead, or check before the captured function"));
      }
    }
    std::vector<Values> locals;
    for (const TraceOp& op : s.ops) {
      Values inputs;
      for (const Ref& r : op.inputs) inputs.push_back(Lookup(r, params, locals));
      Node* n = g_.AddNode(out, *op.op, op.attrs, std::move(inputs), op.stack);
      Values results;
      for (const auto& o : n->outputs) results.push_back(o.get());
      locals.push_back(std::move(results));
    }
    Values args;
    for (const Ref& r : s.values) args.push_back(Lookup(r, params, locals));
    if (s.kind == Segment::kBranch) {
      Value* p = Lookup(s.predicate, params, locals);
      if (p->type.dtype != kBool) p = g_.AddNode(out, DefOf<ops::Cast>(), MakeAttrs(ops::Cast::Attrs{kBool}), {p}, s.stack)->out();
      if (p->type.rank() != 0) p = g_.AddNode(out, DefOf<ops::Reshape>(), MakeAttrs(ops::Reshape::Attrs{{}}), {p}, s.stack)->out();
      args.push_back(p);
    }
    return args;
  }

  Outcome Arrive(int t, Values args, sinter::Block& out, const Stops& stops) {
    if (stops.contains(t) || IsEnd(t)) return {{t}, nullptr, {std::move(args)}};
    return flow_.IsLoopHead(t) ? EmitLoop(t, args, out, stops) : EmitBranch(t, args, out, stops);
  }

  Outcome Edge(int b, bool answer, const Values& args, sinter::Block& out, const Stops& stops) {
    const Block& block = a_.blocks[static_cast<size_t>(b)];
    Values slots(args.begin(), args.end() - 1);
    return Arrive(block.target[answer], EmitSegment(block.segment[answer], out, slots), out, stops);
  }

  Outcome EmitBranch(int t, const Values& args, sinter::Block& out, const Stops& stops) {
    const std::vector<int> joins = flow_.JoinsUnder(t);  // in reverse post-order
    Stops inner = stops;
    inner.insert(joins.begin(), joins.end());
    Outcome o = MakeIf(
        args.back(), ArrivalOf(t).stack, out, [&](sinter::Block& b) { return Edge(t, true, args, b, inner); },
        [&](sinter::Block& b) { return Edge(t, false, args, b, inner); });
    return Resume(std::move(o), joins, out, stops);
  }

  // Goes on at the exits that are not stops of the surroundings.
  Outcome Resume(Outcome o, const std::vector<int>& joins, sinter::Block& out, const Stops& stops) {
    Stops later = stops;
    later.insert(joins.begin(), joins.end());
    for (int j : joins) {
      later.erase(j);
      if (stops.contains(j)) continue;
      auto it = std::find(o.exits.begin(), o.exits.end(), j);
      if (it == o.exits.end() || IsEnd(j)) continue;
      const Values args = o.args[static_cast<size_t>(it - o.exits.begin())];
      if (o.exits.size() == 1) {
        o = Arrive(j, args, out, later);
        continue;
      }
      Outcome others = o;
      const size_t at = static_cast<size_t>(it - o.exits.begin());
      others.exits.erase(others.exits.begin() + static_cast<int64_t>(at));
      others.args.erase(others.args.begin() + static_cast<int64_t>(at));
      if (others.exits.size() == 1) others.label = nullptr;
      Value* here = Equals(o.label, j, out);
      o = MakeIf(here, ArrivalOf(j).stack, out, [&](sinter::Block& b) { return Arrive(j, args, b, later); }, [&](sinter::Block&) { return others; });
    }
    return o;
  }

  Value* LabelConstant(int64_t v, sinter::Block& out) {
    return g_.AddNode(out, DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{}, static_cast<double>(v), kInt64}), {})->out();
  }
  Value* Equals(Value* label, int64_t v, sinter::Block& out) {
    return g_.AddNode(out, DefOf<ops::Equal>(), nullptr, {label, LabelConstant(v, out)})->out();
  }
  Value* Zero(const TensorType& t, sinter::Block& out) {
    return g_.AddNode(out, DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{t.shape.begin(), t.shape.end()}, 0, t.dtype}), {})->out();
  }
  /// Types of the live values at a block.
  std::vector<TensorType> TypesAt(int b) const {
    std::vector<TensorType> types = ArrivalOf(b).types;
    if (!IsEnd(b)) types.push_back({kBool, {}});
    return types;
  }

  static bool DefinedIn(const Value* v, const sinter::Block& region) {
    for (const sinter::Block* b = v->node ? v->node->parent : v->block; b != nullptr; b = b->parent ? b->parent->parent : nullptr)
      if (b == &region) return true;
    return false;
  }

  // An `if` whose branches go on as the two functions emit; columns that don't depend on the branch are no results of it.
  Outcome MakeIf(Value* predicate, const std::vector<void*>& stack, sinter::Block& out, const std::function<Outcome(sinter::Block&)>& yes,
                 const std::function<Outcome(sinter::Block&)>& no) {
    Node* n = g_.AddIf(out, predicate, {}, stack);
    Outcome o[2] = {yes(*n->regions[0]), no(*n->regions[1])};
    Outcome r;
    std::set<int> exits(o[0].exits.begin(), o[0].exits.end());
    exits.insert(o[1].exits.begin(), o[1].exits.end());
    r.exits.assign(exits.begin(), exits.end());
    std::vector<TensorType> types;
    std::vector<Value**> where;
    auto column = [&](const TensorType& type, Value* a, Value* b, Value** result) {
      // One branch doesn't come here: any value will do.
      const bool a_out = a && !DefinedIn(a, *n->regions[0]), b_out = b && !DefinedIn(b, *n->regions[1]);
      if ((a_out && (b == a || !b)) || (b_out && !a)) {
        *result = a ? a : b;
        return;
      }
      n->regions[0]->results.push_back(a ? a : Zero(type, *n->regions[0]));
      n->regions[1]->results.push_back(b ? b : Zero(type, *n->regions[1]));
      types.push_back(type);
      where.push_back(result);
    };
    if (r.exits.size() > 1) {
      Value* label[2];
      for (int k : {0, 1}) label[k] = o[k].label ? o[k].label : LabelConstant(o[k].exits[0], *n->regions[static_cast<size_t>(k)]);
      column({kInt64, {}}, label[0], label[1], &r.label);
    }
    r.args.resize(r.exits.size());
    for (size_t e = 0; e < r.exits.size(); ++e) {
      const std::vector<TensorType> at = TypesAt(r.exits[e]);
      r.args[e].resize(at.size());
      const Values* side[2] = {nullptr, nullptr};
      for (int k : {0, 1})
        if (auto it = std::find(o[k].exits.begin(), o[k].exits.end(), r.exits[e]); it != o[k].exits.end()) side[k] = &o[k].args[static_cast<size_t>(it - o[k].exits.begin())];
      for (size_t i = 0; i < at.size(); ++i) column(at[i], side[0] ? (*side[0])[i] : nullptr, side[1] ? (*side[1])[i] : nullptr, &r.args[e][i]);
    }
    g_.AddResults(n, types);
    for (size_t i = 0; i < where.size(); ++i) *where[i] = n->out(static_cast<int>(i));
    if (types.empty()) g_.Erase(n);
    return r;
  }

  Outcome EmitLoop(int h, const Values& args, sinter::Block& out, const Stops& stops) {
    const std::set<int>& loop = flow_.Loop(h);
    const Block& head = a_.blocks[static_cast<size_t>(h)];
    Stops outside = {h};
    std::set<int> exits;
    bool only_head_leaves = true;
    for (size_t b = 0; b < a_.blocks.size(); ++b) {
      if (!loop.contains(static_cast<int>(b))) {
        outside.insert(static_cast<int>(b));
        continue;
      }
      for (int a : {0, 1}) {
        const int t = a_.blocks[b].target[a];
        if (loop.contains(t)) continue;
        exits.insert(t);
        only_head_leaves &= static_cast<int>(b) == h;
      }
    }
    if (exits.empty())
      throw Error(ErrorCode::kFailedPrecondition, StrCat("capture: the loop at ", UserLocation(head.arrival.stack), " has no way out")).WithFrames(head.arrival.stack);
    const bool stays[2] = {loop.contains(head.target[0]), loop.contains(head.target[1])};
    if (only_head_leaves && stays[0] != stays[1]) return PlainLoop(h, stays[1], args, out, stops, outside);
    return LabelledLoop(h, exits, args, out, stops, outside);
  }

  AttrPtr LoopAttrs() const { return MakeAttrs(ops::While::Attrs{a_.verified_turns}); }

  // while (predicate) body
  Outcome PlainLoop(int h, bool stay, const Values& args, sinter::Block& out, const Stops& stops, const Stops& outside) {
    Node* n = g_.AddWhile(out, args, ArrivalOf(h).stack);
    n->attrs = LoopAttrs();
    sinter::Block &condition = *n->regions[0], &body = *n->regions[1];
    Value* predicate = condition.params.back().get();
    if (!stay) predicate = g_.AddNode(condition, DefOf<ops::LogicalNot>(), nullptr, {predicate})->out();
    condition.results = {predicate};
    Values params;
    for (const auto& p : body.params) params.push_back(p.get());
    Outcome o = Edge(h, stay, params, body, outside);
    SINTER_CHECK(o.exits == std::vector<int>{h}, "a loop body leaves");
    body.results = o.args[0];
    Values after;
    for (const auto& v : n->outputs) after.push_back(v.get());
    return Edge(h, !stay, after, out, stops);
  }

  // Loops that are left elsewhere carry which exit was taken (the head: none yet), and the live values there.
  Outcome LabelledLoop(int h, const std::set<int>& exits, const Values& args, sinter::Block& out, const Stops& stops, const Stops& outside) {
    Values carried = args;
    carried.push_back(LabelConstant(h, out));
    for (int e : exits)
      for (const TensorType& t : TypesAt(e)) carried.push_back(Zero(t, out));
    Node* n = g_.AddWhile(out, carried, ArrivalOf(h).stack);
    n->attrs = LoopAttrs();
    sinter::Block &condition = *n->regions[0], &body = *n->regions[1];
    condition.results = {Equals(condition.params[args.size()].get(), h, condition)};
    Values params;
    for (const auto& p : body.params) params.push_back(p.get());
    Outcome o = EmitBranch(h, Values(params.begin(), params.begin() + static_cast<int64_t>(args.size())), body, outside);
    Values next;
    auto side = [&](int b) -> const Values* {
      auto it = std::find(o.exits.begin(), o.exits.end(), b);
      return it == o.exits.end() ? nullptr : &o.args[static_cast<size_t>(it - o.exits.begin())];
    };
    const Values* again = side(h);
    for (size_t i = 0; i < args.size(); ++i) next.push_back(again ? (*again)[i] : params[i]);
    next.push_back(o.label ? o.label : LabelConstant(o.exits[0], body));
    size_t at = args.size() + 1;
    for (int e : exits) {
      const Values* values = side(e);
      const size_t count = TypesAt(e).size();
      for (size_t i = 0; i < count; ++i, ++at) next.push_back(values ? (*values)[i] : params[at]);
    }
    body.results = next;
    Outcome r;
    r.exits.assign(exits.begin(), exits.end());
    if (exits.size() > 1) r.label = n->out(static_cast<int>(args.size()));
    at = args.size() + 1;
    for (int e : exits) {
      Values values;
      for (size_t i = 0; i < TypesAt(e).size(); ++i) values.push_back(n->out(static_cast<int>(at++)));
      r.args.push_back(std::move(values));
    }
    std::vector<int> order(exits.begin(), exits.end());
    std::sort(order.begin(), order.end(), [&](int x, int y) { return flow_.Rank(x) < flow_.Rank(y); });
    return Resume(std::move(r), order, out, stops);
  }

  const Automaton& a_;
  const CaptureSession& s_;
  Graph& g_;
  FlowGraph flow_;
};

}  // namespace

std::unique_ptr<Graph> BuildGraph(const Automaton& automaton, const CaptureSession& session, const std::string& name,
                                  const std::vector<std::string>& argument_names, const std::vector<std::string>& external_names, std::vector<FinalGrad>* final_grads) {
  auto g = std::make_unique<Graph>();
  g->name = name;
  for (size_t i = 0; i < session.arguments().size(); ++i) g->AddArg(session.arguments()[i], argument_names[i]);
  for (size_t i = 0; i < session.externals().size(); ++i) {
    const External& e = session.externals()[i];
    g->AddState(SymbolicTypeOf(*e.cell), external_names[i], e.cell->requires_grad);
  }
  g->guards = session.guards();
  Outcome o = Structurer(automaton, session, *g).Run();
  const Segment& first = automaton.blocks[static_cast<size_t>(o.exits[0])].arrival;
  Values results = o.args[0];
  for (size_t k = 1; k < o.exits.size(); ++k) {
    const Segment& s = automaton.blocks[static_cast<size_t>(o.exits[k])].arrival;
    if (!(s.final_grads == first.final_grads))
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat("capture: the parameters that have a gradient after the call differ by path (", first.final_grads.size(), " gradients are left or cleared on one, ",
                         s.final_grads.size(), " on another, or of other parameters); call backward() and clear_grad() for the same parameters on every path"));
    if (s.types != first.types || s.num_results != first.num_results) {
      auto types = [](const Segment& x) {
        return Join(x.types, ", ", [](std::string* out, const TensorType& t) { StrAppend(out, TypeToString(t)); });
      };
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat("capture: the types of the results (or of a variable that ends up in one) differ by path: ", types(first), " and ", types(s), "; give it one element type and rank on every path, with .to() or reshape()"));
    }
    GraphBuilder b(g->body);
    Var here = equal(b.Wrap(o.label), ApplyConstant(b.Wrap(o.label), DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{}, static_cast<double>(o.exits[k]), kInt64})));
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i] != o.args[k][i]) results[i] = GraphBuilder::Unwrap(where(here, b.Wrap(o.args[k][i]), b.Wrap(results[i])));
  }
  const size_t outputs = static_cast<size_t>(first.num_results), written = session.written().size();
  Values out(results.begin(), results.begin() + static_cast<int64_t>(outputs));
  out.insert(out.end(), results.begin() + static_cast<int64_t>(outputs + written), results.end());
  g->SetOutputs(std::move(out));
  for (size_t i = 0; i < written; ++i) g->SetStateResult(session.written()[i], results[outputs + i]);
  SinkLoopConditions(*g);
  Verify(*g);
  *final_grads = first.final_grads;
  return g;
}

}  // namespace sinter::tracer
