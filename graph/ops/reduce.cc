#include "sinter/graph/ops/reduce.h"

#include <cmath>
#include <limits>

#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/math.h"

namespace sinter::ops {
namespace {

// Runs `f(result position flat, operand value)` over an operand and makes the result's array.
template <class F>
RefTensor ReduceRef(const RefTensor& in, const ReduceAttrs& a, double init, F f) {
  const int rank = static_cast<int>(in.shape.size());
  std::vector<bool> reduced = ReducedDims(a, rank, "reference");
  RefTensor r = RefTensor::Zeros(ReducedShape(in.shape, a, "reference"));
  for (double& v : r.data) v = init;
  Shape at(rank, 0);
  for (double v : in.data) {
    int64_t flat = 0;
    for (int i = 0; i < rank; ++i)
      if (!reduced[i]) flat = flat * in.shape[i] + at[i];
    r.data[flat] = f(r.data[flat], v);
    for (int i = rank - 1; i >= 0 && ++at[i] == in.shape[i]; --i) at[i] = 0;
  }
  return r;
}

void ReduceCases(SampleSink& s, bool empty_ok) {
  s.Case({{{3, 5}}}, MakeAttrs(ReduceAttrs{}))
      .Case({{{3, 5}}}, MakeAttrs(ReduceAttrs{{1}, true}))
      .Case({{{4, 37}}}, MakeAttrs(ReduceAttrs{{-1}}))
      .Case({{{37, 4}}}, MakeAttrs(ReduceAttrs{{0}}))
      .Case({{{2, 3, 4}}}, MakeAttrs(ReduceAttrs{{0, 2}}))
      .Case({{{}}}, MakeAttrs(ReduceAttrs{}))
      .Case({{{0, 4}}}, MakeAttrs(ReduceAttrs{{1}}));
  if (empty_ok) s.Case({{{0, 4}}}, MakeAttrs(ReduceAttrs{{0}}));
}

// Gradient of amax and amin: shared equally among the values equal to the result.
void ExtremumGrad(GradCtx& c) {
  if (!c.g()) return;
  const ReduceAttrs& a = c.Attrs<ReduceAttrs>();
  Var y = Unreduce(c.out[0], a, c.in[0]);
  Var hit = cast(equal(c.in[0], y), {.dtype = c.in[0].dtype()});
  Var count = sum(hit, {.axes = a.axes, .keepdim = true});
  Var g = Unreduce(c.g(), a, c.in[0]);
  c.grad_in[0] = mul(hit, div(g, count));
}

}  // namespace

std::vector<bool> ReducedDims(const ReduceAttrs& a, int rank, std::string_view op) {
  std::vector<bool> reduced(rank, a.axes.empty());
  const std::string name(op);
  for (int64_t axis : a.axes) {
    int i = NormalizeAxis(axis, rank, name.c_str());
    if (reduced[i]) throw Error(ErrorCode::kInvalidArgument, name + ": axis " + std::to_string(axis) + " is given twice");
    reduced[i] = true;
  }
  return reduced;
}

Expr ReduceElement(ElementCtx& c, ReduceKind kind, DType t) {
  const ReduceAttrs& a = c.Attrs<ReduceAttrs>();
  const SymShape& in = c.in[0].shape;
  std::vector<bool> reduced = ReducedDims(a, static_cast<int>(in.size()), c.op.name);
  std::vector<LoopVar> loops;
  std::vector<Expr> position;
  size_t o = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (reduced[i]) {
      Loop loop(in[i]);
      loops.push_back(loop.var);
      position.push_back(loop.index);
      if (a.keepdim) ++o;
    } else {
      position.push_back(c.at[o++]);
    }
  }
  Expr x = Expr::Convert(c.In(0, position), t);
  return loops.empty() ? x : Expr::Reduce(kind, std::move(loops), {x});
}

Var Unreduce(Var v, const ReduceAttrs& a, const Var& like) {
  std::vector<bool> reduced = ReducedDims(a, like.rank(), "gradient");
  std::vector<Dim> kept;
  for (int i = 0; i < like.rank(); ++i) kept.push_back(reduced[i] ? Dim(1) : like.shape()[i]);
  return reshape(v, {.shape = kept});
}

void Sum::Grad(GradCtx& c) {
  if (!c.g() || !IsFloating(c.in[0].dtype())) return;
  const SymShape& shape = c.in[0].shape();
  c.grad_in[0] = expand(Unreduce(c.g(), c.Attrs<Attrs>(), c.in[0]), {.shape = {shape.begin(), shape.end()}});
}

void Sum::Samples(SampleSink& s) {
  ReduceCases(s, true);
  s.Integers().MaxUlp(4).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), 0, [](double x, double y) { return x + y; })};
  });
}

void Prod::Grad(GradCtx& c) {
  if (!c.g() || !IsFloating(c.in[0].dtype())) return;
  // d prod / d x_i is the product of the others: y / x_i, except where x_i is 0, where it is counted out.
  const ReduceAttrs& a = c.Attrs<Attrs>();
  const Var& x = c.in[0];
  Var zero = ScalarLike(x, 0), one = ScalarLike(x, 1);
  Var is_zero = equal(x, zero);
  Var zeros = sum(cast(is_zero, {.dtype = x.dtype()}), {.axes = a.axes, .keepdim = true});
  Var safe = where(is_zero, one, x);
  Var rest = prod(safe, {.axes = a.axes, .keepdim = true});
  Var others = where(equal(zeros, zero), div(rest, safe), where(logical_and(is_zero, equal(zeros, one)), rest, zero));
  c.grad_in[0] = mul(Unreduce(c.g(), a, x), others);
}

void Prod::Samples(SampleSink& s) {
  ReduceCases(s, true);
  s.MaxUlp(16).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), 1, [](double x, double y) { return x * y; })};
  });
}

void Amax::Grad(GradCtx& c) { ExtremumGrad(c); }
void Amin::Grad(GradCtx& c) { ExtremumGrad(c); }

void Amax::Samples(SampleSink& s) {
  ReduceCases(s, false);
  s.Integers().MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), -INFINITY, [](double x, double y) { return std::fmax(x, y); })};
  });
}

void Amin::Samples(SampleSink& s) {
  ReduceCases(s, false);
  s.Integers().MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), INFINITY, [](double x, double y) { return std::fmin(x, y); })};
  });
}

void Any::Samples(SampleSink& s) {
  ReduceCases(s, true);
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), 0, [](double x, double y) { return double(x != 0 || y != 0); })};
  });
}

void All::Samples(SampleSink& s) {
  ReduceCases(s, true);
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{ReduceRef(in[0], a->As<Attrs>(), 1, [](double x, double y) { return double(x != 0 && y != 0); })};
  });
}

Expr Argmax::Element(ElementCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape& in = c.in[0].shape;
  const int dim = NormalizeAxis(a.dim, static_cast<int>(in.size()), "argmax");
  std::vector<Expr> position(c.at.begin(), c.at.end());
  if (a.keepdim) position.erase(position.begin() + dim);
  position.insert(position.begin() + dim, Expr());
  auto read = [&](const Loop& loop) {
    position[dim] = loop.index;
    return c.In(0, position);
  };
  Loop first(in[dim]), second(in[dim]);
  Expr greatest = Expr::Reduce(ReduceKind::kMax, {first.var}, {read(first)});
  Expr x = read(second);
  Expr hit = num::Equal(x, greatest) | num::IsNan(x);
  return Expr::Reduce(ReduceKind::kMin, {second.var}, {num::Select(hit, second.index, I64(std::numeric_limits<int64_t>::max()))});
}

void Argmax::Samples(SampleSink& s) {
  s.Case({{{3, 5}}}, MakeAttrs(Attrs{})).Case({{{4, 3}}}, MakeAttrs(Attrs{0, true})).Case({{{0, 3}}}, MakeAttrs(Attrs{1}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
    const bool over_columns = a.dim != 0;
    RefTensor r = RefTensor::Zeros(ReducedShape(in[0].shape, ReduceAttrs{{a.dim}, a.keepdim}, "argmax"));
    for (size_t o = 0; o < r.data.size(); ++o) {
      int64_t best = 0;
      auto value = [&](int64_t k) { return over_columns ? in[0].data[o * columns + k] : in[0].data[k * columns + o]; };
      for (int64_t k = 1; k < (over_columns ? columns : rows); ++k)
        if (value(k) > value(best)) best = k;
      r.data[o] = static_cast<double>(best);
    }
    return std::vector{r};
  });
}

void Mean::Decompose(DecomposeCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  Var x = c.in[0];
  // Half types hold neither the sum nor the count: both in f32, one rounding at the end.
  const DType t = IsFloating(x.dtype()) ? x.dtype() : kFloat32;
  if (ComputeType(t) != x.dtype()) x = cast(x, {.dtype = ComputeType(t)});
  std::vector<bool> reduced = ReducedDims(a, x.rank(), "mean");
  Dim count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (reduced[i]) count = count * x.shape()[i];
  Var mean = div(sum(x, {.axes = a.axes, .keepdim = a.keepdim}), SizeLike(x, count));
  c.out = {mean.dtype() == t ? mean : cast(mean, {.dtype = t})};
}

void Mean::Samples(SampleSink& s) {
  ReduceCases(s, false);
  s.MaxUlp(6).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    RefTensor r = ReduceRef(in[0], a->As<Attrs>(), 0, [](double x, double y) { return x + y; });
    const double n = r.data.empty() ? 1 : static_cast<double>(in[0].data.size()) / static_cast<double>(r.data.size());
    for (double& v : r.data) v /= n;
    return std::vector{r};
  });
}

}  // namespace sinter::ops
