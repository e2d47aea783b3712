#include "sinter/tracer/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <utility>

#include "sinter/graph/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sinter::tracer {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20;
constexpr size_t kGuardBytes = 4096;
// What the library itself needs below the function's frames, exceptions with their lines included.
constexpr ptrdiff_t kReserveBytes = ptrdiff_t{1} << 20;

thread_local Fiber* current = nullptr;

}  // namespace

struct Fiber::Contexts {
  ucontext_t caller, fiber;
  void* fake_stack = nullptr;
  const void* caller_bottom = nullptr;
  size_t caller_size = 0;
};

Fiber& Fiber::OfThread() {
  thread_local Fiber fiber;
  return fiber;
}

Fiber::Fiber() : contexts_(new Contexts()) {
  void* p = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error(ErrorCode::kResourceExhausted, "capture: no memory for a stack");
  mprotect(p, kGuardBytes, PROT_NONE);
  low_ = static_cast<char*>(p);
  high_ = low_ + kStackBytes;
}

Fiber::~Fiber() {
  munmap(low_, kStackBytes);
  delete contexts_;
}

void Fiber::CheckRoom() const {
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (OnStack(here) && here - low_ < kReserveBytes)
    throw Error(ErrorCode::kResourceExhausted,
                "capture: the function calls itself without end, or deeper than its stack allows. A recursion that data ends can't be captured: write it as a loop");
}

void Fiber::Entry() {
  Fiber& f = *current;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &f.contexts_->caller_bottom, &f.contexts_->caller_size);
#endif
  try {
    (*f.body_)();
  } catch (...) {
    f.exception_ = std::current_exception();
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, f.contexts_->caller_bottom, f.contexts_->caller_size);
#endif
}

void Fiber::Run(const std::function<void()>& body) {
  if (running_) return body();
  running_ = true;
  body_ = &body;
  exception_ = nullptr;
  Fiber* previous = current;
  current = this;
  getcontext(&contexts_->fiber);
  contexts_->fiber.uc_stack.ss_sp = low_ + kGuardBytes;
  contexts_->fiber.uc_stack.ss_size = kStackBytes - kGuardBytes;
  contexts_->fiber.uc_link = &contexts_->caller;
  makecontext(&contexts_->fiber, reinterpret_cast<void (*)()>(&Fiber::Entry), 0);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&contexts_->fake_stack, low_ + kGuardBytes, kStackBytes - kGuardBytes);
#endif
  swapcontext(&contexts_->caller, &contexts_->fiber);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(contexts_->fake_stack, nullptr, nullptr);
#endif
  current = previous;
  running_ = false;
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

}  // namespace sinter::tracer
