#pragma once

#include <vector>

namespace sinter {
struct OpDef;
/// Every op of Sinter, family by family.
std::vector<const OpDef*> BuiltinOps();
}  // namespace sinter
