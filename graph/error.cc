#include "sinter/graph/error.h"

#include <mutex>

#include "sinter/graph/call_stack.h"

namespace sinter {

struct Error::State {
  ErrorCode code;
  std::string message;
  std::vector<void*> frames;
  std::once_flag resolved;
  std::string text;
};

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case ErrorCode::kNotFound: return "NOT_FOUND";
    case ErrorCode::kPermissionDenied: return "PERMISSION_DENIED";
    case ErrorCode::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case ErrorCode::kFailedPrecondition: return "FAILED_PRECONDITION";
    case ErrorCode::kOutOfRange: return "OUT_OF_RANGE";
    case ErrorCode::kUnimplemented: return "UNIMPLEMENTED";
    case ErrorCode::kInternal: return "INTERNAL";
    case ErrorCode::kUnavailable: return "UNAVAILABLE";
    case ErrorCode::kDataLoss: return "DATA_LOSS";
  }
  return "UNKNOWN";
}

Error::Error(ErrorCode code, std::string message) : state_(std::make_shared<State>()) {
  state_->code = code;
  state_->message = std::move(message);
  state_->frames = CaptureCallStack(1);
}

ErrorCode Error::code() const { return state_->code; }
const std::string& Error::message() const { return state_->message; }
const std::vector<void*>& Error::frames() const { return state_->frames; }

Error Error::WithFrames(std::vector<void*> frames) const {
  auto state = std::make_shared<State>();
  state->code = state_->code;
  state->message = state_->message;
  state->frames = std::move(frames);
  return Error(std::move(state));
}

Error Error::WithContext(std::string_view context) const {
  auto state = std::make_shared<State>();
  state->code = state_->code;
  state->message = std::string(context) + ": " + state_->message;
  state->frames = state_->frames;
  return Error(std::move(state));
}

const char* Error::what() const noexcept {
  try {
    std::call_once(state_->resolved, [&] {
      state_->text = state_->message + "\n  at " + UserLocation(state_->frames, true);
    });
    return state_->text.c_str();
  } catch (...) {
    return state_->message.c_str();
  }
}

InternalError::InternalError(const char* file, int line, std::string message)
    : text_(std::make_shared<std::string>("internal error at " + std::string(file) + ":" + std::to_string(line) +
                                          ": " + message + " (this is a fault of Sinter: please report it)")) {}

void FailCheck(const char* file, int line, const char* condition) {
  throw InternalError(file, line, std::string("check failed: ") + condition);
}

void FailCheck(const char* file, int line, const char* condition, const std::string& detail) {
  throw InternalError(file, line, std::string("check failed: ") + condition + ": " + detail);
}

}  // namespace sinter
