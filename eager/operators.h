#pragma once

#include "sinter/eager/tensor.h"

/// Arithmetic and comparisons of tensors by element, with each other and with host numbers.
///
/// A host number takes the element type of the tensor beside it. Only its kind may widen that: a floating
/// number beside integers computes in float32, an integer beside bool in int64.
namespace sinter {

/// The number as a tensor without dimensions, as it stands beside `like`.
Tensor ScalarBeside(const Tensor& like, double value);
Tensor ScalarBeside(const Tensor& like, int64_t value);
Tensor ScalarBeside(const Tensor& like, bool value);

namespace eager_internal {
template <HostScalar S>
Tensor Beside(const Tensor& like, S value) {
  if constexpr (std::is_same_v<S, bool>)
    return ScalarBeside(like, value);
  else if constexpr (std::integral<S>)
    return ScalarBeside(like, static_cast<int64_t>(value));
  else
    return ScalarBeside(like, static_cast<double>(value));
}
Tensor Binary(const OpDef& op, const Tensor& a, const Tensor& b);
const OpDef& AddOp();
const OpDef& SubOp();
const OpDef& MulOp();
const OpDef& DivOp();
const OpDef& LessOp();
const OpDef& LessEqualOp();
const OpDef& GreaterOp();
const OpDef& GreaterEqualOp();
const OpDef& EqualOp();
const OpDef& NotEqualOp();
}  // namespace eager_internal

#define SINTER_TENSOR_OPERATOR(op, def)                                                    \
  inline Tensor operator op(const Tensor& a, const Tensor& b) {                            \
    return eager_internal::Binary(eager_internal::def(), a, b);                            \
  }                                                                                        \
  template <HostScalar S>                                                                  \
  Tensor operator op(const Tensor& a, S b) {                                               \
    return eager_internal::Binary(eager_internal::def(), a, eager_internal::Beside(a, b)); \
  }                                                                                        \
  template <HostScalar S>                                                                  \
  Tensor operator op(S a, const Tensor& b) {                                               \
    return eager_internal::Binary(eager_internal::def(), eager_internal::Beside(b, a), b); \
  }
SINTER_TENSOR_OPERATOR(+, AddOp)
SINTER_TENSOR_OPERATOR(-, SubOp)
SINTER_TENSOR_OPERATOR(*, MulOp)
SINTER_TENSOR_OPERATOR(/, DivOp)
SINTER_TENSOR_OPERATOR(<, LessOp)
SINTER_TENSOR_OPERATOR(<=, LessEqualOp)
SINTER_TENSOR_OPERATOR(>, GreaterOp)
SINTER_TENSOR_OPERATOR(>=, GreaterEqualOp)
SINTER_TENSOR_OPERATOR(==, EqualOp)
SINTER_TENSOR_OPERATOR(!=, NotEqualOp)
#undef SINTER_TENSOR_OPERATOR

Tensor operator-(const Tensor& a);
/// Logical and, or, not, xor of bool tensors, by element.
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator~(const Tensor& a);

// Handles change, tensors don't: `x += y` is `x = x + y`. Writing in place is add_().
template <class T>
Tensor& operator+=(Tensor& a, const T& b) {
  return a = a + b;
}
template <class T>
Tensor& operator-=(Tensor& a, const T& b) {
  return a = a - b;
}
template <class T>
Tensor& operator*=(Tensor& a, const T& b) {
  return a = a * b;
}
template <class T>
Tensor& operator/=(Tensor& a, const T& b) {
  return a = a / b;
}

}  // namespace sinter
