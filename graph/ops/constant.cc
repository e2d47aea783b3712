#include "sinter/graph/ops/constant.h"

#include <cstring>

#include "sinter/graph/ops/arithmetic.h"

namespace sinter {
namespace ops {

Expr Constant::Element(ElementCtx& c) {
  const TensorLiteral& v = c.Attrs<Attrs>().value;
  SINTER_CHECK(v.bytes && v.bytes->size() == static_cast<size_t>(ItemSize(v.dtype)), "a constant of many elements is a buffer");
  uint64_t bits = 0;
  std::memcpy(&bits, v.bytes->data(), v.bytes->size());
  SINTER_CHECK(ComputeType(v.dtype) == v.dtype, "constants of storage types are buffers");
  return Expr::ConstBits(v.dtype, bits);
}

TensorLiteral MakeScalar(DType t, double value) {
  const DType c = ComputeType(t);
  SINTER_CHECK(c == t, "a scalar literal has a compute type");
  const uint64_t bits = Expr::Const(c, value)->bits;
  auto bytes = std::make_shared<std::vector<std::byte>>(ItemSize(t));
  std::memcpy(bytes->data(), &bits, bytes->size());
  return {t, {}, std::move(bytes)};
}

}  // namespace ops

Var ApplyConstant(const Var& like, const OpDef& op, AttrPtr attrs) { return like.builder().Apply(op, std::move(attrs), {})[0]; }

Var ScalarLike(const Var& like, double value) {
  return ApplyConstant(like, DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{}, value, like.dtype()}));
}

Var FullLike(const Var& like, double value) {
  const SymShape& shape = like.shape();
  return ApplyConstant(like, DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{shape.begin(), shape.end()}, value, like.dtype()}));
}

Var ZerosOf(const Var& like, DType dtype, const SymShape& shape) {
  return ApplyConstant(like, DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{shape.begin(), shape.end()}, 0, dtype}));
}

Var SizeLike(const Var& like, Dim size) {
  return cast(ApplyConstant(like, DefOf<ops::SizeOf>(), MakeAttrs(ops::SizeOf::Attrs{size})), {.dtype = like.dtype()});
}

}  // namespace sinter
