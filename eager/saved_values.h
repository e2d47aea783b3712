#pragma once

#include <cstdint>

#include "sinter/eager/compute.h"

namespace sinter::eager {

/// Which values a gradient rule reads; of the others it looks at the types alone. Bit i; operands and results
/// beyond 63 always count as read.
struct SavedValues {
  uint64_t inputs = 0, outputs = 0;
  bool Input(size_t i) const { return i >= 64 || (inputs >> i & 1) != 0; }
  bool Output(size_t i) const { return i >= 64 || (outputs >> i & 1) != 0; }
};

/// Found by carrying out the rule on types, once for each op, attributes and types (for pointwise ops without
/// a rule of their own: once for each op, attributes and choice of operands that want a gradient).
SavedValues NeededByGradient(const OpDef& op, const AttrPtr& attrs, Operands in, const Results& out);

}  // namespace sinter::eager
