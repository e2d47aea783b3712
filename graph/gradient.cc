#include "sinter/graph/gradient.h"

#include <algorithm>
#include <unordered_set>

#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

class Differentiator {
 public:
  Differentiator(Block& block, const Node* before) : block_(block), builder_(block, before), before_(before) {}

  /// `local`: values from outside of the block are ends, also where they depend on one another; `sums` are their gradients so far.
  std::vector<Value*> Run(std::span<Value* const> outputs, std::span<Value* const> seeds, std::span<Value* const> wrt, bool local = false,
                          std::span<Value* const> sums = {}) {
    // This block up to here, and the blocks around it up to the nodes that hold it; outermost first.
    chain_ = {{&block_, before_}};
    for (Block* b = &block_; !local && b->parent != nullptr; b = b->parent->parent) chain_.insert(chain_.begin(), {b->parent->parent, b->parent});
    for (auto [block, before] : chain_) DecomposeUngraded(*block, before);
    std::vector<Value*> targets;
    for (Value* v : wrt) targets.push_back(replaced_.Present(v));
    wrt = targets;
    std::vector<Node*> nodes = NodesBefore();
    std::unordered_set<const Value*> active = DependentOn(nodes, wrt);
    std::unordered_map<const Value*, Value*> grads;
    for (size_t k = 0; k < sums.size(); ++k)
      if (sums[k]) grads[wrt[k]] = replaced_.Present(sums[k]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value* of = replaced_.Present(outputs[i]);
      if (!active.contains(of)) continue;
      Value* seed = seeds[i] ? replaced_.Present(seeds[i]) : GraphBuilder::Unwrap(FullLike(builder_.Wrap(of), 1));
      Accumulate(grads, of, seed);
    }
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) Backpropagate(**it, active, grads);
    std::vector<Value*> results;
    for (Value* v : wrt) {
      auto it = grads.find(v);
      results.push_back(it == grads.end() ? nullptr : it->second);
    }
    return results;
  }

 private:
  // Composites without a rule of their own are differentiated by their parts.
  void DecomposeUngraded(Block& block, const Node* before) {
    for (auto it = block.nodes.begin(); it != block.nodes.end() && it->get() != before;) {
      const OpDef& op = *(*it)->op;
      if (op.kind != OpKind::kComposite || op.grad || op.no_grad) ++it;
      else it = DecomposeNode(block, it, &replaced_);  // parts may be composites themselves
    }
  }

  std::vector<Node*> NodesBefore() {
    std::vector<Node*> nodes;
    for (auto [block, before] : chain_)
      for (const auto& n : block->nodes) {
        if (n.get() == before) break;
        nodes.push_back(n.get());
      }
    return nodes;
  }

  static bool RegionReads(const Block& region, const std::unordered_set<const Value*>& active) {
    for (const auto& n : region.nodes) {
      for (const Value* v : n->inputs)
        if (active.contains(v)) return true;
      for (const auto& r : n->regions)
        if (RegionReads(*r, active)) return true;
    }
    return std::any_of(region.results.begin(), region.results.end(), [&](const Value* v) { return active.contains(v); });
  }

  static std::unordered_set<const Value*> DependentOn(const std::vector<Node*>& nodes, std::span<Value* const> wrt) {
    std::unordered_set<const Value*> active(wrt.begin(), wrt.end());
    for (const Node* n : nodes) {
      if (n->op->no_grad) continue;
      bool any = std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return active.contains(v); });
      for (const auto& r : n->regions) any = any || RegionReads(*r, active);
      if (!any) continue;
      for (const auto& o : n->outputs)
        if (IsFloating(o->type.dtype)) active.insert(o.get());
    }
    return active;
  }

  void Accumulate(std::unordered_map<const Value*, Value*>& grads, const Value* v, Value* g) {
    auto [it, fresh] = grads.emplace(v, g);
    if (!fresh) it->second = GraphBuilder::Unwrap(add(builder_.Wrap(it->second), builder_.Wrap(g)));
  }

  void Backpropagate(Node& n, const std::unordered_set<const Value*>& active, std::unordered_map<const Value*, Value*>& grads) {
    std::vector<Var> grad_out;
    bool any = false;
    for (const auto& o : n.outputs) {
      auto it = grads.find(o.get());
      grad_out.push_back(it == grads.end() ? Var() : builder_.Wrap(it->second));
      any = any || it != grads.end();
    }
    if (!any) return;
    builder_.SetStack(n.stack, n.source, n.op->name + " gradient");
    if (n.op == &DefOf<ops::If>()) return BackpropagateIf(n, active, grads);
    if (n.op->kind == OpKind::kControlFlow) {
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("the gradient of the loop at ", n.Location(), " is asked for: a data-dependent loop keeps no history of its turns. ",
                         "Call backward() inside the loop body, or write a loop of a fixed number of turns"));
    }
    std::vector<Var> in, out;
    for (Value* v : n.inputs) in.push_back(builder_.Wrap(v));
    for (const auto& o : n.outputs) out.push_back(builder_.Wrap(o.get()));
    std::vector<bool> wanted;
    for (const Value* v : n.inputs) wanted.push_back(active.contains(v) && IsFloating(v->type.dtype));
    GradCtx ctx{*n.op, n.op->AttrsOrDefault(n.attrs), in, out, grad_out, wanted, {}};
    ApplyGradRule(ctx);
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (wanted[i] && ctx.grad_in[i]) Accumulate(grads, n.inputs[i], GraphBuilder::Unwrap(ctx.grad_in[i]));
  }

  // Values of outside that a region reads and that want a gradient, in order of first use.
  static void Captured(const Block& region, const std::unordered_set<const Value*>& active, std::vector<Value*>& found) {
    auto add = [&](Value* v) {
      if (active.contains(v) && std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
    };
    for (const auto& n : region.nodes) {
      for (Value* v : n->inputs) add(v);
      for (const auto& r : n->regions) Captured(*r, active, found);
    }
    for (Value* v : region.results) add(v);
  }

  // A second `if` on the same predicate: each branch computes its values again and then their gradients.
  void BackpropagateIf(Node& n, const std::unordered_set<const Value*>& active, std::unordered_map<const Value*, Value*>& grads) {
    std::vector<Value*> captured;
    for (const auto& r : n.regions) Captured(*r, active, captured);
    if (captured.empty()) return;
    std::vector<TensorType> types;
    for (const Value* v : captured) types.push_back(v->type);
    Graph& graph = *block_.graph;
    Node* backward = graph.AddIf(block_, n.inputs[0], types, n.stack);
    MoveBefore(backward);
    for (int branch : {0, 1}) {
      Block& to = *backward->regions[branch];
      std::unordered_map<const Value*, Value*> map;
      to.results = CloneInto(*n.regions[branch], to, map);  // kept as results while composites among them are decomposed
      std::vector<Value*> outputs, seeds, sums;
      for (size_t i = 0; i < n.outputs.size(); ++i) {
        auto seed = grads.find(n.out(static_cast<int>(i)));
        if (seed == grads.end()) continue;
        outputs.push_back(to.results[i]);
        seeds.push_back(seed->second);
      }
      for (Value* v : captured) {
        auto sum = grads.find(v);
        sums.push_back(sum == grads.end() ? nullptr : sum->second);
      }
      std::vector<Value*> total = Differentiator(to, nullptr).Run(outputs, seeds, captured, true, sums);
      GraphBuilder inner(to);
      for (size_t k = 0; k < captured.size(); ++k)
        if (total[k] == nullptr) total[k] = GraphBuilder::Unwrap(FullLike(inner.Wrap(captured[k]), 0));
      to.results = total;
    }
    for (size_t k = 0; k < captured.size(); ++k) grads[captured[k]] = backward->out(static_cast<int>(k));
  }

  void MoveBefore(Node* node) {
    if (before_ == nullptr) return;
    auto& nodes = block_.nodes;
    auto from = std::find_if(nodes.begin(), nodes.end(), [&](const auto& x) { return x.get() == node; });
    auto to = std::find_if(nodes.begin(), nodes.end(), [&](const auto& x) { return x.get() == before_; });
    nodes.splice(to, nodes, from);
  }

  Block& block_;
  GraphBuilder builder_;
  const Node* before_;
  std::vector<std::pair<Block*, const Node*>> chain_;
  ReplacedValues replaced_;
};

bool LowerInBlock(Block& block) {
  bool changed = false;
  for (auto it = block.nodes.begin(); it != block.nodes.end();) {
    Node* n = it->get();
    ++it;
    for (auto& r : n->regions) changed |= LowerInBlock(*r);
    if (n->op != &DefOf<ops::Gradient>()) continue;
    const auto& a = n->op->AttrsOrDefault(n->attrs)->As<ops::Gradient::Attrs>();
    const size_t first = ops::Gradient::FirstInput(a), outputs = static_cast<size_t>(a.outputs);
    const std::vector<Value*> operands = n->inputs;  // the node's own change as composites are decomposed
    const std::span<Value* const> all(operands);
    std::vector<Value*> seeds(outputs, nullptr);
    if (a.seeded) seeds.assign(all.begin() + a.outputs, all.begin() + 2 * a.outputs);
    std::vector<Value*> grads = Differentiate(block, all.first(outputs), seeds, all.subspan(first), n);
    GraphBuilder builder(block, n);
    builder.SetStack(n->stack, n->source, "gradient");
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] == nullptr) grads[i] = GraphBuilder::Unwrap(FullLike(builder.Wrap(n->inputs[first + i]), 0));
      block.graph->ReplaceAllUses(n->out(static_cast<int>(i)), grads[i]);
    }
    block.graph->Erase(n);
    changed = true;
  }
  return changed;
}

}  // namespace

std::vector<Value*> Differentiate(Block& block, Value* of, Value* seed, std::span<Value* const> wrt, const Node* before) {
  return Differentiate(block, std::span(&of, 1), std::span(&seed, 1), wrt, before);
}

std::vector<Value*> Differentiate(Block& block, std::span<Value* const> of, std::span<Value* const> seeds, std::span<Value* const> wrt, const Node* before) {
  return Differentiator(block, before).Run(of, seeds, wrt);
}

bool LowerGradients(Graph& graph) { return LowerInBlock(graph.body); }

}  // namespace sinter
