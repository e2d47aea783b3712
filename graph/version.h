#pragma once

namespace sinter {

/// Of the library; files carry versions of their own.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace sinter
