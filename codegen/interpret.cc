#include <algorithm>
#include <cstring>
#include <span>

#include "sinter/codegen/interpret_execution.h"
#include "sinter/graph/error.h"
#include "sinter/runtime/memory.h"

namespace sinter::codegen {

size_t Execution::WorkBytes(const Program& p) {
  return static_cast<size_t>(p.slots - static_cast<int>(p.constants.size()) + p.workspace) * kSlotBytes;
}

Execution::Execution(const Program& p, void* const* buffers, const int64_t* sizes, void* scratch,
                     std::byte* constants, std::byte* work)
    : p_(p),
      sizes_(sizes),
      constants_(static_cast<int>(p.constants.size())),
      slots_(work),
      workspace_(work + static_cast<size_t>(p.slots - constants_) * kSlotBytes),
      at_(p.slots),
      values_(p.vars, 0),
      reduce_domains_(p.reduces.size()) {
  for (int i = 0; i < p.slots; ++i)
    at_[i] = i < constants_ ? constants + static_cast<size_t>(i) * kSlotBytes : Own(i);
  FindStrides(buffers, static_cast<std::byte*>(scratch));
  FindCoefficients();
}

void Execution::FindStrides(void* const* buffers, std::byte* scratch) {
  for (size_t b = 0; b < p_.buffers.size(); ++b) {
    const KernelBuffer& buffer = p_.buffers[b];
    first_stride_.push_back(static_cast<int>(strides_.size()));
    strides_.resize(strides_.size() + buffer.shape.size());
    int64_t stride = 1;
    for (size_t i = buffer.order.size(); i-- > 0;) {
      strides_[first_stride_[b] + buffer.order[i]] = stride;
      stride *= p_.shapes[b][buffer.order[i]].Get(sizes_);
    }
    const bool local = buffer.role == BufferRole::kLocal;
    base_.push_back(local ? scratch : static_cast<std::byte*>(buffers[b]));
    if (local) scratch += (stride * ItemSize(buffer.dtype) + 63) / 64 * 64;
  }
}

void Execution::FindCoefficients() {
  const size_t row = static_cast<size_t>(p_.vars) + 1;
  coefficients_.assign(row * p_.accesses.size(), 0);
  for (size_t a = 0; a < p_.accesses.size(); ++a) {
    const Access& access = p_.accesses[a];
    for (const PositionTerm& t : access.terms) {
      const int64_t size = t.size < 0 ? 1 : sizes_[t.size];
      coefficients_[a * row + (t.var < 0 ? p_.vars : t.var)] +=
          t.factor * size * strides_[first_stride_[access.buffer] + t.dimension];
    }
  }
}

Domain Execution::MakeDomain(std::span<const Loop* const> loops, std::span<const int> accesses) {
  Domain domain;
  for (const Loop* l : loops) {
    const int64_t extent = l->extent.Get(sizes_);
    domain.points *= extent;
    values_[l->var] = 0;
    if (extent == 1 && l->slot < 0) continue;
    auto one_with = [&](const Domain::Axis& outer) {
      if (outer.slot >= 0 || l->slot >= 0) return false;
      for (int a : accesses)
        if (Coefficients(a)[outer.var] != Coefficients(a)[l->var] * extent) return false;
      return true;
    };
    if (!domain.axes.empty() && one_with(domain.axes.back())) {
      domain.axes.back() = {l->var, -1, domain.axes.back().extent * extent};
    } else {
      domain.axes.push_back({l->var, l->slot, extent});
    }
  }
  return domain;
}

void Execution::Run(int64_t begin, int64_t end) {
  const bool by_point = p_.stages.size() > 1;
  for (const StageCode& s : p_.stages) {
    absl::InlinedVector<const Loop*, 8> loops;
    if (!by_point)
      for (const Loop& l : s.outer) loops.push_back(&l);
    for (const Loop& l : s.inner) loops.push_back(&l);
    domains_.push_back(MakeDomain(loops, s.accesses));
  }
  if (by_point) return StageByPoint(begin, end);
  const StageCode& s = p_.stages[0];
  int64_t inner = 1;
  for (const Loop& l : s.inner) inner *= l.extent.Get(sizes_);
  RunCode(s.preamble, static_cast<int>(std::min<int64_t>(kLanes, (end - begin) * inner)));
  Stage(s, domains_[0], begin * inner, end * inner);
}

// Several stages: all of them at one point after the other.
void Execution::StageByPoint(int64_t begin, int64_t end) {
  for (const StageCode& s : p_.stages) RunCode(s.preamble, kLanes);
  for (int64_t point = begin; point < end; ++point) {
    for (size_t i = 0; i < p_.stages.size(); ++i) {
      const StageCode& s = p_.stages[i];
      int64_t rest = point;
      for (size_t d = s.outer.size(); d-- > 0;) {
        const Loop& l = s.outer[d];
        const int64_t extent = l.extent.Get(sizes_);
        values_[l.var] = rest % extent;
        rest /= extent;
        if (l.slot >= 0) LaneFill(kInt64, static_cast<uint64_t>(values_[l.var]), Slot(l.slot), kLanes);
      }
      Stage(s, domains_[i], 0, domains_[i].points);
    }
  }
}

void Execution::Stage(const StageCode& s, const Domain& domain, int64_t begin, int64_t end) {
  reduce_lanes_ = s.reduce_lanes;
  for (int64_t at = begin; at < end; at += kLanes) {
    const int n = static_cast<int>(std::min<int64_t>(kLanes, end - at));
    FillTile(domain, at, n);
    RunCode(s.body, n);
    for (const StoreCode& store : s.stores) Store(store, n);
  }
}

// Makes points at, at + 1, ... of the domain the tile.
void Execution::FillTile(const Domain& domain, int64_t at, int n) {
  const int rank = static_cast<int>(domain.axes.size());
  tile_.domain = &domain;
  tile_.segments.clear();
  absl::InlinedVector<int64_t, 4> c(rank, 0);
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t extent = domain.axes[d].extent;
    c[d] = d == 0 ? at : at % extent;
    if (d > 0) at /= extent;
    values_[domain.axes[d].var] = c[d];
  }
  for (int i = 0; i < n;) {
    const int run =
        rank == 0 ? n
                  : static_cast<int>(std::min<int64_t>(n - i, domain.axes[rank - 1].extent - c[rank - 1]));
    tile_.segments.push_back({i, run, c});
    for (int d = 0; d < rank; ++d) {
      const int slot = domain.axes[d].slot;
      if (slot < 0) continue;
      int64_t* out = Slot<int64_t>(slot) + i;
      const int64_t step = d == rank - 1;
      for (int k = 0; k < run; ++k) out[k] = c[d] + k * step;
    }
    i += run;
    if (i == n) break;
    c[rank - 1] += run;
    for (int d = rank - 1; d > 0 && c[d] == domain.axes[d].extent; --d) c[d] = 0, ++c[d - 1];
  }
}

void Execution::RunCode(const std::vector<Instr>& code, int n) {
  const int lanes = RoundLanes(n);
  for (const Instr& i : code) {
    switch (i.kind) {
      case InstrKind::kOp:
        i.fn(at_[i.operands[0]], at_[i.operands[1]], at_[i.operands[2]], at_[i.out], lanes);
        break;
      case InstrKind::kSize:
        LaneFill(kInt64, static_cast<uint64_t>(i.size.Get(sizes_)), Slot(i.out), lanes);
        break;
      case InstrKind::kLoad:
        Load(i, n);
        break;
      case InstrKind::kReduce:
        Reduce(i.reduce, i.out, n);
        break;
    }
  }
}

template <class F>
void Execution::ForEachSegment(const int64_t* coefficients, F f) const {
  int64_t first = coefficients[p_.vars];
  for (int v = 0; v < p_.vars; ++v) first += coefficients[v] * values_[v];
  const auto& axes = tile_.domain->axes;
  const int64_t step = axes.empty() ? 0 : coefficients[axes.back().var];
  for (const Segment& s : tile_.segments) {
    int64_t offset = first;
    for (size_t d = 0; d < axes.size(); ++d)
      offset += coefficients[axes[d].var] * (s.coordinates[d] - values_[axes[d].var]);
    f(s.at, s.n, offset, step);
  }
}

void Execution::Offsets(const Access& access, int n) {
  std::fill(offsets_, offsets_ + n, int64_t{0});
  for (size_t d = 0; d < access.slots.size(); ++d) {
    if (access.slots[d] < 0) continue;
    const int64_t* x = Slot<int64_t>(access.slots[d]);
    const int64_t stride = strides_[first_stride_[access.buffer] + d];
    for (int i = 0; i < n; ++i) offsets_[i] += x[i] * stride;
  }
}

void Execution::Load(const Instr& i, int n) {
  const Access& access = p_.accesses[i.access];
  const int item = ItemSize(i.type);
  std::byte* base = base_[access.buffer];
  std::byte* out = at_[i.out] = Own(i.out);
  const uint8_t* predicate = i.predicate < 0 ? nullptr : Slot<uint8_t>(i.predicate);
  if (predicate != nullptr && std::memchr(predicate, 0, static_cast<size_t>(n)) == nullptr)
    predicate = nullptr;
  if (!access.affine) {
    Offsets(access, n);
    LaneGather(i.type, base, offsets_, predicate, out, n);
    return;
  }
  const bool whole = i.in_place && tile_.segments.size() == 1 && n % kLaneStep == 0;
  ForEachSegment(Coefficients(i.access), [&](int at, int lanes, int64_t offset, int64_t step) {
    if (predicate != nullptr) {
      LaneLoadIf(i.type, base + offset * item, step, predicate + at, out + at * item, lanes);
    } else if (whole && step == 1) {
      at_[i.out] = base + offset * item;
    } else {
      LaneLoad(i.type, base + offset * item, step, out + at * item, lanes);
    }
  });
}

void Execution::Store(const StoreCode& s, int n) {
  const Access& access = p_.accesses[s.access];
  const DType t = p_.buffers[access.buffer].dtype;
  const int item = ItemSize(t);
  std::byte* base = base_[access.buffer];
  const std::byte* value = at_[s.value];
  if (!access.affine) {
    Offsets(access, n);
    LaneScatter(t, base, offsets_, value, n);
    return;
  }
  ForEachSegment(Coefficients(s.access), [&](int at, int lanes, int64_t offset, int64_t step) {
    LaneStore(t, base + offset * item, step, value + at * item, lanes);
  });
}

namespace {

class InterpretedKernel final : public CompiledKernel {
 public:
  explicit InterpretedKernel(const Kernel& k)
      : program_(CompileProgram(k)), constants_(program_.constants.size() * kSlotBytes) {
    for (size_t i = 0; i < program_.constants.size(); ++i)
      LaneFill(program_.constants[i].type, program_.constants[i].bits,
               constants_.as<std::byte>() + i * kSlotBytes, kLanes);
  }

  void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end,
           void* scratch) const override {
    if (begin >= end) return;
    MemoryBlock work(Execution::WorkBytes(program_));
    Execution(program_, buffers, sizes, scratch, constants_.as<std::byte>(), work.as<std::byte>())
        .Run(begin, end);
  }

 private:
  Program program_;
  MemoryBlock constants_;
};

}  // namespace

std::shared_ptr<const CompiledKernel> InterpretKernel(const Kernel& kernel) {
  return std::make_shared<InterpretedKernel>(kernel);
}

}  // namespace sinter::codegen
