#pragma once

/// Everything that a program needs.
#include "sinter/eager/autograd.h"          // IWYU pragma: export
#include "sinter/eager/creation.h"          // IWYU pragma: export
#include "sinter/eager/data/csv.h"          // IWYU pragma: export
#include "sinter/eager/grad_mode.h"         // IWYU pragma: export
#include "sinter/eager/io/io.h"             // IWYU pragma: export
#include "sinter/eager/nn/layers.h"         // IWYU pragma: export
#include "sinter/eager/nn/module.h"         // IWYU pragma: export
#include "sinter/eager/operators.h"         // IWYU pragma: export
#include "sinter/eager/optim/optim.h"       // IWYU pragma: export
#include "sinter/eager/print.h"             // IWYU pragma: export
#include "sinter/eager/random.h"            // IWYU pragma: export
#include "sinter/eager/tensor.h"            // IWYU pragma: export
#include "sinter/graph/ops/activations.h"   // IWYU pragma: export
#include "sinter/graph/ops/arithmetic.h"    // IWYU pragma: export
#include "sinter/graph/ops/contraction.h"   // IWYU pragma: export
#include "sinter/graph/ops/math.h"          // IWYU pragma: export
#include "sinter/graph/ops/nn.h"            // IWYU pragma: export
#include "sinter/graph/ops/random.h"        // IWYU pragma: export
#include "sinter/graph/ops/reduce.h"        // IWYU pragma: export
#include "sinter/graph/ops/views.h"         // IWYU pragma: export
#include "sinter/serialize/jit/jit.h"       // IWYU pragma: export
#include "sinter/tracer/expect_same.h"      // IWYU pragma: export
#include "sinter/tracer/static_function.h"  // IWYU pragma: export
