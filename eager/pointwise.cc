#include <algorithm>
#include <array>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "sinter/codegen/lower_op.h"
#include "sinter/eager/compute.h"
#include "sinter/eager/op_kernel.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/strings.h"

// Pointwise ops. Sizes never matter to the kernel: dimensions are taken in the memory order of the result,
// and neighbours that the same operands stretch over become one. What is left is a pattern (mostly: one
// dimension, each operand either whole or a scalar), and each pattern has one kernel.
namespace sinter::eager {
namespace {

constexpr int kMaxOperands = 6;
constexpr int kMaxDims = kMaxRank;

// Bit i of stretched[d]: operand i has size 1 along merged dimension d.
struct Pattern {
  const OpDef* op = nullptr;
  uint64_t dtypes = 0;  // 4 bits each, result first
  uint8_t operands = 0;
  uint8_t rank = 0;
  std::array<uint8_t, kMaxDims> stretched{};

  friend bool operator==(const Pattern&, const Pattern&) = default;
  template <class H>
  friend H AbslHashValue(H h, const Pattern& p) {
    return H::combine(std::move(h), p.op, p.dtypes, p.operands, p.rank, p.stretched);
  }
};

struct Key {
  Pattern pattern;
  AttrPtr attrs;
  friend bool operator==(const Key& a, const Key& b) {
    return a.pattern == b.pattern && AttrsEqual(a.attrs, b.attrs);
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.pattern, k.attrs ? k.attrs->Hash() : 0);
  }
};
using KernelPtr = std::shared_ptr<const OpKernel>;

KernelPtr BuildKernel(const Pattern& p, const AttrPtr& attrs) {
  const DType result = static_cast<DType>(p.dtypes & 15);
  std::vector<TensorType> in(p.operands);
  TensorType out{result, SymShape(p.rank)};
  for (int d = 0; d < p.rank; ++d) out.shape[d] = SizeSymbol(d);
  for (int i = 0; i < p.operands; ++i) {
    in[i].dtype = static_cast<DType>(p.dtypes >> (4 * (i + 1)) & 15);
    in[i].shape.resize(p.rank, Dim(1));
    for (int d = 0; d < p.rank; ++d)
      if ((p.stretched[d] >> i & 1) == 0) in[i].shape[d] = SizeSymbol(d);
  }
  const std::vector<int> order = RowMajorOrder(p.rank);
  const std::vector<std::vector<int>> orders(p.operands, order);
  return std::make_shared<OpKernel>(codegen::KernelFromOp(*p.op, attrs, in, {&out, 1}, orders, order),
                                    p.rank);
}

// Found kernels: a table per thread in front of the shared one.
KernelPtr SharedKernel(const Pattern& p, const AttrPtr& attrs) {
  static std::mutex mutex;
  static auto* kernels = new absl::flat_hash_map<Key, KernelPtr>();
  constexpr size_t kMost = 8192;
  Key key{p, attrs};
  {
    std::lock_guard lock(mutex);
    if (auto it = kernels->find(key); it != kernels->end()) return it->second;
  }
  KernelPtr made = BuildKernel(p, attrs);
  std::lock_guard lock(mutex);
  if (kernels->size() >= kMost) kernels->clear();
  return kernels->emplace(std::move(key), std::move(made)).first->second;
}

const OpKernel& FindKernel(const Pattern& p, const AttrPtr& attrs) {
  struct Entry {
    Key key;
    KernelPtr kernel;
  };
  static thread_local std::array<Entry, 128> recent;
  const size_t h = (reinterpret_cast<uintptr_t>(p.op) >> 4) * 31 + p.dtypes * 7 + p.rank * 5 + p.stretched[0];
  Entry& e = recent[(h ^ h >> 7) % recent.size()];
  if (!e.kernel || !(e.key.pattern == p) || !AttrsEqual(e.key.attrs, attrs))
    e = {{p, attrs}, SharedKernel(p, attrs)};
  return *e.kernel;
}

bool SameLayout(const TensorImpl& a, const TensorImpl& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

bool IsScalar(const TensorImpl& t) {
  for (int64_t d : t.shape)
    if (d != 1) return false;
  return true;
}

ConcreteType ResultType(const OpDef& op, const AttrPtr& attrs, Operands in) {
  bool plain = !op.shape && static_cast<int>(in.size()) == op.inputs && op.dtype_rule != DTypeRule::kCustom;
  for (size_t i = 1; plain && i < in.size(); ++i)
    plain = in[i]->shape.empty() || in[i]->shape == in[0]->shape;
  if (!plain) return std::move(TypesOf(op, attrs, in)[0]);
  if (op.dtype_rule == DTypeRule::kCompare || op.dtype_rule == DTypeRule::kLogical)
    return {kBool, in[0]->shape};
  std::array<DType, kMaxOperands> dtypes;
  for (size_t i = 0; i < in.size(); ++i) dtypes[i] = in[i]->dtype;
  const DType t = OperandType(op, {dtypes.data(), in.size()});
  if (t == kBool) return std::move(TypesOf(op, attrs, in)[0]);  // where the op may have no meaning
  return {t, in[0]->shape};
}

// The dimension order of the result: that of `into`, else of the first dense operand of the result's shape.
void ResultOrder(const ConcreteType& type, Operands in, const TensorImpl* into, std::span<int> order) {
  if (into != nullptr) {
    SINTER_CHECK(DenseOrder(into->shape, into->strides, order));
    return;
  }
  for (const TensorImpl* t : in)
    if (t->shape == type.shape && DenseOrder(t->shape, t->strides, order)) return;
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
}

// An operand's strides along the result's dimensions, 0 where it is stretched. The rules of ops with one
// operand need not know of stretching: theirs is copied whole.
struct Aligned {
  absl::InlinedVector<int64_t, kMaxRank> strides;
  ImplPtr copy;  // keeps a packed copy alive
  std::byte* data;
};

Aligned Align(const TensorImpl& t, const Shape& shape, std::span<const int> order, bool may_stretch) {
  Aligned a{{}, nullptr, t.data()};
  a.strides.resize(shape.size(), 0);
  const size_t skip = shape.size() - t.shape.size();
  for (size_t d = 0; d < t.shape.size(); ++d)
    if (t.shape[d] != 1) a.strides[skip + d] = t.strides[d];
  int64_t step = 1;
  bool packed = true;
  for (size_t k = order.size(); k-- > 0;) {
    const int d = order[k];
    if (shape[d] == 1 || (a.strides[d] == 0 && may_stretch)) continue;
    packed &= a.strides[d] == step;
    step *= shape[d];
  }
  if (packed) return a;
  // A copy in the result's order, of the part that isn't stretched.
  Shape sizes(shape.size(), 1), from(shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d)
    if (a.strides[d] != 0 || !may_stretch) sizes[d] = shape[d], from[d] = a.strides[d];
  ImplPtr part = NewAlias(t, sizes, from, t.offset);
  a.copy = NewTensor(t.dtype, sizes, DenseStrides(sizes, order));
  CopyValues(*part, *a.copy);
  for (size_t d = 0; d < shape.size(); ++d) a.strides[d] = sizes[d] == 1 ? 0 : a.copy->strides[d];
  a.data = a.copy->data();
  return a;
}

// A pointwise op that the pattern can't hold: element by element, or by hand-written kernel.
ImplPtr ComputeOther(const OpDef& op, const AttrPtr& attrs, Operands in, const ConcreteType& type) {
  Results out;
  ComputeElements(op, attrs, in, {&type, 1}, out);
  return std::move(out[0]);
}

}  // namespace

ImplPtr ComputePointwise(const OpDef& op, const AttrPtr& attrs, Operands in, TensorImpl* into) {
  ConcreteType type = ResultType(op, attrs, in);
  if (in.size() > kMaxOperands) {
    ImplPtr r = ComputeOther(op, attrs, in, type);
    if (into == nullptr) return r;
    CopyValues(*r, *into);
    return ImplPtr(into);
  }
  Pattern p;
  p.op = &op;
  p.operands = static_cast<uint8_t>(in.size());
  p.dtypes = static_cast<uint64_t>(type.dtype);
  for (size_t i = 0; i < in.size(); ++i) p.dtypes |= static_cast<uint64_t>(in[i]->dtype) << (4 * (i + 1));

  std::array<void*, kMaxOperands + 1> buffers;
  std::array<int64_t, kMaxDims> values;
  absl::InlinedVector<Aligned, 3> aligned;
  ImplPtr out(into);
  const size_t rank = type.shape.size();

  // Operands that are whole and laid out alike, or scalars: one dimension.
  const TensorImpl* whole = into;
  bool flat = true;
  uint8_t scalars = 0;
  for (size_t i = 0; i < in.size() && flat; ++i) {
    const TensorImpl& t = *in[i];
    if (t.shape == type.shape) {
      if (whole == nullptr) {
        whole = &t;
      } else if (!SameLayout(*whole, t)) {
        flat = false;
      }
    } else if (IsScalar(t)) {
      scalars |= static_cast<uint8_t>(1u << i);
    } else {
      flat = false;
    }
    buffers[i] = t.data();
  }
  absl::InlinedVector<int, kMaxRank> order(rank);
  if (flat && whole != nullptr &&
      (IsRowMajor(whole->shape, whole->strides) ||
       DenseOrder(whole->shape, whole->strides, std::span<int>(order)))) {
    int64_t n = 1;
    for (int64_t d : type.shape) n *= d;
    if (!out) out = NewTensor(type.dtype, type.shape, whole->strides);
    if (n == 0) return out;
    p.rank = 1;
    p.stretched[0] = scalars;
    values[0] = n;
  } else {
    ResultOrder(type, in, into, std::span<int>(order));
    if (!out) out = NewTensor(type.dtype, type.shape, DenseStrides(type.shape, order));
    if (out->numel() == 0) return out;
    for (size_t i = 0; i < in.size(); ++i) {
      aligned.push_back(Align(*in[i], type.shape, order, in.size() > 1));
      buffers[i] = aligned.back().data;
    }
    for (int d : order) {
      if (type.shape[d] == 1) continue;
      uint8_t stretched = 0;
      for (size_t i = 0; i < in.size(); ++i)
        stretched |= static_cast<uint8_t>((aligned[i].strides[d] == 0) << i);
      if (p.rank > 0 && p.stretched[p.rank - 1] == stretched) {
        values[p.rank - 1] *= type.shape[d];
      } else {
        p.stretched[p.rank] = stretched;
        values[p.rank++] = type.shape[d];
      }
    }
  }
  buffers[in.size()] = out->data();
  FindKernel(p, attrs).Run(buffers.data(), {values.data(), p.rank});
  return out;
}

ImplPtr Converted(const TensorImpl& t, DType dtype) {
  TensorImpl* in[] = {const_cast<TensorImpl*>(&t)};
  return ComputePointwise(DefOf<ops::Cast>(), MakeAttrs(ops::Cast::Attrs{.dtype = dtype}), in);
}

}  // namespace sinter::eager
