#include <cstring>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "sinter/codegen/lower_op.h"
#include "sinter/eager/compute.h"
#include "sinter/eager/op_kernel.h"

// Ops by their element rule: one kernel for each op, attributes, element types, ranks, layouts, and which
// sizes are 1; any other sizes.
namespace sinter::eager {
namespace {

using KernelPtr = std::shared_ptr<const OpKernel>;
using Order = std::vector<int>;

struct Call {
  const OpDef& op;
  const AttrPtr& attrs;
  Operands in;
  std::span<const ConcreteType> types;
  std::vector<Order> in_orders;
  std::vector<Order> out_orders;
};

struct Key {
  const OpDef* op;
  AttrPtr attrs;
  std::string signature;  // everything else, see Signature
  friend bool operator==(const Key& a, const Key& b) {
    return a.op == b.op && a.signature == b.signature && AttrsEqual(a.attrs, b.attrs);
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.op, k.signature, k.attrs ? k.attrs->Hash() : 0);
  }
};

std::string Signature(const Call& c) {
  std::string s;
  for (size_t i = 0; i < c.in.size(); ++i) {
    s.push_back(static_cast<char>(c.in[i]->dtype));
    s.push_back(static_cast<char>(c.in[i]->shape.size()));
    uint8_t ones = 0;
    for (size_t d = 0; d < c.in[i]->shape.size(); ++d)
      ones |= static_cast<uint8_t>((c.in[i]->shape[d] == 1) << d);
    s.push_back(static_cast<char>(ones));
    for (int d : c.in_orders[i]) s.push_back(static_cast<char>(d));
  }
  for (const Order& o : c.out_orders)
    for (int d : o) s.push_back(static_cast<char>(d));
  return s;
}

// Accepts every guard: the sizes at hand were checked as numbers, and what holds for one call decides nothing
// in the kernel that could be wrong for another that passes its own check.
class AcceptAll final : public GuardSink {
 public:
  void AddGuard(const DimCond&, std::string) override {}
};

struct Compiled {
  std::vector<KernelPtr> outputs;
  bool symbolic = true;
};

Compiled BuildWith(const Call& c, const std::vector<TensorType>& in, const std::vector<TensorType>& out,
                   int symbols) {
  Compiled r;
  for (size_t k = 0; k < out.size(); ++k) {
    r.outputs.push_back(std::make_shared<OpKernel>(
        codegen::KernelFromOp(c.op, c.attrs, in, out, c.in_orders, c.out_orders[k], static_cast<int>(k)),
        symbols));
  }
  return r;
}

Compiled Build(const Call& c) {
  std::vector<TensorType> in;
  int symbols = 0;
  for (const TensorImpl* t : c.in) {
    TensorType type{t->dtype, {}};
    for (int64_t d : t->shape) type.shape.push_back(d == 1 ? Dim(1) : SizeSymbol(symbols)), ++symbols;
    in.push_back(std::move(type));
  }
  AcceptAll sink;
  ScopedGuardSink scope(&sink);
  return BuildWith(c, in, InferTypes(c.op, std::span<const TensorType>(in), c.attrs), symbols);
}

std::shared_ptr<const Compiled> Find(const Call& c) {
  static std::mutex mutex;
  static auto* kernels = new absl::flat_hash_map<Key, std::shared_ptr<const Compiled>>();
  constexpr size_t kMost = 4096;
  Key key{&c.op, c.attrs, Signature(c)};
  static thread_local Key last_key{};
  static thread_local std::shared_ptr<const Compiled> last;
  if (last && last_key == key) return last;
  {
    std::lock_guard lock(mutex);
    if (auto it = kernels->find(key); it != kernels->end()) {
      last_key = std::move(key);
      return last = it->second;
    }
  }
  auto made = std::make_shared<const Compiled>(Build(c));
  std::lock_guard lock(mutex);
  if (kernels->size() >= kMost) kernels->clear();
  return kernels->emplace(std::move(key), std::move(made)).first->second;
}

Order LayoutOf(const TensorImpl& t) {
  Order order(t.shape.size());
  return DenseOrder(t.shape, t.strides, order) ? order : Order();
}

}  // namespace

void ComputeElements(const OpDef& op, const AttrPtr& attrs, Operands in, std::span<const ConcreteType> types,
                     Results& out) {
  Call c{op, attrs, in, types, {}, {}};
  absl::InlinedVector<ImplPtr, 4> packed;  // kept alive; [i] is empty where operand i is used as it is
  absl::InlinedVector<TensorImpl*, 4> operands;
  for (TensorImpl* t : in) {
    Order order = LayoutOf(*t);
    ImplPtr copy;
    if (order.size() != t->shape.size()) {
      copy = RowMajor(ImplPtr(t));
      order = RowMajorOrder(t->rank());
    }
    operands.push_back(copy ? copy.get() : t);
    packed.push_back(std::move(copy));
    c.in_orders.push_back(std::move(order));
  }
  c.in = operands;
  for (const ConcreteType& t : types) {
    // Windows keep the layout of the image.
    const bool like_input = op.kind == OpKind::kWindow && !in.empty() && t.rank() == in[0]->rank();
    c.out_orders.push_back(like_input ? c.in_orders[0] : RowMajorOrder(t.rank()));
    out.push_back(NewTensor(t.dtype, t.shape, DenseStrides(t.shape, c.out_orders.back())));
  }
  std::shared_ptr<const Compiled> kernel = Find(c);
  absl::InlinedVector<int64_t, 16> values;
  absl::InlinedVector<void*, 8> buffers;
  for (const TensorImpl* t : operands) {
    values.insert(values.end(), t->shape.begin(), t->shape.end());
    buffers.push_back(t->data());
  }
  buffers.push_back(nullptr);
  for (size_t k = 0; k < types.size(); ++k) {
    if (NumElements(types[k].shape) == 0) continue;
    buffers.back() = out[out.size() - types.size() + k]->data();
    kernel->outputs[k]->Run(buffers.data(), values);
  }
}

}  // namespace sinter::eager
