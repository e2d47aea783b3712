#include "sinter/graph/ops/all_ops.h"

#include "sinter/graph/op.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/check.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/random.h"
#include "sinter/graph/ops/reduce.h"
#include "sinter/graph/ops/rounding.h"
#include "sinter/graph/ops/special.h"
#include "sinter/graph/ops/trigonometric.h"
#include "sinter/graph/ops/views.h"

namespace sinter {

std::vector<const OpDef*> BuiltinOps() {
  std::vector<const OpDef*> all;
  for (const auto& family :
       {ops::ArithmeticOps(), ops::MathOps(), ops::SpecialOps(), ops::TrigonometricOps(), ops::RoundingOps(), ops::ActivationOps(), ops::ConstantOps(), ops::ViewOps(), ops::ReduceOps(),
        ops::ContractionOps(), ops::NnOps(), ops::RandomOps(), ops::CheckOps(), ops::ControlFlowOps()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace sinter
