#pragma once

#include <memory>
#include <vector>

#include "sinter/eager/tensor_impl.h"
#include "sinter/eager/thread_state.h"

namespace sinter {

/// What a guard that turned gradients off knows of itself, for messages. Made when first asked for.
struct GradModeGuardInfo {
  std::vector<void*> stack;
  mutable std::shared_ptr<const GradientCut> cut;
};

/// Whether ops of this thread are put on the tape.
inline bool GradEnabled() { return eager_state.grad_enabled; }

/// While in scope, results need no gradient:  `NoGradGuard guard;`
class NoGradGuard {
 public:
  NoGradGuard();
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool previous_;
  const GradModeGuardInfo* previous_info_;
  GradModeGuardInfo info_;
};

/// While in scope, gradients are wanted, also inside a NoGradGuard.
class EnableGradGuard {
 public:
  EnableGradGuard() : previous_(eager_state.grad_enabled) { eager_state.grad_enabled = true; }
  ~EnableGradGuard() { eager_state.grad_enabled = previous_; }
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  bool previous_;
};

/// Runs f without gradients and returns what it returns.
template <class F>
auto no_grad(F&& f) {
  NoGradGuard guard;
  return f();
}
template <class F>
auto enable_grad(F&& f) {
  EnableGradGuard guard;
  return f();
}

/// While in scope, ops remember their call stacks, so that an error in a backward names the forward line.
/// Costs about a microsecond for each op.
class AnomalyGuard {
 public:
  explicit AnomalyGuard(bool on = true) : previous_(eager_state.anomaly) { eager_state.anomaly = on; }
  ~AnomalyGuard() { eager_state.anomaly = previous_; }
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool previous_;
};

namespace eager {
/// The library's own switch: no stack is kept. Results made under it have no history and no explanation.
class QuietNoGrad {
 public:
  explicit QuietNoGrad(bool off = true) : previous_(eager_state.grad_enabled), info_(eager_state.no_grad) {
    if (off) eager_state.grad_enabled = false, eager_state.no_grad = nullptr;
  }
  ~QuietNoGrad() { eager_state.grad_enabled = previous_, eager_state.no_grad = info_; }
  QuietNoGrad(const QuietNoGrad&) = delete;
  QuietNoGrad& operator=(const QuietNoGrad&) = delete;

 private:
  bool previous_;
  const GradModeGuardInfo* info_;
};

/// The explanation of results made now, while gradients are off; may be null.
std::shared_ptr<const GradientCut> CurrentNoGradCut();
}  // namespace eager

}  // namespace sinter
