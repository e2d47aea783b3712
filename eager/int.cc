#include "sinter/eager/int.h"

#include "sinter/eager/creation.h"
#include "sinter/eager/dispatch.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/constant.h"

namespace sinter {
namespace {

Tensor SizeTensor(const Dim& d) {
  if (d.is_const()) return full_int({}, d.value());
  return ApplyOp1(DefOf<ops::SizeOf>(), MakeAttrs(ops::SizeOf::Attrs{.value = d}), {});
}

Bool Compare(const Int& a, const Int& b, std::optional<bool> known, const OpDef& op) {
  if (known) return *known;
  const Tensor in[] = {a.tensor(), b.tensor()};
  return Bool(ApplyOp1(op, nullptr, in));
}

template <class F>
std::optional<bool> IfSizes(const Int& a, const Int& b, F&& f) {
  return a.is_size() && b.is_size() ? f(a.dim(), b.dim()) : std::nullopt;
}

Int Arithmetic(const Int& a, const Int& b, const OpDef& op) {
  const Tensor in[] = {a.tensor(), b.tensor()};
  return Int(ApplyOp1(op, nullptr, in));
}

}  // namespace

Tensor Bool::tensor() const { return tensor_.defined() ? tensor_ : full({}, value_, kBool); }

Int::Int(Number n) : dim_(n.value) {
  if (Recorder::Current() != nullptr) tensor_ = full_int({}, n.value);
}

Int::Int(const Tensor& value) {
  if (value.dtype() != kInt64 || value.rank() != 0)
    throw Error(ErrorCode::kInvalidArgument,
                "Int: needs an int64 tensor of no dimensions, this one is " + value.TypeString());
  if (value.is_symbolic() || Recorder::Current() != nullptr)
    tensor_ = value;
  else
    dim_ = Dim(value.item<int64_t>());
}

Int& Int::operator=(const Int& o) {
  if (Recorder::Current() != nullptr) {
    tensor_ = o.tensor();
  } else {
    dim_ = o.dim_;
    tensor_ = o.tensor_;
  }
  return *this;
}

Dim Int::dim() const {
  if (tensor_.defined())
    throw Error(ErrorCode::kFailedPrecondition,
                "Int: a counter or a computed value can't be a size or a bound here; index with it (x[i]), "
                "or make sizes from x.dim(i)");
  return dim_;
}

Tensor Int::tensor() const { return tensor_.defined() ? tensor_ : SizeTensor(dim_); }

int64_t Int::value() const {
  if (tensor_.defined()) return tensor_.item<int64_t>();
  if (dim_.is_const()) return dim_.value();
  Recorder* r = Recorder::Current();
  if (r == nullptr)
    throw Error(ErrorCode::kFailedPrecondition,
                "Int: " + dim_.ToString() + " has no value outside of the capture that made it");
  return r->HostSize(dim_, "value()");
}

Int Int::operator++(int) {
  Int old = *this;
  ++*this;
  return old;
}

Int Int::operator--(int) {
  Int old = *this;
  --*this;
  return old;
}

Int operator+(const Int& a, const Int& b) {
  return a.is_size() && b.is_size() ? Int::FromDim(a.dim_ + b.dim_) : Arithmetic(a, b, DefOf<ops::Add>());
}
Int operator-(const Int& a, const Int& b) {
  return a.is_size() && b.is_size() ? Int::FromDim(a.dim_ - b.dim_) : Arithmetic(a, b, DefOf<ops::Sub>());
}
Int operator*(const Int& a, const Int& b) {
  return a.is_size() && b.is_size() ? Int::FromDim(a.dim_ * b.dim_) : Arithmetic(a, b, DefOf<ops::Mul>());
}

Bool operator<(const Int& a, const Int& b) {
  return Compare(a, b, IfSizes(a, b, ProvablyLt), DefOf<ops::Less>());
}
Bool operator<=(const Int& a, const Int& b) {
  return Compare(a, b, IfSizes(a, b, ProvablyLe), DefOf<ops::LessEqual>());
}
Bool operator==(const Int& a, const Int& b) {
  return Compare(a, b, IfSizes(a, b, ProvablyEqual), DefOf<ops::Equal>());
}
Bool operator!=(const Int& a, const Int& b) {
  std::optional<bool> equal = IfSizes(a, b, ProvablyEqual);
  return Compare(a, b, equal ? std::optional<bool>(!*equal) : std::nullopt, DefOf<ops::NotEqual>());
}

}  // namespace sinter
