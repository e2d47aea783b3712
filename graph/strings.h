#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

/// Abseil's string functions for std::string_view: the system's Abseil has a string_view type of its own.
namespace sinter {
namespace strings_internal {

inline absl::string_view Adapt(std::string_view s) { return {s.data(), s.size()}; }
template <class T>
  requires(!std::is_convertible_v<T, std::string_view>)
const T& Adapt(const T& v) { return v; }

}  // namespace strings_internal

template <class... A>
std::string StrCat(const A&... a) {
  return absl::StrCat(strings_internal::Adapt(a)...);
}

template <class... A>
void StrAppend(std::string* out, const A&... a) {
  absl::StrAppend(out, strings_internal::Adapt(a)...);
}

template <class Range>
std::string Join(const Range& range, std::string_view separator) {
  return absl::StrJoin(range, strings_internal::Adapt(separator));
}

template <class Range, class Formatter>
std::string Join(const Range& range, std::string_view separator, Formatter&& formatter) {
  return absl::StrJoin(range, strings_internal::Adapt(separator), std::forward<Formatter>(formatter));
}

}  // namespace sinter
