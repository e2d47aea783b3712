#include "sinter/eager/tape.h"

#include <atomic>

#include "sinter/eager/grad_mode.h"
#include "sinter/eager/saved_values.h"
#include "sinter/eager/thread_state.h"
#include "sinter/graph/call_stack.h"

namespace sinter {

void TapeNode::ReleaseSaved() {
  released = true;
  for (SavedTensor& s : inputs)
    if (s.value) s.type = s.value->type(), s.value.reset();
  for (SavedTensor& s : outputs)
    if (s.value) s.type = s.value->type(), s.value.reset();
  if (custom) custom->Release();
}

// A chain may be hundreds of thousands of nodes long, so that nodes that die while another dies wait in a
// list.
void TapeNode::Destroy(TapeNode* node) noexcept {
  static thread_local std::vector<TapeNode*>* waiting = nullptr;
  if (waiting != nullptr) {
    waiting->push_back(node);
    return;
  }
  std::vector<TapeNode*> list = {node};
  waiting = &list;
  while (!list.empty()) {
    TapeNode* next = list.back();
    list.pop_back();
    delete next;  // may append to the list
  }
  waiting = nullptr;
}

namespace eager {
namespace {

uint64_t NextSequence() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void Cut(const OpDef& op, Results& out) {
  auto cut = std::make_shared<GradientCut>(GradientCut{GradientCut::kNoGradientOp, &op, CaptureCallStack()});
  for (ImplPtr& t : out) t->cut = cut;
}

// A result as the tape keeps it: another cell on the same memory, or the tape would hold itself.
ImplPtr KeepResult(const TensorImpl& t) { return NewAlias(t, t.shape, t.strides, t.offset); }

void Attach(const Ref<TapeNode>& node, std::span<ImplPtr> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (!IsFloating(out[i]->dtype)) continue;
    out[i]->requires_grad = true;
    out[i]->node = node;
    out[i]->output_index = static_cast<uint32_t>(i);
    if (out[i]->is_view) out[i]->storage->MarkTrackedView();
  }
}

}  // namespace

TapeEdge EdgeOf(TensorImpl& t) {
  TapeEdge e;
  if (!t.requires_grad) return e;
  if (t.node)
    e.node = t.node;
  else
    e.leaf = ImplPtr(&t);
  e.index = t.output_index;
  return e;
}

void RecordOnTape(const OpDef& op, const AttrPtr& attrs, Operands in, Results& out) {
  bool floating = false;
  for (const ImplPtr& t : out) floating |= IsFloating(t->dtype);
  if (op.no_grad || !floating) return Cut(op, out);
  Ref<TapeNode> node(new TapeNode());
  node->op = &op;
  node->attrs = op.AttrsOrDefault(attrs);
  node->sequence = NextSequence();
  if (eager_state.anomaly) [[unlikely]]
    node->stack = CaptureCallStack();
  const SavedValues needed = NeededByGradient(op, node->attrs, in, out);
  node->edges.resize(in.size());
  node->inputs.resize(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    node->edges[i] = EdgeOf(*in[i]);
    if (needed.Input(i))
      node->inputs[i].value = ImplPtr(in[i]), node->inputs[i].version = in[i]->storage->version();
    else
      node->inputs[i].type = in[i]->type();
  }
  node->outputs.resize(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (needed.Output(i))
      node->outputs[i].value = KeepResult(*out[i]), node->outputs[i].version = out[i]->storage->version();
    else
      node->outputs[i].type = out[i]->type();
  }
  Attach(node, std::span<ImplPtr>(out));
}

Ref<TapeNode> NewCustomNode(std::string name, std::vector<TapeEdge> edges, std::span<const ImplPtr> out,
                            std::unique_ptr<CustomBackward> backward) {
  Ref<TapeNode> node(new TapeNode());
  node->custom_name = std::move(name);
  node->custom = std::move(backward);
  node->custom_outputs = out.size();
  node->sequence = NextSequence();
  if (eager_state.anomaly) node->stack = CaptureCallStack();
  node->edges.assign(std::make_move_iterator(edges.begin()), std::make_move_iterator(edges.end()));
  std::vector<ImplPtr> results(out.begin(), out.end());
  Attach(node, results);
  return node;
}

}  // namespace eager
}  // namespace sinter
