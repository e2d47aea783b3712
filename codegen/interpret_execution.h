#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>

#include "sinter/codegen/interpret_program.h"
#include "sinter/graph/numerics.h"

/// One call of an interpreted kernel. Internal to the interpreter.
namespace sinter::codegen {

/// Loops over which tiles run, outermost first: those that memory can't tell from one are one.
struct Domain {
  struct Axis {
    int var = 0;
    int slot = -1;
    int64_t extent = 1;
  };
  absl::InlinedVector<Axis, 4> axes;
  int64_t points = 1;
};

class Execution {
 public:
  /// Bytes that an execution works in.
  static size_t WorkBytes(const Program& p);
  /// `constants`: the slots of the program's constants.
  Execution(const Program& p, void* const* buffers, const int64_t* sizes, void* scratch, std::byte* constants,
            std::byte* work);
  void Run(int64_t begin, int64_t end);

 private:
  /// Lanes [at, at + n) of a tile are neighbours along the last axis; the first is at `coordinates`, by axis.
  struct Segment {
    int at = 0, n = 0;
    absl::InlinedVector<int64_t, 4> coordinates;
  };
  struct Tile {
    const Domain* domain = nullptr;
    absl::InlinedVector<Segment, 2> segments;
  };

  // interpret.cc: set-up, tiles, loads and stores.
  void FindStrides(void* const* buffers, std::byte* scratch);
  void FindCoefficients();
  Domain MakeDomain(std::span<const Loop* const> loops, std::span<const int> accesses);
  void Stage(const StageCode& s, const Domain& domain, int64_t begin, int64_t end);
  void StageByPoint(int64_t begin, int64_t end);
  void FillTile(const Domain& domain, int64_t at, int n);
  void RunCode(const std::vector<Instr>& code, int n);
  void Load(const Instr& i, int n);
  void Store(const StoreCode& s, int n);
  void Offsets(const Access& access, int n);
  const int64_t* Coefficients(int access) const {
    return &coefficients_[static_cast<size_t>(access) * (p_.vars + 1)];
  }
  /// Calls f(first lane, lanes, offset of the first, distance of offsets) for the segments of the tile.
  template <class F>
  void ForEachSegment(const int64_t* coefficients, F f) const;

  // interpret_reduce.cc.
  void Reduce(int number, int out, int n);
  const Domain& ReduceDomain(int number);
  template <class F>
  void ForEachValue(const ReduceCode& r, const Domain& domain, int n, F f);
  void ReduceByLane(const ReduceCode& r, const Domain& domain, int out, int n);
  void ContractByLane(const ReduceCode& r, const Domain& domain, int out, int n);
  /// Result elements one by one, with lanes over the values.
  void ByValue(const ReduceCode& r, const Domain& domain, int out);
  void ReduceOne(const ReduceCode& r, const Domain& domain, std::byte* out);
  void ContractOne(const ReduceCode& r, const Domain& domain, std::byte* out);
  int Push(const ReduceCode& r, int depth, int64_t block, const void* value, int n);
  void Finish(const ReduceCode& r, int depth, void* out, int n);
  std::byte* Work(const ReduceCode& r, int i) {
    return workspace_ + static_cast<size_t>(r.workspace + i) * kSlotBytes;
  }
  void Combine(const ReduceCode& r, void* acc, const void* value, int n) {
    r.combine(acc, value, value, acc, RoundLanes(n));
  }

  template <class T = void>
  T* Slot(int i) {
    return static_cast<T*>(static_cast<void*>(at_[i]));
  }
  std::byte* Own(int i) { return slots_ + static_cast<size_t>(i - constants_) * kSlotBytes; }

  const Program& p_;
  const int64_t* sizes_;
  const int constants_;
  std::byte* slots_;  // those of this execution
  std::byte* workspace_;
  absl::InlinedVector<std::byte*, 48> at_;         // by slot
  absl::InlinedVector<std::byte*, 8> base_;        // by buffer
  absl::InlinedVector<int64_t, 32> strides_;       // of all buffers, one after the other
  absl::InlinedVector<int, 8> first_stride_;       // by buffer
  absl::InlinedVector<int64_t, 32> coefficients_;  // by access: of each variable, and the constant
  absl::InlinedVector<int64_t, 8> values_;  // of each variable; of those of the tile, in its first lane
  absl::InlinedVector<Domain, 1> domains_;  // by stage
  absl::InlinedVector<Domain, 1> reduce_domains_;  // by reduction, made when first needed
  Tile tile_;
  bool reduce_lanes_ = false;
  int64_t offsets_[kLanes];
};

}  // namespace sinter::codegen
