#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

/// What kind of fault a `sinter::Error` reports. The values equal those of `absl::StatusCode`.
enum class ErrorCode {
  kInvalidArgument = 3,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

/// The name of a code, e.g. "INVALID_ARGUMENT".
std::string_view ErrorCodeName(ErrorCode code);

/// A fault of the caller or of the world (a wrong shape, a damaged file), as opposed to a fault of Sinter.
/// The call stack is recorded when the error is made; `what()` names the user's line: the innermost frame that is
/// not Sinter's own. Copying is cheap and does not throw.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);

  ErrorCode code() const;
  /// The message without the location.
  const std::string& message() const;
  /// The return addresses of the calls that led here, innermost first.
  const std::vector<void*>& frames() const;
  /// Replaces the recorded stack, for an error found later than the line that caused it (a compile-time error
  /// of an op that was recorded earlier).
  Error WithFrames(std::vector<void*> frames) const;
  /// A copy whose message is preceded by `context` and ": ".
  Error WithContext(std::string_view context) const;
  /// "message\n  at file.cpp:12 (function)". Resolved on first use.
  const char* what() const noexcept override;

 private:
  struct State;
  explicit Error(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// A broken invariant of Sinter itself. The text asks for a report.
class InternalError : public std::exception {
 public:
  InternalError(const char* file, int line, std::string message);
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

[[noreturn]] void FailCheck(const char* file, int line, const char* condition);
[[noreturn]] void FailCheck(const char* file, int line, const char* condition, const std::string& detail);

/// Checks an invariant of Sinter's own code; throws InternalError. Never for user input.
#define SINTER_CHECK(condition, ...)                                                              \
  do {                                                                                            \
    if (!(condition)) [[unlikely]]                                                                \
      ::sinter::FailCheck(__FILE__, __LINE__, #condition __VA_OPT__(, ::std::string(__VA_ARGS__))); \
  } while (false)

}  // namespace sinter
