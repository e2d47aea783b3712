#include "sinter/tracer/host_state.h"

#include <unwind.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "sinter/graph/call_stack.h"
#include "sinter/graph/strings.h"

namespace sinter::tracer {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

// Whether a return address is in code of the library alone: neither inlined into the user's function nor having it inlined.
bool OfLibrary(uintptr_t ip) {
  static thread_local std::unordered_map<uintptr_t, bool> known;
  auto [it, fresh] = known.emplace(ip, false);
  if (fresh) {
    const std::vector<SourceFrame> frames = ResolveAddress(reinterpret_cast<void*>(ip));
    it->second = !frames.empty() && std::all_of(frames.begin(), frames.end(), [](const SourceFrame& f) { return !f.file.empty() && f.internal; });
  }
  return it->second;
}

struct Walk {
  const char* top;
  HostState state;
};

_Unwind_Reason_Code Visit(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  if (OfLibrary(_Unwind_GetIP(context))) return _URC_NO_REASON;
  constexpr int kCalleeSaved[] = {3, 6, 12, 13, 14, 15};  // rbx, rbp, r12 to r15
  for (int r : kCalleeSaved) walk.state.words.push_back(_Unwind_GetGR(context, r));
  // Of this frame the unwinder tells the stack pointer at its call into the library.
  const char* from = reinterpret_cast<const char*>(_Unwind_GetCFA(context));
  if (from < walk.top && walk.top - from < (int64_t{1} << 20)) {
    const size_t at = walk.state.words.size(), n = static_cast<size_t>(walk.top - from) / sizeof(uint64_t);
    walk.state.words.resize(at + n);
    std::memcpy(walk.state.words.data() + at, from, n * sizeof(uint64_t));
  }
  return _URC_END_OF_STACK;
}

#endif

bool IsAddress(uint64_t word) { return word >= uint64_t{0x500000000000} && word < uint64_t{0x800000000000}; }

// Two 32-bit variables often share a word.
std::string ChangeText(uint64_t a, uint64_t b) {
  if (a >> 32 == b >> 32) return StrCat(static_cast<int32_t>(a), " -> ", static_cast<int32_t>(b));
  if (static_cast<uint32_t>(a) == static_cast<uint32_t>(b)) return StrCat(static_cast<int32_t>(a >> 32), " -> ", static_cast<int32_t>(b >> 32));
  return StrCat(static_cast<int64_t>(a), " -> ", static_cast<int64_t>(b));
}

}  // namespace

HostState CaptureHostState(const void* top) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
  Walk walk{static_cast<const char*>(top), {}};
  _Unwind_Backtrace(&Visit, &walk);
  return std::move(walk.state);
#else
  (void)top;
  return {};
#endif
}

std::optional<std::string> SteadyChange(const std::vector<HostState>& states) {
  if (states.size() < 3) return std::nullopt;
  for (const HostState& s : states)
    if (s.words.size() != states[0].words.size()) return std::nullopt;
  for (size_t w = 0; w < states[0].words.size(); ++w) {
    bool changes = true;
    for (size_t i = 1; changes && i < states.size(); ++i) {
      const uint64_t a = states[i - 1].words[w], b = states[i].words[w];
      changes = a != b && !IsAddress(a) && !IsAddress(b);
    }
    if (changes) return ChangeText(states[states.size() - 2].words[w], states.back().words[w]);
  }
  return std::nullopt;
}

}  // namespace sinter::tracer
