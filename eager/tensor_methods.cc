#include "sinter/eager/creation.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/recorder.h"
#include "sinter/eager/tensor.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/check.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/reduce.h"
#include "sinter/graph/ops/views.h"
#include "sinter/graph/strings.h"

// Ops as methods of Tensor.
namespace sinter {
namespace {

std::vector<Dim> Vec(const SymShape& s) { return {s.begin(), s.end()}; }

Tensor Reshaped(const Tensor& t, std::vector<Dim> sizes) { return reshape(t, {.shape = std::move(sizes)}); }

}  // namespace

Tensor Tensor::sum(std::vector<int64_t> axes, bool keepdim) const {
  return sinter::sum(*this, {std::move(axes), keepdim});
}
Tensor Tensor::mean(std::vector<int64_t> axes, bool keepdim) const {
  return sinter::mean(*this, {std::move(axes), keepdim});
}
Tensor Tensor::prod(std::vector<int64_t> axes, bool keepdim) const {
  return sinter::prod(*this, {std::move(axes), keepdim});
}
Tensor Tensor::max(std::vector<int64_t> axes, bool keepdim) const {
  return amax(*this, {std::move(axes), keepdim});
}
Tensor Tensor::min(std::vector<int64_t> axes, bool keepdim) const {
  return amin(*this, {std::move(axes), keepdim});
}
Tensor Tensor::any(std::vector<int64_t> axes, bool keepdim) const {
  return sinter::any(*this, {std::move(axes), keepdim});
}
Tensor Tensor::all(std::vector<int64_t> axes, bool keepdim) const {
  return sinter::all(*this, {std::move(axes), keepdim});
}
Tensor Tensor::argmax(int64_t dim, bool keepdim) const {
  return sinter::argmax(*this, {.dim = dim, .keepdim = keepdim});
}
Tensor Tensor::abs() const { return sinter::abs(*this); }
Tensor Tensor::exp() const { return sinter::exp(*this); }
Tensor Tensor::log() const { return sinter::log(*this); }
Tensor Tensor::sqrt() const { return sinter::sqrt(*this); }
Tensor Tensor::square() const { return sinter::square(*this); }
Tensor Tensor::tanh() const { return sinter::tanh(*this); }
Tensor Tensor::sigmoid() const { return sinter::sigmoid(*this); }
Tensor Tensor::relu() const { return sinter::relu(*this); }
Tensor Tensor::pow(const Tensor& exponent) const { return sinter::pow(*this, exponent); }
Tensor Tensor::pow(double exponent) const { return sinter::pow(*this, ScalarBeside(*this, exponent)); }
Tensor Tensor::maximum(const Tensor& o) const { return sinter::maximum(*this, o); }
Tensor Tensor::minimum(const Tensor& o) const { return sinter::minimum(*this, o); }

Tensor Tensor::reshape(const Sizes& sizes) const { return Reshaped(*this, sizes.vec()); }

Tensor Tensor::flatten(int start, int end) const {
  SymShape s = sym_shape();
  if (s.empty()) return Reshaped(*this, {Dim(1)});
  const int first = NormalizeAxis(start, rank(), "flatten"), last = NormalizeAxis(end, rank(), "flatten");
  if (first > last)
    throw Error(ErrorCode::kInvalidArgument, StrCat("flatten: dimension ", start, " lies behind ", end));
  std::vector<Dim> sizes(s.begin(), s.begin() + first + 1);
  for (int d = first + 1; d <= last; ++d) sizes.back() = sizes.back() * s[d];
  sizes.insert(sizes.end(), s.begin() + last + 1, s.end());
  return Reshaped(*this, std::move(sizes));
}

Tensor Tensor::transpose(int a, int b) const {
  const int first = NormalizeAxis(a, rank(), "transpose"), second = NormalizeAxis(b, rank(), "transpose");
  std::vector<int64_t> dims(rank());
  for (int d = 0; d < rank(); ++d) dims[d] = d;
  std::swap(dims[first], dims[second]);
  return sinter::permute(*this, {.dims = std::move(dims)});
}

Tensor Tensor::permute(std::vector<int64_t> dims) const {
  return sinter::permute(*this, {.dims = std::move(dims)});
}
Tensor Tensor::expand(const Sizes& sizes) const { return sinter::expand(*this, {.shape = sizes.vec()}); }

Tensor Tensor::squeeze(int dim) const {
  const int axis = NormalizeAxis(dim, rank(), "squeeze");
  std::vector<Dim> sizes = Vec(sym_shape());
  if (!IsOne(sizes[axis]))
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("squeeze: dimension ", dim, " of ", TypeString(), " is not of size 1"));
  sizes.erase(sizes.begin() + axis);
  return Reshaped(*this, std::move(sizes));
}

Tensor Tensor::unsqueeze(int dim) const {
  const int axis = NormalizeAxis(dim, rank() + 1, "unsqueeze");
  std::vector<Dim> sizes = Vec(sym_shape());
  sizes.insert(sizes.begin() + axis, Dim(1));
  return Reshaped(*this, std::move(sizes));
}

Tensor Tensor::slice(int dim, Dim start, Dim end, int64_t step) const {
  return sinter::slice(*this, {.dim = dim, .start = start, .end = end, .step = step});
}

Tensor Tensor::select(int dim, const Int& index) const {
  const int axis = NormalizeAxis(dim, rank(), "select");
  SymShape sizes = sym_shape();
  const Dim size = sizes[axis];
  std::vector<Dim> left = Vec(sizes);
  left.erase(left.begin() + axis);
  if (!index.is_size()) {  // a position that is data: the one of an iota that equals it picks the element
    const Tensor i = index.tensor(), n = Int::FromDim(size).tensor();
    Tensor at = arange(Int::FromDim(size)) == where(i < 0, i + n, i);
    std::vector<Dim> column(sizes.size(), Dim(1));
    column[axis] = size;
    Tensor mask = Reshaped(at, column);
    Tensor zero = full({}, 0, dtype());
    Tensor picked = where(mask, *this, zero).sum(axis);
    if (picked.dtype() != dtype()) picked = picked.to(dtype());
    return checked(picked, logical_and(i < n, i >= -n), {.message = StrCat("an index is out of range for dimension ", dim, " of ", TypeToString(TensorType{dtype(), sizes}))});
  }
  const Dim i = index.dim();
  if (i.is_const() && size.is_const() && (i.value() >= size.value() || i.value() < -size.value()))
    throw Error(ErrorCode::kOutOfRange,
                StrCat("index ", i.value(), " is out of range for dimension ", dim, " of ", TypeString()));
  const Dim end = i.is_const() && i.value() == -1 ? Dim(kToEnd) : i + Dim(1);
  return Reshaped(slice(axis, i, end), std::move(left));
}

Tensor Tensor::operator[](const Int& index) const { return select(0, index); }

Tensor Tensor::SelectFixed(int dim, int64_t index) const { return select(dim, Int::FromDim(index)); }

Tensor Tensor::to(DType t) const { return dtype() == t ? *this : cast(*this, {.dtype = t}); }

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  Tensor copy = cast(*this, {.dtype = dtype()});
  if (copy.is_contiguous()) return copy;
  // Pointwise results keep the layout of their operand; the copy is packed.
  TensorImpl& c = copy.impl();
  ImplPtr packed = RowMajor(copy.impl_ptr());
  c.storage = packed->storage;
  c.offset = packed->offset;
  c.strides = packed->strides;
  return copy;
}

}  // namespace sinter
