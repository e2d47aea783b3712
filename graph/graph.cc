#include "sinter/graph/graph.h"

#include <algorithm>

#include "sinter/graph/call_stack.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

// Collects what shape rules can't decide while a node is added.
class GuardCollector final : public GuardSink {
 public:
  void AddGuard(const DimCond& condition, std::string message) override { found.push_back({condition, std::move(message), {}}); }
  std::vector<GuardedCond> found;
};

void ForEachInBlock(const Block& block, const std::function<void(Node&)>& fn) {
  for (const auto& n : block.nodes) {
    fn(*n);
    for (const auto& r : n->regions) ForEachInBlock(*r, fn);
  }
}

void ReplaceInBlock(Block& block, Value* from, Value* to) {
  for (auto& n : block.nodes) {
    std::replace(n->inputs.begin(), n->inputs.end(), from, to);
    for (auto& r : n->regions) ReplaceInBlock(*r, from, to);
  }
  std::replace(block.results.begin(), block.results.end(), from, to);
}

}  // namespace

std::string Node::Location() const { return !source.empty() ? source : stack.empty() ? "" : UserLocation(stack); }

Graph::Graph() { body.graph = this; }

std::unique_ptr<Value> Graph::NewValue(TensorType type) {
  auto v = std::make_unique<Value>();
  v->type = std::move(type);
  v->id = next_id_++;
  return v;
}

Value* Graph::AddParam(Block& block, TensorType type, std::string name) {
  auto v = NewValue(std::move(type));
  v->block = &block;
  v->index = static_cast<int>(block.params.size());
  v->name = std::move(name);
  block.params.push_back(std::move(v));
  return block.params.back().get();
}

Value* Graph::AddArg(TensorType type, std::string arg_name) {
  SINTER_CHECK(states.empty(), "arguments come before states");
  ++num_args;
  return AddParam(body, std::move(type), std::move(arg_name));
}

Value* Graph::AddState(TensorType type, std::string state_name, bool trainable) {
  Value* v = AddParam(body, std::move(type), state_name);
  states.push_back({std::move(state_name), v->index, -1, trainable});
  return v;
}

Node* Graph::AddNode(Block& block, const OpDef& op, AttrPtr attrs, std::vector<Value*> inputs, std::vector<void*> stack, const Node* before) {
  std::vector<TensorType> types;
  for (const Value* v : inputs) types.push_back(v->type);
  GuardCollector collector;
  std::vector<TensorType> results;
  {
    ScopedGuardSink scope(&collector);
    results = InferTypes(op, types, attrs);
  }
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->attrs = op.AttrsOrDefault(attrs);
  node->inputs = std::move(inputs);
  node->stack = std::move(stack);
  node->parent = &block;
  for (size_t i = 0; i < results.size(); ++i) {
    node->outputs.push_back(NewValue(std::move(results[i])));
    node->outputs.back()->node = node.get();
    node->outputs.back()->index = static_cast<int>(i);
  }
  for (GuardedCond& g : collector.found) {
    const bool known = std::any_of(guards.begin(), guards.end(), [&](const GuardedCond& k) { return k.condition == g.condition; });
    if (known) continue;
    g.location = node->Location();
    guards.push_back(std::move(g));
  }
  Node* raw = node.get();
  auto at = block.nodes.end();
  if (before != nullptr) at = std::find_if(block.nodes.begin(), block.nodes.end(), [&](const auto& n) { return n.get() == before; });
  block.nodes.insert(at, std::move(node));
  return raw;
}

namespace {

Node* AddControlFlow(Graph& graph, Block& block, const OpDef& op, std::vector<Value*> inputs, std::vector<void*> stack) {
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->inputs = std::move(inputs);
  node->stack = std::move(stack);
  node->parent = &block;
  for (int i = 0; i < 2; ++i) {
    node->regions.push_back(std::make_unique<Block>());
    node->regions.back()->parent = node.get();
    node->regions.back()->graph = &graph;
  }
  block.nodes.push_back(std::move(node));
  return block.nodes.back().get();
}

}  // namespace

void Graph::AddResults(Node* node, const std::vector<TensorType>& types) {
  for (const TensorType& t : types) {
    node->outputs.push_back(NewValue(t));
    node->outputs.back()->node = node;
    node->outputs.back()->index = static_cast<int>(node->outputs.size()) - 1;
  }
}

Node* Graph::AddIf(Block& block, Value* predicate, std::vector<TensorType> results, std::vector<void*> stack) {
  Node* n = AddControlFlow(*this, block, DefOf<ops::If>(), {predicate}, std::move(stack));
  AddResults(n, results);
  return n;
}

Node* Graph::AddWhile(Block& block, std::vector<Value*> carried, std::vector<void*> stack) {
  std::vector<TensorType> types;
  for (const Value* v : carried) types.push_back(v->type);
  Node* n = AddControlFlow(*this, block, DefOf<ops::While>(), std::move(carried), std::move(stack));
  AddResults(n, types);
  for (auto& region : n->regions)
    for (const TensorType& t : types) AddParam(*region, t);
  return n;
}

Value* Graph::Constant(Block& block, TensorLiteral literal, const Node* before) {
  return AddNode(block, DefOf<ops::Constant>(), MakeAttrs(ops::Constant::Attrs{std::move(literal)}), {}, {}, before)->out();
}

void Graph::SetOutputs(std::vector<Value*> outputs) {
  num_outputs = static_cast<int>(outputs.size());
  body.results = std::move(outputs);
}

void Graph::SetStateResult(int state, Value* value) {
  StateSlot& s = states[state];
  if (s.result < 0) {
    s.result = static_cast<int>(body.results.size());
    body.results.push_back(value);
  } else {
    body.results[s.result] = value;
  }
}

void Graph::ReplaceAllUses(Value* from, Value* to) { ReplaceInBlock(body, from, to); }

void Graph::Erase(Node* node) {
  auto& nodes = node->parent->nodes;
  auto it = std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.get() == node; });
  SINTER_CHECK(it != nodes.end());
  nodes.erase(it);
}

namespace {

void CopyRegion(const Block& from, Block& to, Graph& graph, std::unordered_map<const Value*, Value*>& map) {
  for (const auto& p : from.params) map[p.get()] = graph.AddParam(to, p->type, p->name);
  to.results = CloneInto(from, to, map);
}

}  // namespace

std::vector<Value*> CloneInto(const Block& from, Block& to, std::unordered_map<const Value*, Value*>& map) {
  auto mapped = [&](Value* v) {
    auto it = map.find(v);
    return it == map.end() ? v : it->second;
  };
  for (const auto& n : from.nodes) {
    std::vector<Value*> inputs;
    for (Value* v : n->inputs) inputs.push_back(mapped(v));
    to.graph->CloneNode(*n, to, std::move(inputs), map);
  }
  std::vector<Value*> results;
  for (Value* v : from.results) results.push_back(mapped(v));
  return results;
}

Node* Graph::CloneNode(const Node& n, Block& to, std::vector<Value*> inputs, std::unordered_map<const Value*, Value*>& map) {
  auto copy = std::make_unique<Node>();
  copy->op = n.op;
  copy->attrs = n.attrs;
  copy->inputs = std::move(inputs);
  copy->stack = n.stack;
  copy->origin = n.origin;
  copy->source = n.source;
  copy->parent = &to;
  for (const auto& o : n.outputs) {
    copy->outputs.push_back(NewValue(o->type));
    Value* v = copy->outputs.back().get();
    v->node = copy.get();
    v->index = o->index;
    map[o.get()] = v;
  }
  Node* raw = copy.get();
  to.nodes.push_back(std::move(copy));
  for (const auto& r : n.regions) {
    raw->regions.push_back(std::make_unique<Block>());
    raw->regions.back()->parent = raw;
    raw->regions.back()->graph = to.graph;
    CopyRegion(*r, *raw->regions.back(), *this, map);
  }
  return raw;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto g = std::make_unique<Graph>();
  g->name = name;
  g->num_args = num_args;
  g->num_outputs = num_outputs;
  g->states = states;
  g->guards = guards;
  g->numerics = numerics;
  std::unordered_map<const Value*, Value*> map;
  for (const auto& p : body.params) map[p.get()] = g->AddParam(g->body, p->type, p->name);
  g->body.results = CloneInto(body, g->body, map);
  return g;
}

std::vector<Dim> Graph::Symbols() const {
  std::vector<Dim> all;
  auto add = [&](const TensorType& t) {
    for (Dim d : t.shape)
      for (Dim s : d.Symbols())
        if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  };
  for (const auto& p : body.params) add(p->type);
  ForEachNode(*this, [&](Node& n) {
    for (const auto& o : n.outputs) add(o->type);
  });
  std::sort(all.begin(), all.end(), [](Dim a, Dim b) { return a.symbol_name() < b.symbol_name(); });
  return all;
}

int Graph::NumNodes() const {
  int n = 0;
  ForEachNode(*this, [&](Node&) { ++n; });
  return n;
}

void ForEachNode(const Graph& graph, const std::function<void(Node&)>& fn) { ForEachInBlock(graph.body, fn); }

std::unordered_map<const Value*, int> CountUses(const Graph& graph) {
  std::unordered_map<const Value*, int> uses;
  for (const Value* v : graph.body.results) ++uses[v];
  ForEachNode(graph, [&](Node& n) {
    for (const Value* v : n.inputs) ++uses[v];
    for (const auto& r : n.regions)
      for (const Value* v : r->results) ++uses[v];
  });
  return uses;
}

std::vector<Var> GraphBuilder::Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) {
  std::vector<Value*> values;
  for (const Var& v : inputs) values.push_back(Unwrap(v));
  Node* n = block_->graph->AddNode(*block_, op, std::move(attrs), std::move(values), stack_, before_);
  n->source = source_;
  n->origin = origin_;
  std::vector<Var> out;
  for (const auto& o : n->outputs) out.push_back(Wrap(o.get()));
  return out;
}

void GraphBuilder::SetStack(std::vector<void*> stack, std::string source, std::string origin) {
  stack_ = std::move(stack);
  source_ = std::move(source);
  origin_ = std::move(origin);
}

void ReplacedValues::Apply(Block& block) const {
  if (empty()) return;
  for (auto& n : block.nodes) {
    Apply(n->inputs);
    for (auto& r : n->regions) Apply(*r);
  }
  Apply(block.results);
}

Block::Nodes::iterator DecomposeNode(Block& block, Block::Nodes::iterator at, ReplacedValues* replaced) {
  Node& n = **at;
  const bool first = at == block.nodes.begin();
  const auto previous = first ? at : std::prev(at);
  GraphBuilder builder(block, &n);
  builder.SetStack(n.stack, n.source, n.origin.empty() ? n.op->name : n.origin);
  std::vector<Var> in;
  for (Value* v : n.inputs) in.push_back(builder.Wrap(v));
  DecomposeCtx ctx{*n.op, n.op->AttrsOrDefault(n.attrs), in, {}};
  n.op->decompose(ctx);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    Value* by = GraphBuilder::Unwrap(ctx.out[i]);
    block.graph->ReplaceAllUses(n.out(static_cast<int>(i)), by);
    if (replaced != nullptr) replaced->Add(n.out(static_cast<int>(i)), by);
  }
  if (replaced != nullptr) replaced->Keep(std::move(*at));
  block.nodes.erase(at);
  return first ? block.nodes.begin() : std::next(previous);
}

namespace {

bool DecomposeBlock(Block& block, const std::function<bool(const Node&)>& keep) {
  bool changed = false;
  for (auto it = block.nodes.begin(); it != block.nodes.end();) {
    Node* n = it->get();
    for (auto& r : n->regions) changed |= DecomposeBlock(*r, keep);
    if (n->op->kind != OpKind::kComposite || (keep && keep(*n))) {
      ++it;
      continue;
    }
    it = DecomposeNode(block, it);  // composites among the parts are met next
    changed = true;
  }
  return changed;
}

}  // namespace

bool DecomposeComposites(Graph& graph, const std::function<bool(const Node&)>& keep) { return DecomposeBlock(graph.body, keep); }

}  // namespace sinter
