#include "sinter/eager/operators.h"

#include "sinter/eager/creation.h"
#include "sinter/eager/dispatch.h"
#include "sinter/graph/ops/arithmetic.h"

namespace sinter {

Tensor ScalarBeside(const Tensor& like, double value) {
  const DType t = like.dtype();
  return full({}, value, IsFloating(t) ? t : kFloat32);
}

Tensor ScalarBeside(const Tensor& like, int64_t value) {
  const DType t = like.dtype();
  if (t == kInt64 || t == kBool) return full_int({}, value);
  return full({}, static_cast<double>(value), t);
}

Tensor ScalarBeside(const Tensor& like, bool value) { return full({}, value, like.dtype()); }

namespace eager_internal {

Tensor Binary(const OpDef& op, const Tensor& a, const Tensor& b) {
  const Tensor* in[] = {&a, &b};
  return ApplyRefs1(op, nullptr, in);
}

const OpDef& AddOp() { return DefOf<ops::Add>(); }
const OpDef& SubOp() { return DefOf<ops::Sub>(); }
const OpDef& MulOp() { return DefOf<ops::Mul>(); }
const OpDef& DivOp() { return DefOf<ops::Div>(); }
const OpDef& LessOp() { return DefOf<ops::Less>(); }
const OpDef& LessEqualOp() { return DefOf<ops::LessEqual>(); }
const OpDef& GreaterOp() { return DefOf<ops::Greater>(); }
const OpDef& GreaterEqualOp() { return DefOf<ops::GreaterEqual>(); }
const OpDef& EqualOp() { return DefOf<ops::Equal>(); }
const OpDef& NotEqualOp() { return DefOf<ops::NotEqual>(); }

}  // namespace eager_internal

Tensor operator-(const Tensor& a) { return neg(a); }
Tensor operator&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
Tensor operator^(const Tensor& a, const Tensor& b) { return logical_xor(a, b); }
Tensor operator~(const Tensor& a) { return logical_not(a); }

}  // namespace sinter
