#pragma once

namespace sinter {

class Recorder;
class DispatchObserver;
class AutocastHook;
class Tensor;
struct GradModeGuardInfo;

/// What the eager runtime keeps per thread, in one place, so that the common case is one test.
struct EagerThreadState {
  bool grad_enabled = true;
  bool anomaly = false;      ///< tape nodes remember their call stacks
  bool decomposing = false;  ///< inside a composite that has a gradient of its own
  bool hooked = false;       ///< recorder, observer or autocast is set
  Recorder* recorder = nullptr;
  DispatchObserver* observer = nullptr;
  const AutocastHook* autocast = nullptr;
  const GradModeGuardInfo* no_grad = nullptr;  ///< the guard that turned gradients off
};
extern constinit thread_local EagerThreadState eager_state;

namespace eager_internal {
/// True while this thread's recorder follows handles. Apart from the rest: every handle asks.
extern constinit thread_local bool follow_handles;
void HandleCreated(Tensor* t) noexcept;
void HandleDestroyed(Tensor* t) noexcept;
void HandleAssigned(Tensor* t) noexcept;
}  // namespace eager_internal

}  // namespace sinter
