#pragma once

#include <cmath>

#include "sinter/graph/op.h"

/// Rounding, signs, quotients with a remainder, limits and bits.
namespace sinter::ops {

/// To the nearest integer, halves to even.
struct Round {
  static constexpr OpInfo kInfo{.name = "round", .kind = OpKind::kPointwise};
  static Expr Body(const Expr& x) { return num::IsFloat(x) ? num::Round(x) : x; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return std::nearbyint(x); }).MaxUlp(0).Kinks({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}); }
};

/// Towards zero.
struct Trunc {
  static constexpr OpInfo kInfo{.name = "trunc", .kind = OpKind::kPointwise};
  static Expr Body(const Expr& x) { return num::IsFloat(x) ? num::Trunc(x) : x; }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference(std::trunc).MaxUlp(0).Kinks({-3, -2, -1, 0, 1, 2, 3}); }
};

/// x - trunc(x), with the sign of x.
struct Frac {
  static constexpr OpInfo kInfo{.name = "frac", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return x - num::Trunc(x); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return x - std::trunc(x); }).MaxUlp(0).Kinks({-3, -2, -1, 0, 1, 2, 3}); }
};

/// -1, 0 or 1; NaN stays NaN. The gradient is 0.
struct Sign {
  static constexpr OpInfo kInfo{.name = "sign", .kind = OpKind::kPointwise};
  static Expr Body(const Expr& x) {
    Expr zero = num::Const(x, 0);
    return num::Select(x > zero, num::Const(x, 1), num::Select(x < zero, num::Const(x, -1), x));
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return num::Const(x[0], 0); }
  static void Samples(SampleSink& s) { s.Range(-3, 3).Reference([](double x) { return double((x > 0) - (x < 0)); }).MaxUlp(0).Integers().Kinks({0}); }
};

/// 1 / x.
struct Reciprocal {
  static constexpr OpInfo kInfo{.name = "reciprocal", .kind = OpKind::kPointwise, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& x) { return 1.0 / x; }
  static Expr Derivative(int, std::span<const Expr>, const Expr& y) { return -(y * y); }
  static void Samples(SampleSink& s) { s.Range(0.3, 3).Reference([](double x) { return 1 / x; }).MaxUlp(0.5); }
};

/// x limited to [min, max]; NaN stays NaN. The gradient passes where x is inside.
struct Clamp {
  static constexpr OpInfo kInfo{.name = "clamp", .kind = OpKind::kPointwise};
  struct Attrs {
    double min = -INFINITY, max = INFINITY;
    SINTER_FIELDS(min, max)
  };
  static Expr Body(const Expr& x, const Attrs& a) {
    Expr r = x;
    // An infinite limit is none; integers have no infinities.
    if (a.min > -INFINITY) r = num::Select(x < num::Const(x, a.min), num::Const(x, a.min), r);
    if (a.max < INFINITY) r = num::Select(r > num::Const(x, a.max), num::Const(x, a.max), r);
    return r;
  }
  static void Samples(SampleSink& s) {
    s.Range(-3, 3).With(Attrs{-1, 2}).With(Attrs{-1.5, INFINITY}).MaxUlp(0).Kinks({-1.5, -1, 2}).Reference<Attrs>([](double x, const Attrs& a) {
      return x < static_cast<float>(a.min) ? a.min : x > static_cast<float>(a.max) ? a.max : x;
    });
  }
};

/// a + w (b - a).
struct Lerp {
  static constexpr OpInfo kInfo{.name = "lerp", .kind = OpKind::kPointwise, .inputs = 3, .dtype = DTypeRule::kPromoteFloat};
  static Expr Body(const Expr& a, const Expr& b, const Expr& w) { return num::Fma(w, b - a, a); }
  static void Samples(SampleSink& s) { s.Range(0.2, 0.9).Reference([](double a, double b, double w) { return a + w * (b - a); }).MaxUlp(4); }
};

struct IsInf {
  static constexpr OpInfo kInfo{.name = "isinf", .kind = OpKind::kPointwise, .dtype = DTypeRule::kCompare};
  static constexpr bool kNoGrad = true;
  static Expr Body(const Expr& x) {
    return num::IsFloat(x) ? num::Equal(num::Abs(x), num::Const(x, INFINITY)) : num::Not(num::Equal(x, x));
  }
  static void Samples(SampleSink& s) { s.Range(-1, 1).Reference([](double x) { return double(std::isinf(x)); }).MaxUlp(0); }
};

struct IsFinite {
  static constexpr OpInfo kInfo{.name = "isfinite", .kind = OpKind::kPointwise, .dtype = DTypeRule::kCompare};
  static constexpr bool kNoGrad = true;
  static Expr Body(const Expr& x) { return num::IsFloat(x) ? num::Abs(x) < num::Const(x, INFINITY) : num::Equal(x, x); }
  static void Samples(SampleSink& s) { s.Range(-1, 1).Reference([](double x) { return double(std::isfinite(x)); }).MaxUlp(0); }
};

/// The quotient rounded to minus infinity, as Python's //. Integers exactly; an integer division by 0 gives 0. Floats: the floor of the exact
/// quotient where that is below 2^23 (f64: 2^52).
struct FloorDivide {
  static constexpr OpInfo kInfo{.name = "floor_divide", .kind = OpKind::kPointwise, .inputs = 2};
  static Expr Body(const Expr& a, const Expr& b) {
    if (!num::IsFloat(a)) return Expr::Binary(ExprKind::kFloorDiv, a, b);
    // Where a / b was rounded up to an integer the remainder has the other sign.
    Expr q = num::Floor(a / b), r = num::Fma(-q, b, a), zero = num::Const(a, 0);
    Expr above = ((r < zero) & (b > zero)) | ((r > zero) & (b < zero));
    return num::Select(above, q - 1.0, q);
  }
  static Expr Derivative(int, std::span<const Expr> x, const Expr&) { return num::Const(x[0], 0); }
  static void Samples(SampleSink& s) { s.Range(0.3, 3).Reference([](double a, double b) { return std::floor(a / b); }).MaxUlp(0); }
};

/// a - floor_divide(a, b) b: the sign of b, as Python's %. An integer remainder by 0 is a.
struct Remainder {
  static constexpr OpInfo kInfo{.name = "remainder", .kind = OpKind::kPointwise, .inputs = 2};
  static Expr Body(const Expr& a, const Expr& b) {
    if (!num::IsFloat(a)) return Expr::Binary(ExprKind::kFloorMod, a, b);
    return num::Fma(-FloorDivide::Body(a, b), b, a);
  }
  static Expr Derivative(int i, std::span<const Expr> x, const Expr&) { return i == 0 ? num::Const(x[0], 1) : -FloorDivide::Body(x[0], x[1]); }
  static void Samples(SampleSink& s) { s.Range(0.3, 3).Reference([](double a, double b) { return std::fmod(a, b); }).MaxUlp(0); }
};

/// Bits of integers; bool: logical.
#define SINTER_BITWISE(Struct, op_name, expression)                                                                            \
  struct Struct {                                                                                                              \
    static constexpr OpInfo kInfo{.name = op_name, .kind = OpKind::kPointwise, .inputs = 2};                                   \
    static constexpr bool kNoGrad = true;                                                                                      \
    template <class D>                                                                                                         \
    static void Infer(ShapeCtx<D>& c) {                                                                                        \
      for (const auto& in : c.in)                                                                                              \
        if (IsFloating(in.dtype)) c.Fail("needs integers or bool");                                                            \
      c.Out(c.Broadcast(c.in[0].shape, c.in[1].shape));                                                                        \
    }                                                                                                                          \
    static Expr Body(const Expr& a, const Expr& b) { return expression; }                                                      \
    static void Samples(SampleSink& s) {                                                                                       \
      s.Case({{{3, 5}, -99, 99, kInt32}, {{3, 5}, -99, 99, kInt32}}).Case({{{4}, 0, 2, kBool}, {{4}, 0, 2, kBool}}).Case({{{0}, 0, 2, kInt64}, {{0}, 0, 2, kInt64}}); \
      s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr&) {                                                \
        RefTensor r = in[0];                                                                                                   \
        for (size_t i = 0; i < r.data.size(); ++i) {                                                                           \
          const int64_t a = static_cast<int64_t>(in[0].data[i]), b = static_cast<int64_t>(in[1].data[i]);                      \
          r.data[i] = static_cast<double>(expression);                                                                         \
        }                                                                                                                      \
        return std::vector{r};                                                                                                 \
      });                                                                                                                      \
    }                                                                                                                          \
  };
SINTER_BITWISE(BitwiseAnd, "bitwise_and", a & b)
SINTER_BITWISE(BitwiseOr, "bitwise_or", a | b)
SINTER_BITWISE(BitwiseXor, "bitwise_xor", a ^ b)
#undef SINTER_BITWISE

}  // namespace sinter::ops

SINTER_OP(Round, round)
SINTER_OP(Trunc, trunc)
SINTER_OP(Frac, frac)
SINTER_OP(Sign, sign)
SINTER_OP(Reciprocal, reciprocal)
SINTER_OP(Clamp, clamp)
SINTER_OP(Lerp, lerp)
SINTER_OP(IsInf, isinf)
SINTER_OP(IsFinite, isfinite)
SINTER_OP(FloorDivide, floor_divide)
SINTER_OP(Remainder, remainder)
SINTER_OP(BitwiseAnd, bitwise_and)
SINTER_OP(BitwiseOr, bitwise_or)
SINTER_OP(BitwiseXor, bitwise_xor)

namespace sinter::ops {
/// The family, for the registry.
inline std::vector<const OpDef*> RoundingOps() {
  return OpFamily<Round, Trunc, Frac, Sign, Reciprocal, Clamp, Lerp, IsInf, IsFinite, FloorDivide, Remainder, BitwiseAnd, BitwiseOr, BitwiseXor>();
}
}  // namespace sinter::ops
