#include "sinter/eager/autograd.h"

#include <algorithm>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sinter/eager/dispatch.h"
#include "sinter/eager/eager_builder.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/strings.h"

namespace sinter::eager {
namespace {

bool OwnsDenseMemory(const TensorImpl& t) {
  absl::InlinedVector<int, kMaxRank> order(t.shape.size());
  return t.unique() && t.storage->unique() && DenseOrder(t.shape, t.strides, std::span<int>(order));
}

void AddInto(TensorImpl& cell, TensorImpl& g) {
  TensorImpl* in[] = {&cell, &g};
  ComputePointwise(DefOf<ops::Add>(), nullptr, in, &cell);
  cell.storage->MarkWritten();
}

class Engine {
 public:
  explicit Engine(BackwardOptions options) : options_(options) {}

  // Restricts the work to what leads to these places.
  void SetTargets(std::span<const GradientSeed> seeds, std::span<const TapeEdge> targets);
  void Run(std::vector<GradientSeed> seeds);

  // Gradients of leaves, in the order of first contribution.
  std::vector<std::pair<ImplPtr, ImplPtr>> leaves;
  absl::flat_hash_map<std::pair<const TapeNode*, uint32_t>, ImplPtr> target_results;

 private:
  using Gradients = absl::InlinedVector<ImplPtr, 1>;

  void Contribute(const TapeEdge& edge, ImplPtr g);
  void Accumulate(ImplPtr& sum, ImplPtr g);
  void RunNode(TapeNode& node, Gradients gradients);
  std::vector<ImplPtr> RunOp(TapeNode& node, const Gradients& gradients, const std::vector<bool>& wanted);
  bool Leads(const TapeEdge& e) const {
    if (!restricted_) return e.wanted();
    if (e.node) return useful_.contains(e.node.get()) || target_nodes_.contains({e.node.get(), e.index});
    return e.leaf && target_leaves_.contains(e.leaf.get());
  }

  struct Later {
    bool operator()(const TapeNode* a, const TapeNode* b) const { return a->sequence < b->sequence; }
  };

  BackwardOptions options_;
  std::priority_queue<TapeNode*, std::vector<TapeNode*>, Later> queue_;
  absl::flat_hash_map<TapeNode*, Gradients> pending_;
  absl::flat_hash_map<TensorImpl*, size_t> leaf_index_;
  bool restricted_ = false;
  absl::flat_hash_set<const TapeNode*> useful_;  // some operand leads to a target
  absl::flat_hash_set<std::pair<const TapeNode*, uint32_t>> target_nodes_;
  absl::flat_hash_set<const TensorImpl*> target_leaves_;
};

void Engine::SetTargets(std::span<const GradientSeed> seeds, std::span<const TapeEdge> targets) {
  restricted_ = true;
  for (const TapeEdge& t : targets) {
    if (t.node)
      target_nodes_.insert({t.node.get(), t.index});
    else if (t.leaf)
      target_leaves_.insert(t.leaf.get());
  }
  absl::flat_hash_set<const TapeNode*> seen;
  std::vector<const TapeNode*> nodes, stack;
  auto visit = [&](const TapeEdge& e) {
    if (e.node && seen.insert(e.node.get()).second) stack.push_back(e.node.get());
  };
  for (const GradientSeed& s : seeds) visit(s.edge);
  while (!stack.empty()) {
    const TapeNode* n = stack.back();
    stack.pop_back();
    nodes.push_back(n);
    for (const TapeEdge& e : n->edges) visit(e);
  }
  std::sort(nodes.begin(), nodes.end(), Later());  // operands before their users
  for (const TapeNode* n : nodes)
    if (std::any_of(n->edges.begin(), n->edges.end(), [&](const TapeEdge& e) { return Leads(e); }))
      useful_.insert(n);
}

void Engine::Accumulate(ImplPtr& sum, ImplPtr g) {
  if (!sum) {
    sum = std::move(g);
  } else if (!options_.create_graph && OwnsDenseMemory(*sum) && sum->dtype == g->dtype &&
             sum->shape == g->shape) {
    AddInto(*sum, *g);
  } else {
    TensorImpl* in[] = {sum.get(), g.get()};
    sum = Dispatch1(DefOf<ops::Add>(), nullptr, in);
  }
}

void Engine::Contribute(const TapeEdge& edge, ImplPtr g) {
  if (edge.node) {
    auto [it, fresh] = pending_.try_emplace(edge.node.get());
    if (fresh) {
      it->second.resize(edge.node->num_outputs());
      queue_.push(edge.node.get());
    }
    Accumulate(it->second[edge.index], std::move(g));
  } else if (edge.leaf) {
    auto [it, fresh] = leaf_index_.try_emplace(edge.leaf.get(), leaves.size());
    if (fresh) leaves.emplace_back(edge.leaf, nullptr);
    Accumulate(leaves[it->second].second, std::move(g));
  }
}

void Engine::Run(std::vector<GradientSeed> seeds) {
  QuietNoGrad off(!options_.create_graph);
  std::optional<EnableGradGuard> on;
  if (options_.create_graph) on.emplace();
  for (GradientSeed& s : seeds) Contribute(s.edge, std::move(s.gradient));
  while (!queue_.empty()) {
    TapeNode* node = queue_.top();
    queue_.pop();
    auto it = pending_.find(node);
    Gradients gradients = std::move(it->second);
    pending_.erase(it);
    RunNode(*node, std::move(gradients));
  }
}

void Engine::RunNode(TapeNode& node, Gradients gradients) {
  for (uint32_t i = 0; i < gradients.size(); ++i)
    if (restricted_ && gradients[i] && target_nodes_.contains({&node, i}))
      target_results[{&node, i}] = gradients[i];
  if (restricted_ && !useful_.contains(&node)) return;
  if (!restricted_)
    for (auto& [index, kept] : node.retained)
      if (gradients[index])
        *kept = *kept ? Dispatch1(DefOf<ops::Add>(), nullptr, std::array{kept->get(), gradients[index].get()})
                      : gradients[index];
  if (node.released) {
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat("backward: what ", node.name(),
                       " saved was freed by an earlier backward over the same values; give that one "
                       "{.retain_graph = true}, or compute the values anew"));
  }
  std::vector<bool> wanted;
  for (const TapeEdge& e : node.edges) wanted.push_back(Leads(e));
  std::vector<ImplPtr> in;
  try {
    in = node.custom ? node.custom->Run(gradients, wanted, options_.create_graph)
                     : RunOp(node, gradients, wanted);
  } catch (const Error& e) {
    if (node.stack.empty()) throw;
    throw e.WithFrames(node.stack);
  }
  gradients.clear();
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i] || !wanted[i]) continue;
    Contribute(node.edges[i], std::move(in[i]));
  }
  if (!options_.retain_graph && !options_.create_graph) node.ReleaseSaved();
}

std::vector<ImplPtr> Engine::RunOp(TapeNode& node, const Gradients& gradients,
                                   const std::vector<bool>& wanted) {
  EagerBuilder builder;
  std::vector<Var> in, out, grad_out;
  in.reserve(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    in.push_back(builder.WrapSaved(node.inputs[i], node.inputs[i].value, node, EagerBuilder::Role::kOperand,
                                   static_cast<int>(i)));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ImplPtr value = node.outputs[i].value;
    if (value && options_.create_graph) {
      value = NewAlias(*value, value->shape, value->strides, value->offset);
      value->node = Ref<TapeNode>(&node);
      value->output_index = static_cast<uint32_t>(i);
      value->requires_grad = true;
    }
    out.push_back(builder.WrapSaved(node.outputs[i], std::move(value), node, EagerBuilder::Role::kResult,
                                    static_cast<int>(i)));
    grad_out.push_back(builder.Wrap(gradients[i]));
  }
  GradCtx c{*node.op, node.attrs, in, out, grad_out, wanted, {}};
  ApplyGradRule(c);
  std::vector<ImplPtr> r;
  for (size_t i = 0; i < c.grad_in.size(); ++i) {
    r.push_back(EagerBuilder::Unwrap(c.grad_in[i]));
    if (r.back() && wanted[i] && r.back()->symbolic == nullptr)
      SINTER_CHECK(r.back()->shape.size() == in[i].shape().size() &&
                       std::equal(r.back()->shape.begin(), r.back()->shape.end(), in[i].shape().begin()),
                   StrCat("the gradient of operand ", i, " of ", node.name(), " has shape ",
                          ShapeToString(r.back()->shape)));
  }
  return r;
}

// One backward's sum for a leaf goes into the leaf's gradient.
void Deposit(TensorImpl& leaf, ImplPtr sum, bool create_graph) {
  if (create_graph) {
    if (!leaf.grad) {
      leaf.grad = std::move(sum);
    } else {
      TensorImpl* in[] = {leaf.grad.get(), sum.get()};
      EnableGradGuard on;
      leaf.grad = Dispatch1(DefOf<ops::Add>(), nullptr, in);
    }
    return;
  }
  if (leaf.grad) {
    if (leaf.grad->node)
      leaf.grad = NewAlias(*leaf.grad, leaf.grad->shape, leaf.grad->strides, leaf.grad->offset);
    return AddInto(*leaf.grad, *sum);
  }
  if (OwnsDenseMemory(*sum) && !sum->requires_grad) {
    leaf.grad = std::move(sum);
  } else {  // shared with another leaf's gradient, or stretched
    leaf.grad = NewTensor(sum->dtype, sum->shape);
    CopyValues(*sum, *leaf.grad);
  }
}

}  // namespace

ImplPtr OnesLike(const TensorImpl& t) {
  ImplPtr one = NewTensor(kFloat32, {});
  *reinterpret_cast<float*>(one->data()) = 1;
  one = t.dtype == kFloat32 ? one : Converted(*one, t.dtype);
  return NewAlias(*one, t.shape, RowMajorStrides(t.shape), 0);
}

void RunBackward(std::vector<GradientSeed> seeds, BackwardOptions options) {
  Engine engine(options);
  engine.Run(std::move(seeds));
  for (auto& [leaf, sum] : engine.leaves) Deposit(*leaf, std::move(sum), options.create_graph);
}

std::vector<ImplPtr> RunGradients(std::vector<GradientSeed> seeds, std::span<const TapeEdge> targets,
                                  BackwardOptions options) {
  Engine engine(options);
  engine.SetTargets(seeds, targets);
  engine.Run(std::move(seeds));
  std::vector<ImplPtr> r;
  for (const TapeEdge& t : targets) {
    ImplPtr g;
    if (t.node) {
      if (auto it = engine.target_results.find({t.node.get(), t.index}); it != engine.target_results.end())
        g = it->second;
    } else {
      for (auto& [leaf, sum] : engine.leaves)
        if (leaf == t.leaf) g = sum;
    }
    r.push_back(std::move(g));
  }
  return r;
}

}  // namespace sinter::eager
