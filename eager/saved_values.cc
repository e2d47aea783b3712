#include "sinter/eager/saved_values.h"

#include <array>
#include <deque>

#include "absl/hash/hash.h"

namespace sinter::eager {
namespace {

// Carries out a gradient rule on types and notes which of the first `n` values ops read.
class TypeBuilder final : public Builder {
 public:
  Var Add(TensorType type) {
    types_.push_back(std::move(type));
    read_.push_back(false);
    return Var(this, types_.size() - 1);
  }
  bool read(size_t i) const { return read_[i]; }
  void MarkRead(const Var& v) {
    if (v) read_[v.id()] = true;
  }

  std::vector<Var> Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) override {
    std::vector<TensorType> in;
    for (const Var& v : inputs) {
      MarkRead(v);
      in.push_back(types_[v.id()]);
    }
    std::vector<Var> out;
    for (TensorType& t : InferTypes(op, std::span<const TensorType>(in), attrs))
      out.push_back(Add(std::move(t)));
    return out;
  }
  const TensorType& Type(const Var& v) override { return types_[v.id()]; }

 private:
  std::deque<TensorType> types_;
  std::vector<bool> read_;
};

struct Key {
  const OpDef* op = nullptr;
  AttrPtr attrs;
  uint64_t wanted = 0;
  absl::InlinedVector<ConcreteType, 4> types;
  friend bool operator==(const Key& a, const Key& b) {
    return a.op == b.op && a.wanted == b.wanted && a.types == b.types && AttrsEqual(a.attrs, b.attrs);
  }
  size_t Hash() const {
    size_t h = reinterpret_cast<uintptr_t>(op) * 0x9e3779b97f4a7c15u + wanted;
    for (const ConcreteType& t : types)
      for (int64_t d : t.shape) h = (h ^ static_cast<size_t>(d)) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
  }
};

SavedValues FromPointwise(const OpDef& op, const AttrPtr& attrs, Operands in) {
  SavedValues needed;
  for (int i = 0; i < op.inputs; ++i) {
    if (!in[i]->requires_grad) continue;
    for (int k : DerivativeOf(op, i, attrs).operands) {
      if (k == op.inputs)
        needed.outputs |= 1;
      else if (k >= 0)
        needed.inputs |= uint64_t{1} << k;
    }
  }
  return needed;
}

SavedValues FromRule(const OpDef& op, const AttrPtr& attrs, Operands in, const Results& out) {
  TypeBuilder b;
  std::vector<Var> ins, outs, gradients;
  GradCtx c{op, attrs, {}, {}, {}, {}, {}};
  for (TensorImpl* t : in) {
    ins.push_back(b.Add(SymbolicTypeOf(*t)));
    c.wanted.push_back(t->requires_grad);
  }
  for (const ImplPtr& t : out) outs.push_back(b.Add(SymbolicTypeOf(*t)));
  for (const ImplPtr& t : out) gradients.push_back(IsFloating(t->dtype) ? b.Add(SymbolicTypeOf(*t)) : Var());
  c.in = ins, c.out = outs, c.grad_out = gradients;
  ApplyGradRule(c);
  for (const Var& v : c.grad_in) b.MarkRead(v);  // a rule may give an operand itself
  SavedValues needed;
  for (size_t i = 0; i < in.size() && i < 64; ++i) needed.inputs |= static_cast<uint64_t>(b.read(i)) << i;
  for (size_t i = 0; i < out.size() && i < 64; ++i)
    needed.outputs |= static_cast<uint64_t>(b.read(in.size() + i)) << i;
  return needed;
}

}  // namespace

SavedValues NeededByGradient(const OpDef& op, const AttrPtr& attrs, Operands in, const Results& out) {
  const bool pointwise = op.kind == OpKind::kPointwise && !op.grad;
  Key key{&op, attrs, 0, {}};
  for (size_t i = 0; i < in.size(); ++i) {
    key.wanted = key.wanted * 2 + in[i]->requires_grad;
    if (!pointwise) key.types.push_back(in[i]->type());
  }
  struct Entry {
    Key key;
    SavedValues needed;
  };
  static thread_local std::array<Entry, 512> known;
  Entry& e = known[key.Hash() % known.size()];
  if (e.key.op == nullptr || !(e.key == key)) {
    SavedValues needed = pointwise ? FromPointwise(op, attrs, in) : FromRule(op, attrs, in, out);
    e = {std::move(key), needed};
  }
  return e.needed;
}

}  // namespace sinter::eager
