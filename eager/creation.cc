#include "sinter/eager/creation.h"

#include <cmath>
#include <cstring>

#include "sinter/eager/operators.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/half.h"

namespace sinter {
namespace {

Tensor Literal(DType dtype, const Shape& sizes, const void* data, size_t bytes) {
  const auto* p = static_cast<const std::byte*>(data);
  TensorLiteral value{dtype, sizes, std::make_shared<const std::vector<std::byte>>(p, p + bytes)};
  return ApplyOp1(DefOf<ops::Constant>(), MakeAttrs(ops::Constant::Attrs{.value = std::move(value)}), {});
}

template <class T>
void Fill(void* data, int64_t n, T value) {
  std::fill_n(static_cast<T*>(data), n, value);
}

// As ExprKind::kConvert from f64.
void FillWith(void* data, int64_t n, double v, DType dtype) {
  auto clamp = [v](double low, double high) {
    return v != v ? 0.0 : std::min(std::max(std::trunc(v), low), high);
  };
  switch (dtype) {
    case kFloat32:
      return Fill(data, n, static_cast<float>(v));
    case kFloat64:
      return Fill(data, n, v);
    case kFloat16:
      return Fill(data, n, FloatToHalf(static_cast<float>(v)));
    case kBFloat16:
      return Fill(data, n, FloatToBFloat16(static_cast<float>(v)));
    case kInt8:
      return Fill(data, n, static_cast<int8_t>(static_cast<int32_t>(clamp(INT32_MIN, INT32_MAX))));
    case kUInt8:
      return Fill(data, n, static_cast<uint8_t>(static_cast<int32_t>(clamp(INT32_MIN, INT32_MAX))));
    case kInt32:
      return Fill(data, n, static_cast<int32_t>(clamp(INT32_MIN, INT32_MAX)));
    case kInt64:
      return Fill(data, n, v >= 0x1p63 ? INT64_MAX : static_cast<int64_t>(clamp(-0x1p63, 0x1p63)));
    case kBool:
      return Fill(data, n, static_cast<uint8_t>(v != 0));
  }
}

Shape ConstantSizes(const Sizes& sizes, const char* what) {
  Shape s;
  for (const Dim& d : sizes.dims()) {
    s.push_back(d.value());
    if (s.back() < 0)
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat(what, ": a size of ", ShapeToString(sizes.dims()), " is negative"));
  }
  return s;
}

}  // namespace

Tensor full(const Sizes& sizes, double value, DType dtype) {
  if (Recorder::Current() != nullptr)
    return ApplyOp1(DefOf<ops::Full>(),
                    MakeAttrs(ops::Full::Attrs{.shape = sizes.vec(), .value = value, .dtype = dtype}), {});
  ImplPtr t = NewTensor(dtype, ConstantSizes(sizes, "full"));
  FillWith(t->data(), t->numel(), value, dtype);
  return Tensor(std::move(t));
}

Tensor full_int(const Sizes& sizes, int64_t value) {
  if (Recorder::Current() != nullptr) {
    Tensor one = Literal(kInt64, {}, &value, sizeof value);
    return sizes.dims().empty() ? one : one.expand(sizes);
  }
  ImplPtr t = NewTensor(kInt64, ConstantSizes(sizes, "full_int"));
  Fill(t->data(), t->numel(), value);
  return Tensor(std::move(t));
}

Tensor full_like(const Tensor& t, double value) { return full(t.sym_shape(), value, t.dtype()); }

Tensor arange(const Int& end) {
  if (end.is_size() && end.dim().is_const() && end.dim().value() < 0)
    throw Error(ErrorCode::kInvalidArgument, StrCat("arange: ", end.dim().value(), " numbers; the count can't be negative"));
  return ApplyOp1(DefOf<ops::Iota>(), MakeAttrs(ops::Iota::Attrs{.shape = {end.dim()}, .dim = 0}), {});
}

Tensor arange(double start, double end, double step, DType dtype) {
  if (!(step != 0) || !std::isfinite((end - start) / step))
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("arange: no numbers from ", start, " to ", end, " by ", step));
  const double count = std::ceil((end - start) / step);
  if (count > 0x1p62) throw Error(ErrorCode::kInvalidArgument, StrCat("arange: ", count, " numbers from ", start, " to ", end, " by ", step, " are more than a tensor can have"));
  const int64_t n = std::max<int64_t>(0, static_cast<int64_t>(count));
  Tensor i = arange(Int::FromDim(Dim(n))).to(kFloat64);
  return (i * step + start).to(dtype);
}

Tensor linspace(double start, double end, int64_t count, DType dtype) {
  if (count < 1)
    throw Error(ErrorCode::kInvalidArgument, StrCat("linspace: ", count, " numbers; at least 1 is needed"));
  if (count == 1) return full({1}, start, dtype);
  Tensor i = arange(Int::FromDim(Dim(count))).to(kFloat64);
  Tensor last = i == static_cast<double>(count - 1);
  return where(last, full({}, end, kFloat64), i * ((end - start) / static_cast<double>(count - 1)) + start)
      .to(dtype);
}

Tensor eye(const Int& n, DType dtype) {
  Tensor i = arange(n);
  return equal(i.unsqueeze(1), i.unsqueeze(0)).to(dtype);
}

Tensor from_blob(const void* data, const Shape& sizes, DType dtype) {
  for (int64_t d : sizes)
    if (d < 0) throw Error(ErrorCode::kInvalidArgument, StrCat("a tensor of shape ", ShapeToString(sizes), ": a size is negative"));
  if (data == nullptr && NumElements(sizes) > 0)
    throw Error(ErrorCode::kInvalidArgument, StrCat("from_blob: no memory for shape ", ShapeToString(sizes), ": the pointer is null"));
  const size_t bytes = static_cast<size_t>(NumElements(sizes)) * ItemSize(dtype);
  if (Recorder::Current() != nullptr) return Literal(dtype, sizes, data, bytes);
  ImplPtr t = NewTensor(dtype, sizes);
  if (bytes > 0) std::memcpy(t->data(), data, bytes);
  return Tensor(std::move(t));
}

namespace eager_internal {

void FailRagged() { throw Error(ErrorCode::kInvalidArgument, "tensor: the rows have different lengths"); }

}  // namespace eager_internal
}  // namespace sinter
