#include "sinter/eager/tensor.h"

#include "sinter/eager/autograd.h"
#include "sinter/eager/creation.h"
#include "sinter/eager/dispatch.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/int.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/call_stack.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/half.h"

namespace sinter {
namespace {

[[noreturn]] void FailOutside(std::string_view what) {
  throw Error(ErrorCode::kFailedPrecondition, StrCat(what,
                                                     ": this tensor was made while a function was captured "
                                                     "and has no value outside of it; return it from the "
                                                     "captured function instead of storing it"));
}

// The host needs the values of `t`.
void NeedConcrete(TensorImpl& t, std::string_view what) {
  if (Recorder* r = Recorder::Current()) r->HostRead(t, what);
  if (t.symbolic) FailOutside(what);
}

}  // namespace

void Tensor::FailUndefined() {
  throw Error(ErrorCode::kFailedPrecondition,
              "use of an undefined tensor: it was default-made, moved from, or is a gradient that was never "
              "computed; assign it first "
              "(defined() tells)");
}

DType Tensor::dtype() const { return impl().symbolic ? impl().symbolic->type.dtype : impl().dtype; }
int Tensor::rank() const { return impl().rank(); }

Shape Tensor::shape() const {
  TensorImpl& t = impl();
  if (!t.symbolic) return t.shape;
  Shape s;
  for (const Dim& d : t.symbolic->type.shape) {
    if (d.is_const()) {
      s.push_back(d.value());
    } else {
      Recorder* r = Recorder::Current();
      if (r == nullptr) FailOutside("shape()");
      s.push_back(r->HostSize(d, "shape()"));
    }
  }
  return s;
}

SymShape Tensor::sym_shape() const { return SymbolicTypeOf(impl()).shape; }

Int Tensor::dim(int i) const {
  TensorImpl& t = impl();
  const int axis = NormalizeAxis(i, t.rank(), "dim");
  return Int::FromDim(t.symbolic ? t.symbolic->type.shape[axis] : Dim(t.shape[axis]));
}

int64_t Tensor::numel() const { return NumElements(shape()); }

const Shape& Tensor::strides() const {
  if (impl().symbolic) FailOutside("strides()");
  return impl().strides;
}

bool Tensor::is_contiguous() const {
  return impl().symbolic != nullptr || IsRowMajor(impl().shape, impl().strides);
}

std::string Tensor::TypeString() const {
  return defined() ? TypeToString(SymbolicTypeOf(impl())) : "undefined";
}

// Values
// ---------------------------------------------------------------------------------------------------------

ImplPtr Tensor::HostValues(std::string_view what) const {
  NeedConcrete(impl(), what);
  return RowMajor(impl_);
}

ImplPtr Tensor::OneElement(std::string_view what) const {
  TensorImpl& t = impl();
  NeedConcrete(t, what);
  if (t.numel() != 1)
    throw Error(ErrorCode::kInvalidArgument,
                StrCat(what, ": needs a tensor of one element, this one is ", TypeString(),
                       "; reduce it first (sum, max, any, all) or use ToVector()"));
  return impl_;
}

double Tensor::ElementAsDouble(const TensorImpl& t, int64_t i) {
  const std::byte* p = t.data() + i * ItemSize(t.dtype);
  switch (t.dtype) {
    case kFloat32:
      return *reinterpret_cast<const float*>(p);
    case kFloat64:
      return *reinterpret_cast<const double*>(p);
    case kFloat16:
      return HalfToFloat(*reinterpret_cast<const uint16_t*>(p));
    case kBFloat16:
      return BFloat16ToFloat(*reinterpret_cast<const uint16_t*>(p));
    default:
      return static_cast<double>(ElementAsInt(t, i));
  }
}

int64_t Tensor::ElementAsInt(const TensorImpl& t, int64_t i) {
  const std::byte* p = t.data() + i * ItemSize(t.dtype);
  switch (t.dtype) {
    case kInt8:
      return *reinterpret_cast<const int8_t*>(p);
    case kUInt8:
      return *reinterpret_cast<const uint8_t*>(p);
    case kInt32:
      return *reinterpret_cast<const int32_t*>(p);
    case kInt64:
      return *reinterpret_cast<const int64_t*>(p);
    case kBool:
      return *reinterpret_cast<const uint8_t*>(p) != 0;
    default:
      return static_cast<int64_t>(ElementAsDouble(t, i));
  }
}

const void* Tensor::RawData(DType t, size_t item_size, std::string_view what) const {
  TensorImpl& i = impl();
  NeedConcrete(i, what);
  const bool half = t == kFloat16 && i.dtype == kBFloat16;
  if (i.dtype != t && !half)
    throw Error(ErrorCode::kInvalidArgument,
                StrCat(what, ": asked for elements of ", item_size, " bytes of type ", DTypeName(t),
                       ", the tensor is ", TypeString(), "; convert it with to()"));
  if (!IsRowMajor(i.shape, i.strides))
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(what, ": the elements of this ", TypeString(),
                       " are not packed in row-major order; call contiguous() first"));
  return i.data();
}

void* Tensor::MutableRawData(DType t, size_t item_size) {
  const void* p = RawData(t, item_size, "mutable_data()");
  if (impl().storage->read_only())
    throw Error(ErrorCode::kPermissionDenied,
                "mutable_data(): this memory is read-only (a mapped file); write to a clone()");
  impl().storage->MarkWritten();
  return const_cast<void*>(p);
}

uint64_t Tensor::version() const {
  NeedConcrete(impl(), "version()");
  return impl().storage->version();
}

Tensor::operator bool() const {
  TensorImpl& t = impl();
  if (Recorder* r = Recorder::Current()) return r->Decide(t);
  if (t.symbolic) FailOutside("condition");
  if (t.numel() != 1)
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("condition: a tensor as a condition must have one element, this one is ", TypeString(),
                       "; say any() or all()"));
  return ElementAsDouble(t, 0) != 0;
}

// Gradients
// ------------------------------------------------------------------------------------------------------

Tensor& Tensor::requires_grad_(bool on) {
  TensorImpl& t = impl();
  if (on && !IsFloating(dtype()))
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("requires_grad_: only floating tensors have gradients, this one is ", TypeString()));
  if (!on && t.node)
    throw Error(ErrorCode::kFailedPrecondition,
                "requires_grad_(false): the tensor is a result, not a leaf; use detach()");
  t.requires_grad = on;
  if (on) t.cut = nullptr;
  return *this;
}

Tensor Tensor::grad() const {
  TensorImpl& t = impl();
  if (Recorder* r = Recorder::Current()) return Tensor(r->ReadGrad(t));
  return Tensor(t.retained_grad ? *t.retained_grad : t.grad);
}

void Tensor::set_grad(const Tensor& grad) {
  TensorImpl& t = impl();
  if (grad.defined() && (grad.dtype() != dtype() || grad.sym_shape() != sym_shape()))
    throw Error(ErrorCode::kInvalidArgument, StrCat("set_grad: a gradient of type ", grad.TypeString(),
                                                    " for a tensor of type ", TypeString()));
  if (Recorder* r = Recorder::Current()) return r->AssignGrad(t, grad.impl_.get());
  t.grad = grad.impl_;
}

void Tensor::clear_grad() { set_grad(Tensor()); }

void Tensor::retain_grad() {
  TensorImpl& t = impl();
  if (!t.requires_grad)
    throw Error(ErrorCode::kFailedPrecondition, "retain_grad: this tensor needs no gradient");
  if (!t.node || t.retained_grad) return;
  t.retained_grad = std::make_shared<ImplPtr>();
  t.node->retained.emplace_back(t.output_index, t.retained_grad);
}

Tensor Tensor::detach() const {
  TensorImpl& t = impl();
  if (t.symbolic || Recorder::Current() != nullptr) return stop_gradient(*this);
  ImplPtr alias = NewAlias(t, t.shape, t.strides, t.offset);
  alias->is_view = t.is_view;
  if (t.requires_grad)
    alias->cut =
        std::make_shared<GradientCut>(GradientCut{GradientCut::kDetached, nullptr, CaptureCallStack()});
  return Tensor(std::move(alias));
}

// Writing
// --------------------------------------------------------------------------------------------------------

namespace {

void CheckAssignable(std::string_view what, const Tensor& cell, const Tensor& value) {
  if (cell.dtype() == value.dtype() && cell.sym_shape() == value.sym_shape()) return;
  throw Error(ErrorCode::kInvalidArgument,
              StrCat(what, ": can't put ", value.TypeString(), " into a tensor of type ", cell.TypeString(),
                     "; convert or reshape the value first"));
}

}  // namespace

void Tensor::set_data(const Tensor& value) {
  CheckAssignable("set_data", *this, value);
  PutData(value.impl(), false);
}

void Tensor::set_data(Tensor&& value) {
  CheckAssignable("set_data", *this, value);
  PutData(value.impl(), value.impl().unique());
}

// Memory that someone else may see is copied: an optimizer that writes into the cell must not write there.
void Tensor::PutData(TensorImpl& v, bool may_take) {
  TensorImpl& t = impl();
  if (&t == &v) return;
  if (Recorder* r = Recorder::Current()) return r->Assign(t, v);
  if (t.symbolic || v.symbolic) FailOutside("set_data");
  ImplPtr own(&v);
  if (!may_take || !v.storage->unique() || v.storage->read_only()) {
    own = NewTensor(v.dtype, v.shape);
    CopyValues(v, *own);
  }
  t.storage = own->storage;
  t.offset = own->offset;
  t.strides = own->strides;
}

Tensor& Tensor::copy_(const Tensor& from) {
  Tensor value = from.dtype() == dtype() ? from : from.to(dtype());
  if (value.sym_shape() != sym_shape()) value = value.expand(sym_shape());
  eager::WriteInPlace(impl(), value.impl());
  return *this;
}

Tensor& Tensor::fill_(double value) {
  Tensor v = full({}, value, dtype()).expand(sym_shape());
  eager::WriteInPlace(impl(), v.impl());
  return *this;
}

namespace {

Tensor& InPlace(Tensor& t, const OpDef& op, const Tensor& o) {
  TensorImpl* in[] = {&t.impl(), &o.impl()};
  eager::DispatchInPlace(op, nullptr, in);
  return t;
}

}  // namespace

Tensor& Tensor::add_(const Tensor& o) { return InPlace(*this, DefOf<ops::Add>(), o); }
Tensor& Tensor::sub_(const Tensor& o) { return InPlace(*this, DefOf<ops::Sub>(), o); }
Tensor& Tensor::mul_(const Tensor& o) { return InPlace(*this, DefOf<ops::Mul>(), o); }
Tensor& Tensor::div_(const Tensor& o) { return InPlace(*this, DefOf<ops::Div>(), o); }
Tensor& Tensor::add_(double o) { return add_(full({}, o, dtype())); }
Tensor& Tensor::sub_(double o) { return sub_(full({}, o, dtype())); }
Tensor& Tensor::mul_(double o) { return mul_(full({}, o, dtype())); }
Tensor& Tensor::div_(double o) { return div_(full({}, o, dtype())); }

// Parameter, Buffer
// ----------------------------------------------------------------------------------------------

namespace {

// A leaf of its own.
ImplPtr NewCell(const Tensor& value) {
  NeedConcrete(value.impl(), "a parameter or buffer made from a value");
  const TensorImpl& v = value.impl();
  ImplPtr cell = NewTensor(v.dtype, v.shape);
  CopyValues(v, *cell);
  return cell;
}

}  // namespace

Parameter::Parameter(const Tensor& value, bool requires_grad) : Tensor(NewCell(value)) {
  requires_grad_(requires_grad);
}

Parameter& Parameter::operator=(const Tensor& value) {
  if (defined())
    set_data(value);
  else
    Tensor::operator=(Parameter(value));
  return *this;
}

Parameter& Parameter::operator=(Tensor&& value) {
  if (defined())
    set_data(std::move(value));
  else
    Tensor::operator=(Parameter(value));
  return *this;
}

Buffer::Buffer(const Tensor& value) : Tensor(NewCell(value)) {}

Buffer& Buffer::operator=(const Tensor& value) {
  if (defined())
    set_data(value);
  else
    Tensor::operator=(Buffer(value));
  return *this;
}

Buffer& Buffer::operator=(Tensor&& value) {
  if (defined())
    set_data(std::move(value));
  else
    Tensor::operator=(Buffer(value));
  return *this;
}

}  // namespace sinter
