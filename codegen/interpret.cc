#include <algorithm>
#include <bit>
#include <cstring>

#include "sinter/codegen/interpret_ops.h"
#include "sinter/codegen/interpret_program.h"
#include "sinter/graph/error.h"
#include "sinter/graph/numerics.h"
#include "sinter/runtime/memory.h"

namespace sinter::codegen {
namespace {

// Reductions at least this long run with lanes over the reduced values rather than over result elements, where asked for.
constexpr int64_t kLongReduction = 64;

class Execution {
 public:
  Execution(const Program& p, void* const* buffers, const int64_t* sizes, void* scratch, std::byte* slots)
      : p_(p), sizes_(sizes), slots_(slots) {
    std::byte* local = static_cast<std::byte*>(scratch);
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      const KernelBuffer& buffer = p.buffers[b];
      Shape strides(buffer.shape.size(), 0);
      int64_t stride = 1;
      for (size_t i = buffer.order.size(); i-- > 0;) {
        strides[buffer.order[i]] = stride;
        stride *= p.shapes[b][buffer.order[i]].Get(sizes);
      }
      strides_.push_back(std::move(strides));
      if (buffer.role == BufferRole::kLocal) {
        base_.push_back(local);
        local += (stride * ItemSize(buffer.dtype) + 63) / 64 * 64;
      } else {
        base_.push_back(static_cast<std::byte*>(buffers[b]));
      }
    }
  }

  void Run(int64_t begin, int64_t end) {
    for (const StageCode& s : p_.stages) RunCode(s.preamble, kLanes);
    if (p_.stages.size() == 1) return Stage(p_.stages[0], begin, end);
    for (int64_t i = begin; i < end; ++i)
      for (const StageCode& s : p_.stages) Stage(s, i, i + 1);
  }

 private:
  template <class T = void>
  T* Slot(int i) { return reinterpret_cast<T*>(slots_ + static_cast<size_t>(i) * kSlotBytes); }

  void Stage(const StageCode& s, int64_t begin, int64_t end) {
    std::vector<int64_t>& extents = extents_;
    extents.clear();
    for (const SizeRef& r : p_.outer) extents.push_back(r.Get(sizes_));
    int64_t inner = 1;
    for (const SizeRef& r : s.inner) extents.push_back(r.Get(sizes_)), inner *= extents.back();
    reduce_lanes_ = s.reduce_lanes;
    const int64_t last = end * inner;
    int64_t tile = kLanes;
    for (int64_t at = begin * inner; at < last; at += tile) {
      const int n = static_cast<int>(std::min<int64_t>(tile, last - at));
      FillIndices(s.vars, extents, at, n);
      RunCode(s.body, n);
      for (const StoreCode& store : s.stores) Store(store, n);
    }
  }

  // Coordinates of the points at, at + 1, ... of a row-major domain.
  void FillIndices(const std::vector<int>& vars, const std::vector<int64_t>& extents, int64_t at, int n) {
    const int rank = static_cast<int>(extents.size());
    if (rank == 0) return;
    int64_t rest = at;
    std::vector<int64_t>& coordinate = coordinate_;
    coordinate.assign(rank, 0);
    for (int d = rank - 1; d >= 0; --d) {
      coordinate[d] = rest % std::max<int64_t>(1, extents[d]);
      rest /= std::max<int64_t>(1, extents[d]);
    }
    for (int i = 0; i < n;) {
      const int run = static_cast<int>(std::min<int64_t>(n - i, extents[rank - 1] - coordinate[rank - 1]));
      for (int d = 0; d < rank; ++d) {
        if (vars[d] < 0) continue;
        int64_t* out = Slot<int64_t>(vars[d]) + i;
        const int64_t v = coordinate[d];
        if (d == rank - 1) {
          for (int k = 0; k < run; ++k) out[k] = v + k;
        } else {
          for (int k = 0; k < run; ++k) out[k] = v;
        }
      }
      i += run;
      coordinate[rank - 1] += run;
      for (int d = rank - 1; d > 0 && coordinate[d] == extents[d]; --d) coordinate[d] = 0, ++coordinate[d - 1];
    }
  }

  void Offsets(int buffer, const std::vector<int>& position, int n) {
    const Shape& strides = strides_[buffer];
    bool first = true;
    for (size_t d = 0; d < position.size(); ++d) {
      if (position[d] < 0) continue;
      const int64_t* x = Slot<int64_t>(position[d]);
      const int64_t stride = strides[d];
      if (first) {
        for (int i = 0; i < n; ++i) offsets_[i] = x[i] * stride;
      } else {
        for (int i = 0; i < n; ++i) offsets_[i] += x[i] * stride;
      }
      first = false;
    }
    if (first) std::fill(offsets_, offsets_ + n, int64_t{0});
  }

  void Store(const StoreCode& s, int n) {
    const DType t = p_.buffers[s.buffer].dtype;
    LaneCanonicalNan(t, Slot(s.value), n);
    Offsets(s.buffer, s.position, n);
    LaneScatter(t, base_[s.buffer], offsets_, Slot(s.value), n);
  }

  void RunCode(const std::vector<Instr>& code, int n) {
    for (const Instr& i : code) {
      switch (i.kind) {
        case ExprKind::kConst:
          LaneFill(i.type, i.bits, Slot(i.out), n);
          break;
        case ExprKind::kSize:
          LaneFill(kInt64, static_cast<uint64_t>(i.size.Get(sizes_)), Slot(i.out), n);
          break;
        case ExprKind::kLoad:
          Offsets(i.buffer, i.position, n);
          LaneGather(i.type, base_[i.buffer], offsets_, i.predicate < 0 ? nullptr : Slot<uint8_t>(i.predicate), Slot(i.out), n);
          break;
        case ExprKind::kFma:
          LaneFma(i.type, Slot(i.a), Slot(i.b), Slot(i.c), Slot(i.out), n);
          break;
        case ExprKind::kSelect:
          LaneSelect(i.type, Slot(i.a), Slot(i.b), Slot(i.c), Slot(i.out), n);
          break;
        case ExprKind::kConvert:
          LaneConvert(i.in, i.type, Slot(i.a), Slot(i.out), n);
          break;
        case ExprKind::kReduce:
          Reduce(p_.reduces[i.reduce], i.out, n);
          break;
        default:
          if (i.b < 0) LaneUnary(i.kind, i.in, Slot(i.a), Slot(i.out), n);
          else LaneBinary(i.kind, i.in, Slot(i.a), Slot(i.b), Slot(i.out), n);
      }
    }
  }

  void Reduce(const ReduceCode& r, int out, int n) {
    int64_t total = 1;
    for (const SizeRef& e : r.extents) total *= e.Get(sizes_);
    if (total == 0) {
      const bool zero = r.kind == ReduceKind::kSum || r.kind == ReduceKind::kContract;
      LaneFill(r.type, zero ? 0 : ReduceIdentity(r.kind, r.type), Slot(out), n);
    } else if (r.kind == ReduceKind::kContract) {
      Contract(r, out, n, total);
    } else if (reduce_lanes_ && total >= kLongReduction) {
      const bool outer = std::exchange(reduce_lanes_, false);  // reductions inside run by lane
      for (int lane = 0; lane < n; ++lane) ReduceOne(r, out, lane, total);
      reduce_lanes_ = outer;
    } else {
      ReduceLanes(r, out, n, total);
    }
  }

  // Walks the values of a reduction in order, all lanes together.
  template <class F>
  void ForEachValue(const ReduceCode& r, int n, int64_t total, F f) {
    for (const Import& m : r.imports) std::memcpy(Slot(m.to), Slot(m.from), static_cast<size_t>(ItemSize(m.type)) * n);
    const size_t rank = r.vars.size();
    absl::InlinedVector<int64_t, 4> at(rank, 0), extents;
    for (const SizeRef& e : r.extents) extents.push_back(e.Get(sizes_));
    for (size_t d = 0; d < rank; ++d)
      if (r.vars[d] >= 0) LaneFill(kInt64, 0, Slot(r.vars[d]), n);
    for (int64_t k = 0; k < total; ++k) {
      RunCode(r.body, n);
      f(k);
      for (size_t d = rank; d-- > 0;) {
        const bool wraps = ++at[d] == extents[d];
        if (wraps) at[d] = 0;
        if (r.vars[d] >= 0) LaneFill(kInt64, static_cast<uint64_t>(at[d]), Slot(r.vars[d]), n);
        if (!wraps) break;
      }
    }
  }

  void Contract(const ReduceCode& r, int out, int n, int64_t total) {
    const int acc = r.workspace, sum = r.workspace + 1;
    ForEachValue(r, n, total, [&](int64_t k) {
      if (k % kContractionBlock == 0) LaneFill(r.type, 0, Slot(acc), n);
      if (IsFloating(r.type)) {
        LaneFma(r.type, Slot(r.value), Slot(r.value2), Slot(acc), Slot(acc), n);
      } else {
        LaneBinary(ExprKind::kMul, r.type, Slot(r.value), Slot(r.value2), Slot(sum + 1), n);
        LaneBinary(ExprKind::kAdd, r.type, Slot(acc), Slot(sum + 1), Slot(acc), n);
      }
      if ((k + 1) % kContractionBlock != 0 && k + 1 != total) return;
      if (k < kContractionBlock) std::memcpy(Slot(sum), Slot(acc), kSlotBytes);
      else LaneBinary(ExprKind::kAdd, r.type, Slot(sum), Slot(acc), Slot(sum), n);
    });
    std::memcpy(Slot(out), Slot(sum), kSlotBytes);
  }

  void ReduceLanes(const ReduceCode& r, int out, int n, int64_t total) {
    const int lanes = r.workspace, stack = r.workspace + kReduceLanes;
    const uint64_t identity = ReduceIdentity(r.kind, r.type);
    int depth = 0;
    ForEachValue(r, n, total, [&](int64_t k) {
      const int64_t in_block = k % kReduceBlock;
      const int lane = static_cast<int>(k % kReduceLanes);
      if (in_block < kReduceLanes) LaneFill(r.type, identity, Slot(lanes + lane), n);
      LaneAccumulate(r.kind, r.type, Slot(lanes + lane), Slot(r.value), n);
      if (in_block + 1 != kReduceBlock && k + 1 != total) return;
      const int used = static_cast<int>(std::min<int64_t>(in_block + 1, kReduceLanes));
      for (int half = kReduceLanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l)
          if (l + half < used) LaneAccumulate(r.kind, r.type, Slot(lanes + l), Slot(lanes + l + half), n);
      depth = Push(r, stack, depth, k / kReduceBlock, Slot(lanes), n);
    });
    Finish(r, stack, depth, out, 0, n);
  }

  // Pairwise combination of block results as a binary counter; returns the new depth.
  int Push(const ReduceCode& r, int stack, int depth, int64_t block, const void* value, int n) {
    std::memcpy(Slot(stack + depth), value, static_cast<size_t>(ItemSize(r.type)) * n);
    ++depth;
    for (int64_t b = block; b & 1; b >>= 1, --depth) LaneAccumulate(r.kind, r.type, Slot(stack + depth - 2), Slot(stack + depth - 1), n);
    return depth;
  }

  void Finish(const ReduceCode& r, int stack, int depth, int out, int lane, int n) {
    for (; depth > 1; --depth) LaneAccumulate(r.kind, r.type, Slot(stack + depth - 2), Slot(stack + depth - 1), n);
    std::memcpy(Slot<std::byte>(out) + static_cast<size_t>(lane) * ItemSize(r.type), Slot(stack), static_cast<size_t>(ItemSize(r.type)) * n);
  }

  // One result element, with lanes over the reduced values.
  void ReduceOne(const ReduceCode& r, int out, int lane, int64_t total) {
    const size_t item = ItemSize(r.type);
    for (const Import& m : r.imports) {
      uint64_t bits = 0;
      std::memcpy(&bits, Slot<std::byte>(m.from) + static_cast<size_t>(lane) * ItemSize(m.type), ItemSize(m.type));
      LaneFill(m.type, bits, Slot(m.to), kLanes);
    }
    std::vector<int64_t> extents;
    for (const SizeRef& e : r.extents) extents.push_back(e.Get(sizes_));
    const int lanes = r.workspace, stack = r.workspace + kReduceLanes;
    int depth = 0;
    for (int64_t at = 0; at < total; at += kLanes) {
      const int n = static_cast<int>(std::min<int64_t>(kLanes, total - at));
      FillIndices(r.vars, extents, at, n);
      RunCode(r.body, n);
      if (at % kReduceBlock == 0) LaneFill(r.type, ReduceIdentity(r.kind, r.type), Slot(lanes), kReduceLanes);
      for (int i = 0; i < n; i += kReduceLanes)
        LaneAccumulate(r.kind, r.type, Slot(lanes), Slot<std::byte>(r.value) + i * item, std::min(kReduceLanes, n - i));
      if ((at + n) % kReduceBlock != 0 && at + n != total) continue;
      for (int half = kReduceLanes / 2; half > 0; half /= 2)
        LaneAccumulate(r.kind, r.type, Slot(lanes), Slot<std::byte>(lanes) + half * item, half);
      depth = Push(r, stack, depth, at / kReduceBlock, Slot(lanes), 1);
    }
    Finish(r, stack, depth, out, lane, 1);
  }

  const Program& p_;
  const int64_t* sizes_;
  std::byte* slots_;
  std::vector<std::byte*> base_;
  std::vector<Shape> strides_;
  std::vector<int64_t> extents_, coordinate_;
  int64_t offsets_[kLanes];
  bool reduce_lanes_ = false;
};

class InterpretedKernel final : public CompiledKernel {
 public:
  explicit InterpretedKernel(const Kernel& k) : program_(CompileProgram(k)) {}
  void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) const override {
    if (begin >= end) return;
    MemoryBlock slots(static_cast<size_t>(program_.slots + 1) * kSlotBytes);
    Execution(program_, buffers, sizes, scratch, slots.as<std::byte>()).Run(begin, end);
  }

 private:
  Program program_;
};

}  // namespace

std::shared_ptr<const CompiledKernel> InterpretKernel(const Kernel& kernel) { return std::make_shared<InterpretedKernel>(kernel); }

}  // namespace sinter::codegen
