#pragma once

/// What an op is. A struct in a family file under graph/ops carries everything about one op; `OpDef` is the same,
/// type-erased, and the only thing that the rest of Sinter sees. See graph/ops/README.md for how to add one.
#include "sinter/graph/op_call.h"   // IWYU pragma: export
#include "sinter/graph/op_def.h"    // IWYU pragma: export
#include "sinter/graph/op_rules.h"  // IWYU pragma: export
#include "sinter/graph/samples.h"   // IWYU pragma: export
