#pragma once

#include <string_view>

namespace sinter {
struct OpDef;
namespace op_internal {
/// A derivative op by its name, made if need be; null if the name isn't one's.
const OpDef* FindDerived(std::string_view name);
}  // namespace op_internal
}  // namespace sinter
