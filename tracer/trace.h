#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/runtime/function_ref.h"

/// What one run of a captured function leaves behind: closed pieces of straight-line code between its decisions.
///
/// At every decision all live values are renamed to the parameters P0, P1, ... of what follows, so that a segment names values only
/// by where they stand now, and two segments are compared by equality. docs/control_flow.md explains the algorithm.
namespace sinter::tracer {

/// A value as a segment names it.
struct Ref {
  enum Kind : uint8_t {
    kArgument,  ///< argument `index` of the function
    kExternal,  ///< the state cell `index` as it was before the call
    kParam,     ///< live value `index` at the last decision
    kLocal,     ///< result `output` of operation `index` of this segment
  } kind = kArgument;
  uint32_t index = 0;
  uint32_t output = 0;
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct TraceOp {
  const OpDef* op = nullptr;
  AttrPtr attrs;
  std::vector<Ref> inputs;
  std::vector<TensorType> types;  ///< of the results
  std::vector<void*> stack;       ///< not compared
  friend bool operator==(const TraceOp& a, const TraceOp& b) {
    return a.op == b.op && a.inputs == b.inputs && a.types == b.types && AttrsEqual(a.op->AttrsOrDefault(a.attrs), b.op->AttrsOrDefault(b.attrs));
  }
};

/// The gradient of a cell after the call: the last `values` of a kReturn segment, in this order.
struct FinalGrad {
  int external = 0;
  bool cleared = false;  ///< no value: the gradient was cleared
  friend bool operator==(const FinalGrad&, const FinalGrad&) = default;
};

/// Straight-line code, and what it arrives at.
struct Segment {
  enum Kind : uint8_t { kBranch, kReturn, kThrow } kind = kBranch;
  std::vector<TraceOp> ops;
  std::string key;                 ///< arrivals with equal keys may be one place of the program
  std::vector<Ref> values;         ///< of the live values (kBranch) or of results and written state (kReturn)
  std::vector<TensorType> types;   ///< of those
  Ref predicate;                   ///< kBranch
  std::vector<void*> stack;        ///< of the decision
  std::exception_ptr exception;    ///< kThrow
  std::vector<FinalGrad> final_grads;  ///< kReturn
  int num_results = 0;             ///< kReturn: the first of `values` are results, the rest written state, then gradients

  friend bool operator==(const Segment& a, const Segment& b) {
    return a.kind == b.kind && a.key == b.key && a.ops == b.ops && a.values == b.values && a.predicate == b.predicate;
  }
};

/// Decisions in order.
using Path = std::vector<bool>;

/// A function that can be run again and again under prescribed decisions.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Runs with these decisions and returns the segments met, path.size() + 1 of them or fewer if the function ends earlier.
  virtual std::vector<Segment> Run(const Path& path) = 0;
  /// The same for very long runs: nothing is kept, each segment is shown to `see` as it ends, until that says no. Operations have their
  /// lines from segment `lines_from` on.
  virtual void Follow(const Path& path, size_t lines_from, FunctionRef<bool(const Segment&)> see) = 0;
  /// Runs with these decisions and compares what the function's own variables hold at the decisions of these numbers: a value that
  /// changes from each to the next, for a message. Nothing if none does, or if it can't be seen here.
  virtual std::optional<std::string> HostChange(const Path& path, const std::vector<size_t>& decisions) = 0;
};

/// What differs between two segments, with lines.
std::string Difference(const Segment& a, const Segment& b);

}  // namespace sinter::tracer
