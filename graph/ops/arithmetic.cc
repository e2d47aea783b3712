#include "sinter/graph/ops/arithmetic.h"

#include "sinter/graph/ops/basic.h"

namespace sinter::ops {

void Where::Grad(GradCtx& c) {
  if (!c.g()) return;
  for (int i : {1, 2}) {
    if (!c.wanted[i]) continue;
    Var zero = ScalarLike(c.g(), 0);
    Var g = i == 1 ? where(c.in[0], c.g(), zero) : where(c.in[0], zero, c.g());
    g = SumToShape(g, c.in[i].shape());
    c.grad_in[i] = g.dtype() == c.in[i].dtype() ? g : cast(g, {.dtype = c.in[i].dtype()});
  }
}

void Where::Samples(SampleSink& s) {
  s.Case({{{3, 4}, 0, 2, kBool}, {{3, 4}}, {{3, 4}}})
      .Case({{{4}, 0, 2, kBool}, {{3, 1}}, {{}}})
      .Case({{{0, 4}, 0, 2, kBool}, {{0, 4}}, {{1}}})
      .MaxUlp(0)
      .Reference([](std::span<const RefTensor> in, const AttrPtr&) {
        Shape shape = {std::max({in[0].shape.size() == 2 ? in[0].shape[0] : 1, in[1].shape.size() == 2 ? in[1].shape[0] : 1}), 4};
        if (in[0].shape.size() == 2) shape[0] = in[0].shape[0];
        RefTensor r = RefTensor::Zeros(shape);
        auto get = [&](const RefTensor& t, int64_t i, int64_t j) {
          if (t.shape.empty()) return t.data[0];
          int64_t columns = t.shape.back(), rows = t.shape.size() == 2 ? t.shape[0] : 1;
          return t.data[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)];
        };
        for (int64_t i = 0; i < shape[0]; ++i)
          for (int64_t j = 0; j < 4; ++j) r.data[i * 4 + j] = get(in[0], i, j) != 0 ? get(in[1], i, j) : get(in[2], i, j);
        return std::vector{r};
      });
}

Expr Cast::To(const Expr& x, DType t) {
  const Expr y = Expr::Convert(x, ComputeType(t));
  if (!IsFloating(x.dtype()) || (t != kInt8 && t != kUInt8)) return y;
  const Expr low = Expr::Const(y.dtype(), t == kInt8 ? -128 : 0), high = Expr::Const(y.dtype(), t == kInt8 ? 127 : 255);
  return num::Select(y < low, low, num::Select(y > high, high, y));
}

void Cast::Grad(GradCtx& c) {
  if (!c.g() || !IsFloating(c.out[0].dtype())) return;
  c.grad_in[0] = cast(c.g(), {.dtype = c.in[0].dtype()});
}

void Cast::Samples(SampleSink& s) {
  for (DType t : {kFloat64, kInt32, kInt64, kBool}) s.Case({{{3, 5}, -4, 4, kFloat32}}, MakeAttrs(Attrs{t}));
  s.Case({{{0, 5}, -4, 4, kFloat32}}, MakeAttrs(Attrs{kInt32}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    RefTensor r = in[0];
    const DType t = attrs->As<Attrs>().dtype;
    for (double& v : r.data) v = t == kBool ? v != 0 : IsFloating(t) ? v : std::trunc(v);
    return std::vector{r};
  });
}

}  // namespace sinter::ops
