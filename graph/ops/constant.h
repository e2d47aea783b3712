#pragma once

#include "sinter/graph/op.h"

namespace sinter::ops {

/// Bytes that a literal's type needs; the largest number where that is too large for any memory.
inline size_t ByteSize(const TensorLiteral& v) {
  size_t n = static_cast<size_t>(ItemSize(v.dtype));
  for (int64_t d : v.shape)
    if (__builtin_mul_overflow(n, static_cast<size_t>(d), &n)) return SIZE_MAX;
  return n;
}

/// A tensor written into the graph.
struct Constant {
  static constexpr OpInfo kInfo{.name = "constant", .kind = OpKind::kConstant, .inputs = 0, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  struct Attrs {
    TensorLiteral value;
    SINTER_FIELDS(value)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const TensorLiteral& v = c.template Attrs<Attrs>().value;
    if (!v.bytes) c.Fail("has no value");
    for (int64_t d : v.shape)
      if (d < 0) c.Fail("has a negative size");
    if (v.bytes->size() != ByteSize(v)) c.Fail("has a value of another size than its type");
    c.out[0].dtype = v.dtype;
    c.Out(ShapeVec<D>(v.shape.begin(), v.shape.end()));
  }
  /// Constants of one element only: larger ones are buffers.
  static Expr Element(ElementCtx& c);
};

/// Every element equal to `value` (integers: truncated; 64-bit integers beyond 2^53 need a constant).
struct Full {
  static constexpr OpInfo kInfo{.name = "full", .kind = OpKind::kConstant, .inputs = 0, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  struct Attrs {
    std::vector<Dim> shape;
    double value = 0;
    DType dtype = kFloat32;
    SINTER_FIELDS(shape, value, dtype)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    ShapeVec<D> out;
    for (Dim d : a.shape) {
      out.push_back(c.Size(d));
      c.Require(LeCond(D(0), out.back()), [] { return std::string("a size is negative"); });
    }
    c.out[0].dtype = a.dtype;
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c) { return Expr::Const(ComputeType(c.out[0].dtype), c.Attrs<Attrs>().value); }
};

/// The position along dimension `dim` (i64), in a tensor of the given shape.
struct Iota {
  static constexpr OpInfo kInfo{.name = "iota", .kind = OpKind::kConstant, .inputs = 0, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  struct Attrs {
    std::vector<Dim> shape;
    int64_t dim = 0;
    SINTER_FIELDS(shape, dim)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    const Attrs& a = c.template Attrs<Attrs>();
    NormalizeAxis(a.dim, static_cast<int>(a.shape.size()), "iota");
    ShapeVec<D> out;
    for (Dim d : a.shape) out.push_back(c.Size(d));
    c.out[0].dtype = kInt64;
    c.Out(std::move(out));
  }
  static Expr Element(ElementCtx& c) { return c.at[NormalizeAxis(c.Attrs<Attrs>().dim, static_cast<int>(c.at.size()), "iota")]; }
};

/// A size as an i64 scalar.
struct SizeOf {
  static constexpr OpInfo kInfo{.name = "size", .kind = OpKind::kConstant, .inputs = 0, .dtype = DTypeRule::kCustom};
  static constexpr bool kNoGrad = true;
  struct Attrs {
    Dim value;
    SINTER_FIELDS(value)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    c.out[0].dtype = kInt64;
    c.Out({});
  }
  static Expr Element(ElementCtx& c) { return Expr::Size(c.Attrs<Attrs>().value); }
};

/// A scalar of dtype t holding `value`.
TensorLiteral MakeScalar(DType t, double value);

}  // namespace sinter::ops

namespace sinter {
/// A scalar constant on the builder of `like`, in like's dtype.
Var ScalarLike(const Var& like, double value);
/// A constant op without operands on the builder of `like`.
Var ApplyConstant(const Var& like, const OpDef& op, AttrPtr attrs);
Var FullLike(const Var& like, double value);
Var ZerosOf(const Var& like, DType dtype, const SymShape& shape);
/// The size as an f32/f64/... scalar in like's dtype.
Var SizeLike(const Var& like, Dim size);
}  // namespace sinter

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ConstantOps() {
  return OpFamily<Constant, Full, Iota, SizeOf>();
}
}  // namespace sinter::ops
