#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a function's own frames hold: how a loop that a plain host variable counts is told from one that only data ends.
namespace sinter::tracer {

/// The callee-saved registers and the stack words of a running function and its callers, from its innermost frame outside of the library
/// up to `top`.
struct HostState {
  std::vector<uint64_t> words;
};

/// The state of the code that called into the library. x86-64 only: empty elsewhere, so that nothing is ever found.
HostState CaptureHostState(const void* top);

/// A word that changed from each of these states to the next: "3 -> 4". Addresses don't count: they differ from turn to turn without
/// meaning anything.
std::optional<std::string> SteadyChange(const std::vector<HostState>& states);

}  // namespace sinter::tracer
