#pragma once

#include <exception>
#include <functional>

namespace sinter::tracer {

/// A stack of its own for captured functions: at the same address in every run of this thread, so that a local variable has the same
/// address in each re-execution. Exceptions come back to the caller of Run.
class Fiber {
 public:
  /// This thread's fiber, made on first use.
  static Fiber& OfThread();

  /// Runs `body` on the fiber's stack and returns when it has returned or thrown. Nested calls run inline.
  void Run(const std::function<void()>& body);

  /// Whether an address is on the fiber's stack.
  bool OnStack(const void* p) const { return p >= low_ && p < high_; }
  const char* top() const { return high_; }
  /// Throws Error if little of the stack is left, which an endless recursion has eaten.
  void CheckRoom() const;

 private:
  Fiber();
  ~Fiber();
  static void Entry();

  char *low_ = nullptr, *high_ = nullptr;
  bool running_ = false;
  const std::function<void()>* body_ = nullptr;
  std::exception_ptr exception_;
  struct Contexts;
  Contexts* contexts_;
};

}  // namespace sinter::tracer
