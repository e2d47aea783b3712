#include <cmath>
#include <cstring>
#include <utility>

#include "sinter/codegen/interpret_execution.h"

// Reductions: by the one tree that their definition gives, whichever way the lanes run.
namespace sinter::codegen {
namespace {

// Reductions at least this long run with lanes over the reduced values rather than over result elements,
// where that is asked for or there are few results.
constexpr int64_t kLongReduction = 64;
constexpr int kFewResults = kLaneStep / 2;

// A chain over n products; accumulators of integers wrap.
template <class T>
void Chain(const void* a, const void* b, int n, void* acc) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T sum = *static_cast<T*>(acc);
  for (int i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      sum = std::fma(x[i], y[i], sum);
    else
      sum += x[i] * y[i];
  }
  *static_cast<T*>(acc) = sum;
}

void Chain(DType t, const void* a, const void* b, int n, void* acc) {
  switch (t) {
    case DType::kFloat32:
      return Chain<float>(a, b, n, acc);
    case DType::kFloat64:
      return Chain<double>(a, b, n, acc);
    case DType::kInt64:
      return Chain<uint64_t>(a, b, n, acc);
    default:
      return Chain<uint32_t>(a, b, n, acc);
  }
}

}  // namespace

const Domain& Execution::ReduceDomain(int number) {
  Domain& domain = reduce_domains_[number];
  if (domain.axes.empty() && domain.points == 1) {
    absl::InlinedVector<const Loop*, 4> loops;
    for (const Loop& l : p_.reduces[number].loops) loops.push_back(&l);
    domain = MakeDomain(loops, p_.reduces[number].accesses);
  }
  return domain;
}

void Execution::Reduce(int number, int out, int n) {
  const ReduceCode& r = p_.reduces[number];
  const Domain& domain = ReduceDomain(number);
  const bool contract = r.kind == ReduceKind::kContract;
  if (domain.points == 0) {
    LaneFill(r.type, contract || r.kind == ReduceKind::kSum ? 0 : ReduceIdentity(r.kind, r.type), Slot(out),
             n);
  } else if (domain.points >= kLongReduction && (n <= kFewResults || (reduce_lanes_ && !contract))) {
    ByValue(r, domain, out);
  } else if (contract) {
    ContractByLane(r, domain, out, n);
  } else {
    ReduceByLane(r, domain, out, n);
  }
}

// Walks the values of a reduction in order, all lanes together.
template <class F>
void Execution::ForEachValue(const ReduceCode& r, const Domain& domain, int n, F f) {
  for (const Import& m : r.imports)
    std::memcpy(Slot(m.to), Slot(m.from), static_cast<size_t>(ItemSize(m.type)) * n);
  auto set = [&](const Domain::Axis& axis, int64_t value) {
    values_[axis.var] = value;
    if (axis.slot >= 0) LaneFill(kInt64, static_cast<uint64_t>(value), Slot(axis.slot), RoundLanes(n));
  };
  for (const Domain::Axis& axis : domain.axes) set(axis, 0);
  for (int64_t k = 0; k < domain.points; ++k) {
    RunCode(r.body, n);
    f(k);
    for (size_t d = domain.axes.size(); d-- > 0;) {
      const Domain::Axis& axis = domain.axes[d];
      const int64_t next = values_[axis.var] + 1;
      set(axis, next == axis.extent ? 0 : next);
      if (next != axis.extent) break;
    }
  }
}

void Execution::ContractByLane(const ReduceCode& r, const Domain& domain, int out, int n) {
  std::byte *acc = Work(r, 0), *product = Work(r, 1), *sum = Slot<std::byte>(out);
  const int lanes = RoundLanes(n);
  ForEachValue(r, domain, n, [&](int64_t k) {
    if (k % kContractionBlock == 0) LaneFill(r.type, 0, acc, lanes);
    if (IsFloating(r.type)) {
      r.multiply(Slot(r.value), Slot(r.value2), acc, acc, lanes);
    } else {
      r.multiply(Slot(r.value), Slot(r.value2), nullptr, product, lanes);
      r.combine(acc, product, nullptr, acc, lanes);
    }
    if ((k + 1) % kContractionBlock != 0 && k + 1 != domain.points) return;
    if (k < kContractionBlock)
      std::memcpy(sum, acc, kSlotBytes);
    else
      r.combine(sum, acc, nullptr, sum, lanes);
  });
}

void Execution::ReduceByLane(const ReduceCode& r, const Domain& domain, int out, int n) {
  const uint64_t identity = ReduceIdentity(r.kind, r.type);
  int depth = 0;
  ForEachValue(r, domain, n, [&](int64_t k) {
    const int64_t in_block = k % kReduceBlock;
    std::byte* lane = Work(r, static_cast<int>(k % kReduceLanes));
    if (in_block < kReduceLanes) LaneFill(r.type, identity, lane, RoundLanes(n));
    Combine(r, lane, Slot(r.value), n);
    if (in_block + 1 != kReduceBlock && k + 1 != domain.points) return;
    const int used = static_cast<int>(std::min<int64_t>(in_block + 1, kReduceLanes));
    for (int half = kReduceLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l)
        if (l + half < used) Combine(r, Work(r, l), Work(r, l + half), n);
    depth = Push(r, depth, k / kReduceBlock, Work(r, 0), n);
  });
  Finish(r, depth, Slot(out), n);
}

// Pairwise combination of block results as a binary counter; returns the new depth.
int Execution::Push(const ReduceCode& r, int depth, int64_t block, const void* value, int n) {
  std::memcpy(Work(r, kReduceLanes + depth), value, static_cast<size_t>(ItemSize(r.type)) * n);
  ++depth;
  for (int64_t b = block; b & 1; b >>= 1, --depth)
    Combine(r, Work(r, kReduceLanes + depth - 2), Work(r, kReduceLanes + depth - 1), n);
  return depth;
}

void Execution::Finish(const ReduceCode& r, int depth, void* out, int n) {
  for (; depth > 1; --depth)
    Combine(r, Work(r, kReduceLanes + depth - 2), Work(r, kReduceLanes + depth - 1), n);
  std::memcpy(out, Work(r, kReduceLanes), static_cast<size_t>(ItemSize(r.type)) * n);
}

void Execution::ByValue(const ReduceCode& r, const Domain& domain, int out) {
  const Tile tile = std::exchange(tile_, {});
  const auto values = values_;
  const bool reduce_lanes = std::exchange(reduce_lanes_, false);  // reductions inside run by lane
  const auto& axes = tile.domain->axes;
  for (const Segment& s : tile.segments) {
    for (int i = 0; i < s.n; ++i) {
      for (size_t d = 0; d < axes.size(); ++d)
        values_[axes[d].var] = s.coordinates[d] + (d + 1 == axes.size() ? i : 0);
      for (const Import& m : r.imports) {
        uint64_t bits = 0;
        std::memcpy(&bits, Slot<std::byte>(m.from) + static_cast<size_t>(s.at + i) * ItemSize(m.type),
                    ItemSize(m.type));
        LaneFill(m.type, bits, Slot(m.to),
                 RoundLanes(static_cast<int>(std::min<int64_t>(kLanes, domain.points))));
      }
      std::byte* result = Slot<std::byte>(out) + static_cast<size_t>(s.at + i) * ItemSize(r.type);
      if (r.kind == ReduceKind::kContract)
        ContractOne(r, domain, result);
      else
        ReduceOne(r, domain, result);
    }
  }
  reduce_lanes_ = reduce_lanes;
  values_ = values;
  tile_ = tile;
}

void Execution::ReduceOne(const ReduceCode& r, const Domain& domain, std::byte* out) {
  const int item = ItemSize(r.type);
  const uint64_t identity = ReduceIdentity(r.kind, r.type);
  std::byte *lanes = Work(r, 0), *tail = Work(r, 1);
  int depth = 0;
  for (int64_t at = 0; at < domain.points; at += kLanes) {
    const int n = static_cast<int>(std::min<int64_t>(kLanes, domain.points - at));
    FillTile(domain, at, n);
    RunCode(r.body, n);
    if (at % kReduceBlock == 0) LaneFill(r.type, identity, lanes, kReduceLanes);
    const std::byte* value = Slot<std::byte>(r.value);
    int i = 0;
    for (; i + kReduceLanes <= n; i += kReduceLanes) Combine(r, lanes, value + i * item, kReduceLanes);
    if (i < n) {
      LaneFill(r.type, identity, tail, kReduceLanes);
      std::memcpy(tail, value + i * item, static_cast<size_t>((n - i) * item));
      Combine(r, lanes, tail, kReduceLanes);
    }
    if ((at + n) % kReduceBlock != 0 && at + n != domain.points) continue;
    for (int half = kReduceLanes / 2; half > 0; half /= 2) {
      std::memcpy(tail, lanes + half * item, static_cast<size_t>(half * item));
      Combine(r, lanes, tail, half);
    }
    depth = Push(r, depth, at / kReduceBlock, lanes, 1);
  }
  Finish(r, depth, out, 1);
}

void Execution::ContractOne(const ReduceCode& r, const Domain& domain, std::byte* out) {
  static_assert(kLanes == kContractionBlock, "a tile is a block");
  std::byte *acc = Work(r, 0), *sum = Work(r, 1);
  for (int64_t at = 0; at < domain.points; at += kLanes) {
    const int n = static_cast<int>(std::min<int64_t>(kLanes, domain.points - at));
    FillTile(domain, at, n);
    RunCode(r.body, n);
    std::byte* to = at == 0 ? sum : acc;
    LaneFill(r.type, 0, to, 1);
    Chain(r.type, Slot(r.value), Slot(r.value2), n, to);
    if (at > 0) Combine(r, sum, acc, 1);
  }
  std::memcpy(out, sum, static_cast<size_t>(ItemSize(r.type)));
}

}  // namespace sinter::codegen
