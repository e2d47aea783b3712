#pragma once

#include "sinter/eager/tensor.h"

namespace sinter {

/// A condition that `if`, `while`, && and || can take: decided already, or, while a function is captured, a
/// value that is seen as control flow when it is tested.
class Bool {
 public:
  Bool(bool value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  explicit Bool(Tensor value) : tensor_(std::move(value)) {}
  explicit operator bool() const { return tensor_.defined() ? static_cast<bool>(tensor_) : value_; }
  /// As a bool tensor of no dimensions.
  Tensor tensor() const;

 private:
  Tensor tensor_;
  bool value_ = false;
};

/// An integer that a capture can follow: a loop counter, an index, a size. Outside of a capture it is a plain
/// number.
///
///   for (Int i = 0; i < x.dim(0); ++i) total = total + x[i];
///
/// While captured it is a size expression as long as it comes from sizes and constants, and a value of the
/// program (i64, no dimensions) once it is a variable: made from a number, assigned, or changed in place.
class Int {
 public:
  Int() : Int(0) {}
  template <std::integral I>
  Int(I value) : Int(Number{static_cast<int64_t>(value)}) {}  // NOLINT(google-explicit-constructor)
  /// The value of an i64 tensor of one element.
  explicit Int(const Tensor& value);
  /// A size, which stays one.
  static Int FromDim(Dim d) { return Int(d, Tensor()); }

  Int(const Int&) = default;
  Int(Int&&) = default;
  Int& operator=(const Int& o);

  /// As a size: for shapes and bounds. A value that isn't made of sizes is an Error.
  Dim dim() const;
  operator Dim() const { return dim(); }  // NOLINT(google-explicit-constructor)
  /// As an i64 tensor of no dimensions.
  Tensor tensor() const;
  operator Tensor() const { return tensor(); }  // NOLINT(google-explicit-constructor)
  /// As a plain number; while captured a symbolic size is pinned, visibly, and a value of the program is an
  /// Error.
  int64_t value() const;
  bool is_size() const { return !tensor_.defined(); }

  Int& operator++() { return *this += 1; }
  Int& operator--() { return *this -= 1; }
  Int operator++(int);
  Int operator--(int);
  template <class T>
  Int& operator+=(const T& o) {
    return *this = *this + o;
  }
  template <class T>
  Int& operator-=(const T& o) {
    return *this = *this - o;
  }
  template <class T>
  Int& operator*=(const T& o) {
    return *this = *this * o;
  }

  friend Int operator+(const Int& a, const Int& b);
  friend Int operator-(const Int& a, const Int& b);
  friend Int operator*(const Int& a, const Int& b);
  friend Bool operator<(const Int& a, const Int& b);
  friend Bool operator<=(const Int& a, const Int& b);
  friend Bool operator>(const Int& a, const Int& b) { return b < a; }
  friend Bool operator>=(const Int& a, const Int& b) { return b <= a; }
  friend Bool operator==(const Int& a, const Int& b);
  friend Bool operator!=(const Int& a, const Int& b);

 private:
  struct Number {
    int64_t value;
  };
  explicit Int(Number n);
  Int(Dim d, Tensor t) : dim_(d), tensor_(std::move(t)) {}

  Dim dim_;
  Tensor tensor_;  // takes precedence
};

// Numbers beside an Int are constants, not variables.
#define SINTER_INT_OPERATOR(op)                             \
  template <std::integral I>                                \
  auto operator op(const Int& a, I b) {                     \
    return a op Int::FromDim(Dim(static_cast<int64_t>(b))); \
  }                                                         \
  template <std::integral I>                                \
  auto operator op(I a, const Int& b) {                     \
    return Int::FromDim(Dim(static_cast<int64_t>(a))) op b; \
  }
SINTER_INT_OPERATOR(+)
SINTER_INT_OPERATOR(-)
SINTER_INT_OPERATOR(*)
SINTER_INT_OPERATOR(<)
SINTER_INT_OPERATOR(<=)
SINTER_INT_OPERATOR(>)
SINTER_INT_OPERATOR(>=)
SINTER_INT_OPERATOR(==)
SINTER_INT_OPERATOR(!=)
#undef SINTER_INT_OPERATOR

}  // namespace sinter
