#include "sinter/eager/thread_state.h"

#include "sinter/eager/recorder.h"

namespace sinter {

constinit thread_local EagerThreadState eager_state;

namespace eager_internal {

constinit thread_local bool follow_handles = false;

void HandleCreated(Tensor* t) noexcept { eager_state.recorder->HandleCreated(t); }
void HandleDestroyed(Tensor* t) noexcept { eager_state.recorder->HandleDestroyed(t); }
void HandleAssigned(Tensor* t) noexcept { eager_state.recorder->HandleAssigned(t); }

}  // namespace eager_internal

namespace {

void Install(Recorder* recorder) {
  EagerThreadState& s = eager_state;
  s.recorder = recorder;
  s.hooked = recorder != nullptr || s.observer != nullptr || s.autocast != nullptr;
  eager_internal::follow_handles = recorder != nullptr;
}

}  // namespace

Recorder* Recorder::Current() { return eager_state.recorder; }

ScopedRecorder::ScopedRecorder(Recorder* recorder) : previous_(eager_state.recorder) { Install(recorder); }
ScopedRecorder::~ScopedRecorder() { Install(previous_); }

}  // namespace sinter
