#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter {

/// One resolved frame of a call stack.
struct SourceFrame {
  std::string file;      ///< empty where no debug information covers the address
  int line = 0;          ///< 0 where unknown
  std::string function;  ///< demangled; "symbol+0x12" without debug information
  bool internal = false; ///< a frame of Sinter's own sources or of the standard library
};

/// The return addresses of the current call stack, innermost first, without the `skip` innermost callers.
/// Costs about a microsecond; resolves nothing.
std::vector<void*> CaptureCallStack(int skip = 0, int max_frames = 48);

/// The frames behind one return address, inlined ones included, innermost first.
std::vector<SourceFrame> ResolveAddress(void* return_address);

/// The innermost user frame of a stack: the first that is not Sinter's own. An example, test or program that lives in
/// the Sinter tree counts as the user's. Empty file when there is none.
SourceFrame UserFrame(const std::vector<void*>& stack);

/// "model.cpp:42" of UserFrame, "model.cpp:42 (forward)" with the function, or "unknown location" with a hint.
std::string UserLocation(const std::vector<void*>& stack, bool with_function = false);

}  // namespace sinter
