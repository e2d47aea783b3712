#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/eager/live_members.h"
#include "sinter/eager/tensor_impl.h"
#include "sinter/eager/thread_state.h"
#include "sinter/graph/error.h"
#include "sinter/graph/op.h"

namespace sinter {

class Int;
class Tensor;

/// Host numbers that may stand beside a tensor in arithmetic.
template <class S>
concept HostScalar = std::is_arithmetic_v<S>;

inline constexpr int64_t kToEnd = int64_t{1} << 60;  ///< as the end of a slice: all that is left

/// Sizes as an argument: `{2, 3}`, `{x.dim(0), 4}`, a Shape, a vector of numbers.
class Sizes {
 public:
  Sizes(std::initializer_list<Dim> dims) : dims_(dims) {}        // NOLINT(google-explicit-constructor)
  Sizes(const SymShape& dims) : dims_(dims) {}                   // NOLINT(google-explicit-constructor)
  Sizes(const Shape& dims) : dims_(dims.begin(), dims.end()) {}  // NOLINT(google-explicit-constructor)
  Sizes(const std::vector<int64_t>& dims)
      : dims_(dims.begin(), dims.end()) {}  // NOLINT(google-explicit-constructor)
  const SymShape& dims() const { return dims_; }
  std::vector<Dim> vec() const { return {dims_.begin(), dims_.end()}; }

 private:
  SymShape dims_;
};

struct BackwardOptions {
  bool retain_graph = false;  ///< keep what the tape saved, so that another backward can follow
  bool create_graph = false;  ///< put the gradient computation on the tape too (implies retain_graph)
};

/// A handle of a multi-dimensional array of numbers. Copying a handle copies a pointer; handles of one tensor
/// see the same values. A default-made handle is undefined and good for assignment only.
///
/// Ops are functions (`relu(x)`, `matmul(a, b)`), operators, and the common ones also methods. Everything
/// computes at once, except while a function is captured, when it is recorded.
class Tensor {
 public:
  using Handle = Tensor;  ///< what ops act on; see HandleOf in graph/op.h

  Tensor() noexcept { Created(); }
  explicit Tensor(ImplPtr impl) noexcept : impl_(std::move(impl)) { Created(); }
  Tensor(const Tensor& o) noexcept : impl_(o.impl_) { Created(); }
  Tensor(Tensor&& o) noexcept : impl_(std::move(o.impl_)) { Created(); }
  Tensor& operator=(const Tensor& o) noexcept {
    Assigned();
    impl_ = o.impl_;
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    Assigned();
    impl_ = std::move(o.impl_);
    return *this;
  }
  ~Tensor() {
    if (eager_internal::follow_handles) [[unlikely]]
      eager_internal::HandleDestroyed(this);
  }

  bool defined() const { return static_cast<bool>(impl_); }
  /// Whether two handles are of one cell.
  bool is(const Tensor& o) const { return impl_ == o.impl_; }

  // What it is
  // ----------------------------------------------------------------------------------------------------
  DType dtype() const;
  int rank() const;
  /// Sizes as numbers. While captured, a symbolic size is pinned to its present value, visibly; prefer
  /// dim(i).
  Shape shape() const;
  /// Sizes as they are, symbolic while captured.
  SymShape sym_shape() const;
  /// Size along a dimension; negative counts from the end. Stays symbolic while captured; comparing it gives
  /// a Bool.
  Int dim(int i) const;
  /// Number of elements; as shape().
  int64_t numel() const;
  /// Distance of neighbours along each dimension, in elements. Concrete tensors only.
  const Shape& strides() const;
  bool is_contiguous() const;
  bool is_symbolic() const { return impl_ && impl_->symbolic != nullptr; }
  /// "float32[2, 3]"; "undefined".
  std::string TypeString() const;

  // Values
  // --------------------------------------------------------------------------------------------------------
  /// The only element, converted to T.
  template <class T>
  T item() const;
  /// Pointer to the first of densely packed elements in row-major order (is_contiguous() or an Error); T must
  /// be the element type (uint16_t for float16 and bfloat16). Valid while this tensor's memory is.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(RawData(DataType<T>(), sizeof(T), "data()"));
  }
  /// The same for writing: counts as an in-place write, so it must be asked for anew after reading elsewhere.
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(MutableRawData(DataType<T>(), sizeof(T)));
  }
  /// All elements in row-major order, converted to T.
  template <class T>
  std::vector<T> ToVector() const;
  /// Content number: unequal after any write or assignment.
  uint64_t version() const;
  /// The element as a condition; more than one element is an Error. While captured this is where control flow
  /// is seen.
  explicit operator bool() const;

  // Gradients
  // -----------------------------------------------------------------------------------------------------
  bool requires_grad() const { return impl_ && impl_->requires_grad; }
  /// Makes this leaf collect a gradient (or not). Floating types only.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const { return impl_ && !impl_->node; }
  /// The collected gradient; undefined if none.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void clear_grad();
  /// Collects a gradient although this is not a leaf.
  void retain_grad();
  /// Adds d this / d leaf to the gradient of every leaf below. `seed` is the gradient of this tensor: ones by
  /// default, which is for tensors of one element only.
  void backward(const Tensor& seed = Tensor(), BackwardOptions options = {}) const;
  /// The same values without history; shares memory.
  Tensor detach() const;

  // Writing
  // -------------------------------------------------------------------------------------------------------
  /// Puts another value of the same type into this cell (other handles see it), without its history. The cell
  /// gets memory of its own.
  void set_data(const Tensor& value);
  void set_data(Tensor&& value);
  Tensor& copy_(const Tensor& from);
  Tensor& fill_(double value);
  Tensor& zero_() { return fill_(0); }
  Tensor& add_(const Tensor& o);
  Tensor& sub_(const Tensor& o);
  Tensor& mul_(const Tensor& o);
  Tensor& div_(const Tensor& o);
  Tensor& add_(double o);
  Tensor& sub_(double o);
  Tensor& mul_(double o);
  Tensor& div_(double o);

  // Ops as methods
  // ------------------------------------------------------------------------------------------------
  Tensor sum(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor mean(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor prod(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor max(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor min(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor any(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  Tensor all(std::vector<int64_t> axes = {}, bool keepdim = false) const;
  template <std::integral I>
  Tensor sum(I axis, bool keepdim = false) const {
    return sum(std::vector<int64_t>{axis}, keepdim);
  }
  template <std::integral I>
  Tensor mean(I axis, bool keepdim = false) const {
    return mean(std::vector<int64_t>{axis}, keepdim);
  }
  template <std::integral I>
  Tensor max(I axis, bool keepdim = false) const {
    return max(std::vector<int64_t>{axis}, keepdim);
  }
  template <std::integral I>
  Tensor min(I axis, bool keepdim = false) const {
    return min(std::vector<int64_t>{axis}, keepdim);
  }
  Tensor argmax(int64_t dim = -1, bool keepdim = false) const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(double exponent) const;
  Tensor maximum(const Tensor& o) const;
  Tensor minimum(const Tensor& o) const;
  Tensor reshape(const Sizes& sizes) const;
  Tensor flatten(int start = 0, int end = -1) const;
  /// Exchanges two dimensions.
  Tensor transpose(int a = -2, int b = -1) const;
  Tensor permute(std::vector<int64_t> dims) const;
  Tensor expand(const Sizes& sizes) const;
  /// Removes a dimension of size 1.
  Tensor squeeze(int dim) const;
  /// Adds a dimension of size 1 before `dim`.
  Tensor unsqueeze(int dim) const;
  /// Elements start, start + step, ... below end; negative bounds count from the end.
  Tensor slice(int dim, Dim start, Dim end = kToEnd, int64_t step = 1) const;
  /// The sub-tensor at one position of a dimension, which disappears. The position may be the counter of a
  /// captured loop.
  Tensor select(int dim, const Int& index) const;
  Tensor operator[](const Int& index) const;
  /// A number written down stays a number while captured.
  template <std::integral I>
  Tensor operator[](I index) const {
    return SelectFixed(0, static_cast<int64_t>(index));
  }
  /// Converts the element type.
  Tensor to(DType dtype) const;
  /// This tensor if it is densely packed in row-major order, else a copy that is.
  Tensor contiguous() const;
  /// A copy with its own memory; gradients flow through.
  Tensor clone() const;

  // For the library
  // -----------------------------------------------------------------------------------------------
  /// The cell; an undefined handle is an Error.
  TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      FailUndefined();
    return *impl_;
  }
  const ImplPtr& impl_ptr() const { return impl_; }
  /// The pointer itself, for a recorder that exchanges cells behind a handle.
  ImplPtr& slot() { return impl_; }

 private:
  void Created() noexcept {
    if (eager_internal::follow_handles) [[unlikely]]
      eager_internal::HandleCreated(this);
  }
  void Assigned() noexcept {
    if (eager_internal::follow_handles) [[unlikely]]
      eager_internal::HandleAssigned(this);
  }
  template <class T>
  static constexpr DType DataType() {
    if constexpr (std::is_same_v<T, uint16_t>)
      return kFloat16;  // or bfloat16: RawData goes by size
    else
      return DTypeOf<T>::value;
  }
  [[noreturn]] static void FailUndefined();
  Tensor SelectFixed(int dim, int64_t index) const;
  void PutData(TensorImpl& value, bool may_take);
  const void* RawData(DType t, size_t item_size, std::string_view what) const;
  void* MutableRawData(DType t, size_t item_size);
  /// Row-major elements for reading on the host; copies if need be.
  ImplPtr HostValues(std::string_view what) const;
  static double ElementAsDouble(const TensorImpl& t, int64_t i);
  static int64_t ElementAsInt(const TensorImpl& t, int64_t i);
  template <class T>
  static T Element(const TensorImpl& t, int64_t i) {
    if constexpr (std::floating_point<T>)
      return static_cast<T>(ElementAsDouble(t, i));
    else if constexpr (std::same_as<T, bool>)
      return ElementAsDouble(t, i) != 0;
    else
      return IsFloating(t.dtype) ? static_cast<T>(ElementAsDouble(t, i)) : static_cast<T>(ElementAsInt(t, i));
  }
  /// The one element's host copy; more than one is an Error.
  ImplPtr OneElement(std::string_view what) const;

  ImplPtr impl_;
};

template <class T>
T Tensor::item() const {
  return Element<T>(*OneElement("item()"), 0);
}

template <class T>
std::vector<T> Tensor::ToVector() const {
  ImplPtr t = HostValues("ToVector()");
  std::vector<T> v(t->numel());
  for (size_t i = 0; i < v.size(); ++i) v[i] = Element<T>(*t, static_cast<int64_t>(i));
  return v;
}

/// How op objects carry out an op on tensors; see eager/dispatch.h.
std::vector<Tensor> ApplyOp(const OpDef& op, AttrPtr attrs, std::span<const Tensor> inputs);
Tensor ApplyOp1(const OpDef& op, AttrPtr attrs, std::span<const Tensor> inputs);
Tensor ApplyRefs1(const OpDef& op, AttrPtr attrs, std::span<const Tensor* const> inputs);

/// Gradients of `outputs` with respect to `inputs`, which collect nothing. `seeds` are the gradients of the
/// outputs (none: ones, for outputs of one element). An input that no output depends on is an Error, or gives
/// an undefined tensor with `allow_unused`.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& seeds = {}, BackwardOptions options = {},
                         bool allow_unused = false);

/// A member of a module that is learned: a cell that collects a gradient. Assigning puts the value into the
/// cell; the identity, and with it every handle, optimizer and compiled function that knows the cell, stays.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  /// A new cell with these values (its own memory).
  explicit Parameter(const Tensor& value, bool requires_grad = true);
  Parameter(const Parameter&) = default;  ///< another handle of the same cell
  Parameter(Parameter&&) = default;
  Parameter& operator=(const Tensor& value);
  Parameter& operator=(Tensor&& value);
  Parameter& operator=(const Parameter& o) {
    if (o.defined()) return *this = static_cast<const Tensor&>(o);
    Tensor::operator=(o);  // no value: no cell
    return *this;
  }

 private:
  LiveMember live_{MemberKind::kParameter};
};

/// A member of a module that is state but not learned, such as a running mean.
class Buffer : public Tensor {
 public:
  Buffer() = default;
  explicit Buffer(const Tensor& value);
  Buffer(const Buffer&) = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(const Tensor& value);
  Buffer& operator=(Tensor&& value);
  Buffer& operator=(const Buffer& o) {
    if (o.defined()) return *this = static_cast<const Tensor&>(o);
    Tensor::operator=(o);
    return *this;
  }

 private:
  LiveMember live_{MemberKind::kBuffer};
};

}  // namespace sinter

#include "sinter/eager/int.h"  // IWYU pragma: export
