#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/passes/passes.h"

namespace sinter {
namespace {

// A parameter or state of the graph, or a constant: known before the image is.
bool IsFixed(const Graph& g, const Value* v) {
  if (v->node != nullptr) return v->node->op->kind == OpKind::kConstant;
  return v->block == &g.body && v->index >= g.num_args;
}

bool FoldOne(Graph& graph, Block& block, Node& norm, const std::unordered_map<const Value*, int>& known_uses) {
  if (norm.op != &DefOf<ops::BatchNorm>()) return false;
  // What an earlier fold made is not counted: it stays as it is.
  auto uses = [&](const Value* v) {
    auto it = known_uses.find(v);
    return it == known_uses.end() ? 2 : it->second;
  };
  Value* image = norm.inputs[0];
  // conv2d, perhaps with a bias: add(conv, reshape(bias)).
  Node* conv = image->node;
  Value* bias = nullptr;
  if (conv != nullptr && conv->op == &DefOf<ops::Add>() && uses(image) == 1) {
    bias = conv->inputs[1];
    Node* shaped = bias->node;
    if (shaped == nullptr || shaped->op != &DefOf<ops::Reshape>() || !IsFixed(graph, shaped->inputs[0]) || shaped->inputs[0]->type.rank() != 1) return false;
    // A bias of the channels has the shape [channels, 1, 1], perhaps under a batch of one; others are of positions.
    const SymShape& shape = shaped->out()->type.shape;
    const size_t at = shape.size() == 4 && shape[0] == Dim(1) ? 1 : 0;
    if (shape.size() != at + 3 || !(shape[at] == norm.inputs[1]->type.shape[0]) || !(shape[at + 1] == Dim(1)) || !(shape[at + 2] == Dim(1))) return false;
    bias = shaped->inputs[0];
    conv = conv->inputs[0]->node;
  }
  if (conv == nullptr || conv->op != &DefOf<ops::Conv2d>() || conv->parent != &block || uses(conv->out()) != 1 || !IsFixed(graph, conv->inputs[1])) return false;
  for (int i = 1; i < 5; ++i)
    if (!IsFixed(graph, norm.inputs[i])) return false;

  GraphBuilder b(block, &norm);
  b.SetStack(norm.stack, norm.source, "fold_batch_norm");
  Var weight = b.Wrap(norm.inputs[1]), shift = b.Wrap(norm.inputs[2]), mean = b.Wrap(norm.inputs[3]), variance = b.Wrap(norm.inputs[4]);
  const double eps = norm.op->AttrsOrDefault(norm.attrs)->As<ops::BatchNorm::Attrs>().eps;
  const Dim channels = shift.shape()[0];
  Var scale = mul(weight, rsqrt(add(variance, ScalarLike(variance, eps))));
  Var scaled = mul(b.Wrap(conv->inputs[1]), reshape(scale, {.shape = {channels, 1, 1, 1}}));
  Var centre = bias ? sub(b.Wrap(bias), mean) : neg(mean);
  Var offset = add(mul(centre, scale), shift);
  Var y = conv2d(b.Wrap(conv->inputs[0]), scaled, conv->op->AttrsOrDefault(conv->attrs)->As<ops::Conv2dAttrs>());
  y = add(y, reshape(offset, {.shape = {channels, 1, 1}}));
  graph.ReplaceAllUses(norm.out(), GraphBuilder::Unwrap(y));
  return true;
}

}  // namespace

bool FoldBatchNorm(Graph& graph) {
  bool changed = false;
  const auto uses = CountUses(graph);
  std::vector<Node*> norms;
  ForEachNode(graph, [&](Node& n) {
    if (n.op == &DefOf<ops::BatchNorm>()) norms.push_back(&n);
  });
  for (Node* n : norms) changed |= FoldOne(graph, *n->parent, *n, uses);
  if (changed) EliminateDeadCode(graph);
  return changed;
}

}  // namespace sinter
