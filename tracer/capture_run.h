#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/eager/recorder.h"
#include "sinter/eager/tensor.h"
#include "sinter/graph/graph.h"
#include "sinter/tracer/fiber.h"
#include "sinter/tracer/trace.h"

/// One function under capture: how it is called, and what all its runs share.
namespace sinter::tracer {

/// A function with its arguments flattened to tensors.
using FlatFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& arguments)>;

/// State that the function touched: a cell, or the gradient of one.
struct External {
  ImplPtr cell;    ///< of a gradient: what stood for it during the capture
  bool written = false;
  ImplPtr owner;   ///< the cell whose gradient this is; null for a cell itself

  /// What it is now. Throws Error for a gradient that is not there.
  TensorImpl& Current() const;
};

/// To be called on the captured function's stack just before user code begins: handles made so far are the library's own.
void BeginUserCode();

class CaptureSession final : public Subject {
 public:
  /// `strict`: asking for a symbolic size as a number is an Error instead of a guard.
  CaptureSession(FlatFunction function, std::vector<TensorType> arguments, DimEnv hints, bool strict)
      : function_(std::move(function)), arguments_(std::move(arguments)), hints_(std::move(hints)), strict_(strict) {}

  std::vector<Segment> Run(const Path& path) override;
  void Follow(const Path& path, size_t lines_from, FunctionRef<bool(const Segment&)> see) override;
  std::optional<std::string> HostChange(const Path& path, const std::vector<size_t>& decisions) override;

  const std::vector<External>& externals() const { return externals_; }
  const std::vector<GuardedCond>& guards() const { return guards_; }
  const std::vector<std::string>& pinned() const { return pinned_; }
  /// Written cells in the order in which a kReturn segment lists them.
  const std::vector<int>& written() const { return written_; }
  const std::vector<TensorType>& arguments() const { return arguments_; }
  /// Host flags that were read, with their values.
  const std::vector<std::pair<std::shared_ptr<const bool>, bool>>& flags() const { return flags_; }
  /// Cells that the function asked for their gradient, and whether there was one.
  const std::vector<std::pair<ImplPtr, bool>>& had_grad() const { return had_grad_; }
  /// Whether backward() was called.
  bool backward() const { return backward_; }

  /// Thrown by Run when a cell was written for the first time: what was learned so far assumed that it is read only.
  struct Restart {};

 private:
  friend class CaptureRun;
  int ExternalIndex(TensorImpl& cell);
  /// The gradient that `cell` has before the call; null if none.
  ImplPtr GradBefore(TensorImpl& cell);

  FlatFunction function_;
  std::vector<TensorType> arguments_;
  DimEnv hints_;
  bool strict_;
  std::vector<External> externals_;
  std::unordered_map<const TensorImpl*, int> external_index_;
  std::vector<int> written_;
  std::vector<GuardedCond> guards_;
  std::vector<std::string> pinned_;
  bool backward_ = false;
  std::vector<std::pair<std::shared_ptr<const bool>, bool>> flags_;
  std::vector<std::pair<ImplPtr, bool>> had_grad_;
  std::unordered_map<const TensorImpl*, ImplPtr> grads_before_;
  bool restart_ = false;
};

}  // namespace sinter::tracer
