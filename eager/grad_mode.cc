#include "sinter/eager/grad_mode.h"

#include "sinter/graph/call_stack.h"

namespace sinter {

NoGradGuard::NoGradGuard() : previous_(eager_state.grad_enabled), previous_info_(eager_state.no_grad) {
  info_.stack = CaptureCallStack();
  eager_state.grad_enabled = false;
  eager_state.no_grad = &info_;
}

NoGradGuard::~NoGradGuard() {
  eager_state.grad_enabled = previous_;
  eager_state.no_grad = previous_info_;
}

namespace eager {

std::shared_ptr<const GradientCut> CurrentNoGradCut() {
  const GradModeGuardInfo* info = eager_state.no_grad;
  if (info == nullptr) return nullptr;
  if (!info->cut)
    info->cut = std::make_shared<GradientCut>(GradientCut{GradientCut::kGradModeOff, nullptr, info->stack});
  return info->cut;
}

}  // namespace eager
}  // namespace sinter
