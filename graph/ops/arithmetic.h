#pragma once

#include <cmath>

#include "sinter/graph/op.h"

/// Arithmetic, comparison, logic and selection by element.
namespace sinter::ops {

struct Add {
  static constexpr OpInfo kInfo{.name = "add", .kind = OpKind::kPointwise, .inputs = 2};
  template <class X>
  static X Body(const X& a, const X& b) { return a + b; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double a, double b) { return a + b; }).MaxUlp(0.5).Integers(); }
};

struct Sub {
  static constexpr OpInfo kInfo{.name = "sub", .kind = OpKind::kPointwise, .inputs = 2};
  template <class X>
  static X Body(const X& a, const X& b) { return a - b; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double a, double b) { return a - b; }).MaxUlp(0.5).Integers(); }
};

struct Mul {
  static constexpr OpInfo kInfo{.name = "mul", .kind = OpKind::kPointwise, .inputs = 2};
  template <class X>
  static X Body(const X& a, const X& b) { return a * b; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double a, double b) { return a * b; }).MaxUlp(0.5).Integers(); }
};

/// True division: integers divide as f32.
struct Div {
  static constexpr OpInfo kInfo{.name = "div", .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kPromoteFloat};
  template <class X>
  static X Body(const X& a, const X& b) { return a / b; }
  static void Samples(SampleSink& s) { s.Range(0.3, 3).Reference([](double a, double b) { return a / b; }).MaxUlp(0.5); }
};

struct Neg {
  static constexpr OpInfo kInfo{.name = "neg", .kind = OpKind::kPointwise};
  template <class X>
  static X Body(const X& x) { return -x; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return -x; }).MaxUlp(0).Integers(); }
};

/// |x|; the gradient at 0 is 0.
struct Abs {
  static constexpr OpInfo kInfo{.name = "abs", .kind = OpKind::kPointwise};
  template <class X>
  static X Body(const X& x) { return num::Abs(x); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference(std::fabs).MaxUlp(0).Integers().Kinks({0}); }
};

/// The greater of two; NaN if either is NaN. At a tie each operand gets half the gradient.
struct Maximum {
  static constexpr OpInfo kInfo{.name = "maximum", .kind = OpKind::kPointwise, .inputs = 2};
  template <class X>
  static X Body(const X& a, const X& b) { return num::Max(a, b); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double a, double b) { return std::fmax(a, b); }).MaxUlp(0).Integers(); }
};

/// The lesser of two; NaN if either is NaN. At a tie each operand gets half the gradient.
struct Minimum {
  static constexpr OpInfo kInfo{.name = "minimum", .kind = OpKind::kPointwise, .inputs = 2};
  template <class X>
  static X Body(const X& a, const X& b) { return num::Min(a, b); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double a, double b) { return std::fmin(a, b); }).MaxUlp(0).Integers(); }
};

struct Floor {
  static constexpr OpInfo kInfo{.name = "floor", .kind = OpKind::kPointwise};
  static constexpr bool kNoGrad = false;
  template <class X>
  static X Body(const X& x) { return num::Floor(x); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference(std::floor).MaxUlp(0).Kinks({-3, -2, -1, 0, 1, 2, 3}); }
};

struct Ceil {
  static constexpr OpInfo kInfo{.name = "ceil", .kind = OpKind::kPointwise};
  template <class X>
  static X Body(const X& x) { return num::Ceil(x); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference(std::ceil).MaxUlp(0).Kinks({-3, -2, -1, 0, 1, 2, 3}); }
};

#define SINTER_COMPARISON(Struct, op_name, expression)                                                                    \
  struct Struct {                                                                                                         \
    static constexpr OpInfo kInfo{.name = op_name, .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kCompare}; \
    static constexpr bool kNoGrad = true;                                                                                 \
    template <class X>                                                                                                    \
    static auto Body(const X& a, const X& b) { return expression; }                                                       \
    static void Samples(SampleSink& s) {                                                                                  \
      s.Range(-3, 3).Reference([](double a, double b) { return double(expression); }).MaxUlp(0).Integers();               \
    }                                                                                                                     \
  };
SINTER_COMPARISON(Less, "less", a < b)
SINTER_COMPARISON(LessEqual, "less_equal", a <= b)
SINTER_COMPARISON(Greater, "greater", a > b)
SINTER_COMPARISON(GreaterEqual, "greater_equal", a >= b)
SINTER_COMPARISON(Equal, "equal", num::Equal(a, b))
SINTER_COMPARISON(NotEqual, "not_equal", num::Not(num::Equal(a, b)))
#undef SINTER_COMPARISON

#define SINTER_LOGICAL(Struct, op_name, expression)                                                                       \
  struct Struct {                                                                                                         \
    static constexpr OpInfo kInfo{.name = op_name, .kind = OpKind::kPointwise, .inputs = 2, .dtype = DTypeRule::kLogical}; \
    static constexpr bool kNoGrad = true;                                                                                 \
    static Expr Body(const Expr& a, const Expr& b) { return expression; }                                                 \
    static void Samples(SampleSink& s) {                                                                                  \
      s.Range(-1, 1).Reference([](double x, double y) { bool a = x != 0, b = y != 0; return double(expression); }).MaxUlp(0); \
    }                                                                                                                     \
  };
SINTER_LOGICAL(LogicalAnd, "logical_and", a & b)
SINTER_LOGICAL(LogicalOr, "logical_or", a | b)
SINTER_LOGICAL(LogicalXor, "logical_xor", a ^ b)
#undef SINTER_LOGICAL

struct LogicalNot {
  static constexpr OpInfo kInfo{.name = "logical_not", .kind = OpKind::kPointwise, .dtype = DTypeRule::kLogical};
  static constexpr bool kNoGrad = true;
  static Expr Body(const Expr& a) { return num::Not(a); }
  static void Samples(SampleSink& s) { s.Range(-1, 1).Reference([](double x) { return double(x == 0); }).MaxUlp(0); }
};

struct IsNan {
  static constexpr OpInfo kInfo{.name = "isnan", .kind = OpKind::kPointwise, .dtype = DTypeRule::kCompare};
  static constexpr bool kNoGrad = true;
  static Expr Body(const Expr& x) { return num::IsNan(x); }
  static void Samples(SampleSink& s) { s.Range(-1, 1).Reference([](double x) { return double(std::isnan(x)); }).MaxUlp(0); }
};

/// a where the condition (bool) holds, else b.
struct Where {
  static constexpr OpInfo kInfo{.name = "where", .kind = OpKind::kPointwise, .inputs = 3, .dtype = DTypeRule::kCustom};
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    c.out[0].dtype = PromoteTypes(c.in[1].dtype, c.in[2].dtype);
    c.Out(c.Broadcast(c.Broadcast(c.in[0].shape, c.in[1].shape), c.in[2].shape));
  }
  static Expr Body(const Expr& condition, const Expr& a, const Expr& b) {
    return num::Select(Expr::Convert(condition, kBool), a, b);
  }
  // Operands differ in type, so the element rule is its own.
  static Expr Element(ElementCtx& c) {
    const DType t = ComputeType(c.out[0].dtype);
    return num::Select(Expr::Convert(c.InBroadcast(0), kBool), Expr::Convert(c.InBroadcast(1), t), Expr::Convert(c.InBroadcast(2), t));
  }
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

/// Conversion to another element type. Floating to integer truncates and saturates, NaN gives 0; to bool is x != 0.
struct Cast {
  static constexpr OpInfo kInfo{.name = "cast", .kind = OpKind::kPointwise, .dtype = DTypeRule::kCustom};
  struct Attrs {
    DType dtype = kFloat32;
    SINTER_FIELDS(dtype)
  };
  template <class D>
  static void Infer(ShapeCtx<D>& c) {
    c.out[0].dtype = c.template Attrs<Attrs>().dtype;
    c.Out(c.in[0].shape);
  }
  static Expr Body(const Expr& x, const Attrs& a) { return To(x, a.dtype); }
  static Expr Element(ElementCtx& c) { return To(c.In(0, c.at), c.out[0].dtype); }
  /// In the compute type of `t`, and in t's range if x is floating: what is stored then fits.
  static Expr To(const Expr& x, DType t);
  static void Grad(GradCtx& c);
  static void Samples(SampleSink& s);
};

}  // namespace sinter::ops

SINTER_OP(Add, add)
SINTER_OP(Sub, sub)
SINTER_OP(Mul, mul)
SINTER_OP(Div, div)
SINTER_OP(Neg, neg)
SINTER_OP(Abs, abs)
SINTER_OP(Maximum, maximum)
SINTER_OP(Minimum, minimum)
SINTER_OP(Floor, floor)
SINTER_OP(Ceil, ceil)
SINTER_OP(Less, less)
SINTER_OP(LessEqual, less_equal)
SINTER_OP(Greater, greater)
SINTER_OP(GreaterEqual, greater_equal)
SINTER_OP(Equal, equal)
SINTER_OP(NotEqual, not_equal)
SINTER_OP(LogicalAnd, logical_and)
SINTER_OP(LogicalOr, logical_or)
SINTER_OP(LogicalXor, logical_xor)
SINTER_OP(LogicalNot, logical_not)
SINTER_OP(IsNan, isnan)
SINTER_OP(Where, where)
SINTER_OP(Cast, cast)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> ArithmeticOps() {
  return OpFamily<Add, Sub, Mul, Div, Neg, Abs, Maximum, Minimum, Floor, Ceil, LogicalNot, IsNan, Where, Cast, Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual, LogicalAnd, LogicalOr, LogicalXor>();
}
}  // namespace sinter::ops
