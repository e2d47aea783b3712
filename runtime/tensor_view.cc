#include "sinter/runtime/tensor_view.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sinter/graph/error.h"
#include "sinter/graph/type.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter {
namespace {

struct LoopDim {
  int64_t size, from, to;  // strides in elements
};
using Loops = absl::InlinedVector<LoopDim, kMaxRank>;

// Dimensions in the order of the target's memory, neighbours merged where both sides allow.
Loops Plan(const TensorView& from, const TensorView& to) {
  Loops loops;
  for (int d = 0; d < to.rank(); ++d)
    if (to.sizes[d] != 1) loops.push_back({to.sizes[d], from.strides[d], to.strides[d]});
  std::stable_sort(loops.begin(), loops.end(),
                   [](const LoopDim& a, const LoopDim& b) { return a.to > b.to; });
  Loops merged;
  for (const LoopDim& l : loops) {
    if (!merged.empty() && merged.back().from == l.from * l.size && merged.back().to == l.to * l.size) {
      merged.back() = {merged.back().size * l.size, l.from, l.to};
    } else {
      merged.push_back(l);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

template <class T>
void CopyRow(const T* from, T* to, const LoopDim& l) {
  if (l.from == 1 && l.to == 1) {
    std::memcpy(to, from, static_cast<size_t>(l.size) * sizeof(T));
  } else if (l.to == 1) {
    for (int64_t i = 0; i < l.size; ++i) to[i] = from[i * l.from];
  } else {
    for (int64_t i = 0; i < l.size; ++i) to[i * l.to] = from[i * l.from];
  }
}

// A plane whose unit strides cross: in tiles, so that both sides use whole cache lines.
template <class T>
void CopyPlane(const T* from, T* to, const LoopDim& outer, const LoopDim& inner) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < outer.size; i0 += kTile) {
    const int64_t rows = std::min(kTile, outer.size - i0);
    for (int64_t j0 = 0; j0 < inner.size; j0 += kTile) {
      const int64_t columns = std::min(kTile, inner.size - j0);
      for (int64_t i = i0; i < i0 + rows; ++i)
        CopyRow(from + i * outer.from + j0 * inner.from, to + i * outer.to + j0 * inner.to,
                LoopDim{columns, inner.from, inner.to});
    }
  }
}

template <class T>
void Copy(const TensorView& from, const TensorView& to) {
  const Loops loops = Plan(from, to);
  const size_t n = loops.size();
  const bool planes = n >= 2 && loops[n - 2].from == 1;
  const size_t inner = planes ? n - 2 : n - 1;  // loops [inner, n) are one unit of work
  int64_t units = 1, unit_size = 1;
  for (size_t d = 0; d < n; ++d) (d < inner ? units : unit_size) *= loops[d].size;

  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const T* f = from.as<const T>();
      T* t = to.as<T>();
      int64_t rest = u;
      for (size_t d = inner; d-- > 0;) {
        const int64_t i = rest % loops[d].size;
        rest /= loops[d].size;
        f += i * loops[d].from;
        t += i * loops[d].to;
      }
      if (planes)
        CopyPlane(f, t, loops[n - 2], loops[n - 1]);
      else
        CopyRow(f, t, loops[n - 1]);
    }
  };
  constexpr int64_t kGrain = 1 << 15;
  if (units == 1 && unit_size > 2 * kGrain) {  // cut the unit itself
    const LoopDim whole = loops[inner];
    const int64_t per_step = unit_size / whole.size;
    ParallelRange(whole.size, std::max<int64_t>(1, kGrain / per_step), [&](int64_t begin, int64_t end) {
      const T* f = from.as<const T>() + begin * whole.from;
      T* t = to.as<T>() + begin * whole.to;
      const LoopDim part{end - begin, whole.from, whole.to};
      if (planes)
        CopyPlane(f, t, part, loops[n - 1]);
      else
        CopyRow(f, t, part);
    });
  } else {
    ParallelRange(units, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, unit_size)), run);
  }
}

}  // namespace

void CopyView(const TensorView& from, const TensorView& to) {
  SINTER_CHECK(from.dtype == to.dtype && std::ranges::equal(from.sizes, to.sizes),
               "a copy between unlike views");
  if (to.numel() == 0) return;
  switch (ItemSize(to.dtype)) {
    case 1:
      return Copy<uint8_t>(from, to);
    case 2:
      return Copy<uint16_t>(from, to);
    case 4:
      return Copy<uint32_t>(from, to);
    default:
      return Copy<uint64_t>(from, to);
  }
}

}  // namespace sinter
