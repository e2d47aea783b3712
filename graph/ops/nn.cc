#include "sinter/graph/ops/nn.h"

#include <cmath>
#include <limits>

#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/check.h"
#include "sinter/graph/ops/math.h"

namespace sinter::ops {
namespace {

Var FloatOperand(const Var& x) { return IsFloating(x.dtype()) ? x : cast(x, {.dtype = kFloat32}); }

Dim ChannelDim(const Var& v) { return v.shape()[0]; }

/// [channels] as [channels, 1, 1, ...] so that it broadcasts along dimension 1 of x.
Var AlongChannels(const Var& v, int rank) {
  std::vector<Dim> shape(rank - 1, Dim(1));
  shape[0] = ChannelDim(v);
  return reshape(v, {.shape = shape});
}

template <class F>
RefTensor RowsRef(const RefTensor& in, int64_t dim, F f) {
  const int64_t rank = static_cast<int64_t>(in.shape.size());
  if (dim < 0) dim += rank;
  int64_t inner = 1, size = in.shape[dim];
  for (int64_t i = dim + 1; i < rank; ++i) inner *= in.shape[i];
  RefTensor r = in;
  if (in.data.empty()) return r;
  for (int64_t row = 0; row < static_cast<int64_t>(in.data.size()) / size; ++row) {
    const int64_t base = row / inner * inner * size + row % inner;
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < size; ++k) max = std::fmax(max, in.data[base + k * inner]);
    for (int64_t k = 0; k < size; ++k) sum += std::exp(in.data[base + k * inner] - max);
    for (int64_t k = 0; k < size; ++k) r.data[base + k * inner] = f(in.data[base + k * inner] - max, sum);
  }
  return r;
}

}  // namespace

void Softmax::Decompose(DecomposeCtx& c) {
  const int64_t dim = c.Attrs<Attrs>().dim;
  Var x = FloatOperand(c.in[0]);
  Var e = exp(sub(x, amax(x, {.axes = {dim}, .keepdim = true})));
  c.out = {div(e, sum(e, {.axes = {dim}, .keepdim = true}))};
}

void Softmax::Grad(GradCtx& c) {
  if (!c.g()) return;
  const int64_t dim = c.Attrs<Attrs>().dim;
  const Var& y = c.out[0];
  Var inner = sum(mul(c.g(), y), {.axes = {dim}, .keepdim = true});
  c.grad_in[0] = mul(y, sub(c.g(), inner));
}

void Softmax::Samples(SampleSink& s) {
  s.Case({{{3, 5}}}, MakeAttrs(Attrs{-1})).Case({{{2, 4, 3}}}, MakeAttrs(Attrs{1})).Case({{{0, 5}}}, MakeAttrs(Attrs{1})).Case({{{3, 1}}}, MakeAttrs(Attrs{1}));
  s.MaxUlp(8).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{RowsRef(in[0], a->As<Attrs>().dim, [](double x, double sum) { return std::exp(x) / sum; })};
  });
}

void LogSoftmax::Decompose(DecomposeCtx& c) {
  const int64_t dim = c.Attrs<Attrs>().dim;
  Var x = FloatOperand(c.in[0]);
  Var shifted = sub(x, amax(x, {.axes = {dim}, .keepdim = true}));
  c.out = {sub(shifted, log(sum(exp(shifted), {.axes = {dim}, .keepdim = true})))};
}

void LogSoftmax::Grad(GradCtx& c) {
  if (!c.g()) return;
  const int64_t dim = c.Attrs<Attrs>().dim;
  Var total = sum(c.g(), {.axes = {dim}, .keepdim = true});
  c.grad_in[0] = sub(c.g(), mul(exp(c.out[0]), total));
}

void LogSoftmax::Samples(SampleSink& s) {
  s.Case({{{3, 5}}}, MakeAttrs(Attrs{-1})).Case({{{2, 4, 3}}}, MakeAttrs(Attrs{1})).Case({{{0, 5}}}, MakeAttrs(Attrs{1}));
  s.MaxUlp(16).Reference([](std::span<const RefTensor> in, const AttrPtr& a) {
    return std::vector{RowsRef(in[0], a->As<Attrs>().dim, [](double x, double sum) { return x - std::log(sum); })};
  });
}

void CrossEntropy::Decompose(DecomposeCtx& c) {
  const DType t = c.in[0].dtype();
  const Var logits = ComputeType(t) == t ? c.in[0] : cast(c.in[0], {.dtype = ComputeType(t)});  // one rounding of a half type, at the end
  Var target = c.in[1].dtype() == kInt64 ? c.in[1] : cast(c.in[1], {.dtype = kInt64});
  const Dim n = logits.shape()[0], classes = logits.shape()[1];
  Var log_p = log_softmax(logits, {.dim = 1});
  Var column = reshape(target, {.shape = {n, 1}});
  Var number = ApplyConstant(logits, DefOf<Iota>(), MakeAttrs(Iota::Attrs{{n, classes}, 1}));
  Var zero = ScalarLike(log_p, 0);
  Var picked = sum(where(equal(number, column), log_p, zero), {.axes = {1}});
  Var first = ApplyConstant(logits, DefOf<Full>(), MakeAttrs(Full::Attrs{{}, 0, kInt64}));
  Var end = ApplyConstant(logits, DefOf<SizeOf>(), MakeAttrs(SizeOf::Attrs{classes}));
  Var valid = logical_and(greater_equal(target, first), less(target, end));
  Var loss = neg(div(sum(picked), SizeLike(log_p, n)));
  if (loss.dtype() != t) loss = cast(loss, {.dtype = t});
  c.out = {checked(loss, valid, {.message = "cross_entropy: a target is outside of [0, classes)"})};
}

void CrossEntropy::Samples(SampleSink& s) {
  s.Case({{{4, 5}}, {{4}, 0, 5, kInt64}}).Case({{{1, 3}}, {{1}, 0, 3, kInt64}}).MaxUlp(16).Reference([](std::span<const RefTensor> in, const AttrPtr&) {
    RefTensor rows = RowsRef(in[0], 1, [](double x, double sum) { return x - std::log(sum); });
    RefTensor r = RefTensor::Zeros({});
    const int64_t n = in[0].shape[0], classes = in[0].shape[1];
    for (int64_t i = 0; i < n; ++i) r.data[0] -= rows.data[i * classes + static_cast<int64_t>(in[1].data[i])] / static_cast<double>(n);
    return std::vector{r};
  });
}

void BatchNorm::Decompose(DecomposeCtx& c) {
  Var x = FloatOperand(c.in[0]);
  const int rank = x.rank();
  Var scale = mul(c.in[1], rsqrt(add(c.in[4], ScalarLike(c.in[4], c.Attrs<Attrs>().eps))));
  c.out = {add(mul(sub(x, AlongChannels(c.in[3], rank)), AlongChannels(scale, rank)), AlongChannels(c.in[2], rank))};
}

void BatchNorm::Samples(SampleSink& s) {
  std::vector<SampleInput> in = {{{2, 3, 2, 2}}, {{3}}, {{3}}, {{3}}, {{3}, 0.5, 2}};
  s.Case(in, MakeAttrs(Attrs{})).Case({{{4, 2}}, {{2}}, {{2}}, {{2}}, {{2}, 0.5, 2}}, MakeAttrs(Attrs{1e-3})).MaxUlp(32);
  s.Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    RefTensor r = in[0];
    const int64_t channels = in[0].shape[1];
    const int64_t inner = in[0].shape.size() == 4 ? in[0].shape[2] * in[0].shape[3] : 1;
    for (size_t i = 0; i < r.data.size(); ++i) {
      const int64_t c = static_cast<int64_t>(i) / inner % channels;
      r.data[i] = (in[0].data[i] - in[3].data[c]) / std::sqrt(in[4].data[c] + attrs->As<Attrs>().eps) * in[1].data[c] + in[2].data[c];
    }
    return std::vector{r};
  });
}

Expr MaxPool2d::Element(ElementCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape& in = c.in[0].shape;
  struct Tap {
    Expr h, w, inside, value;
  };
  const DType t = ComputeType(c.in[0].dtype);
  const Expr lowest = IsFloating(t) ? Expr::Const(t, -INFINITY)
                      : t == kBool  ? Expr::Bool(false)
                                    : Expr::ConstInt(t, t == kInt32 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min());
  auto tap = [&](const Loop& kh, const Loop& kw) {
    Tap p{c.at[2] * I64(a.stride[0]) + kh.index - I64(a.padding[0]), c.at[3] * I64(a.stride[1]) + kw.index - I64(a.padding[1]),
          Expr::Bool(true), Expr()};
    if (a.padding[0] > 0) p.inside = p.inside & (I64(0) <= p.h) & (p.h < Expr::Size(in[2]));
    if (a.padding[1] > 0) p.inside = p.inside & (I64(0) <= p.w) & (p.w < Expr::Size(in[3]));
    p.value = num::Select(p.inside, c.InIf(0, {c.at[0], c.at[1], p.h, p.w}, p.inside), lowest);
    return p;
  };
  Loop kh(Dim(a.kernel[0])), kw(Dim(a.kernel[1]));
  Expr greatest = Expr::Reduce(ReduceKind::kMax, {kh.var, kw.var}, {tap(kh, kw).value});
  if (c.output == 0) return greatest;
  Loop ih(Dim(a.kernel[0])), iw(Dim(a.kernel[1]));
  Tap p = tap(ih, iw);
  Expr hit = p.inside & (num::Equal(p.value, greatest) | num::IsNan(p.value));
  Expr position = p.h * Expr::Size(in[3]) + p.w;
  return Expr::Reduce(ReduceKind::kMin, {ih.var, iw.var}, {num::Select(hit, position, I64(std::numeric_limits<int64_t>::max()))});
}

void MaxPool2d::Grad(GradCtx& c) {
  if (!c.g() || !IsFloating(c.in[0].dtype())) return;
  const SymShape& in = c.in[0].shape();
  c.grad_in[0] = max_pool2d_grad(c.g(), c.out[1], {.pool = c.Attrs<Attrs>(), .height = in[2], .width = in[3]});
}

void MaxPool2d::Samples(SampleSink& s) {
  s.Case({{{2, 3, 4, 6}}}, MakeAttrs(Attrs{}))
      .Case({{{1, 2, 5, 5}}}, MakeAttrs(Attrs{{3, 3}, {1, 1}, {1, 1}}))
      .Case({{{1, 1, 5, 4}}}, MakeAttrs(Attrs{{2, 3}, {2, 1}, {1, 0}}))
      .Case({{{0, 2, 4, 4}}}, MakeAttrs(Attrs{}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    const Shape& x = in[0].shape;
    Shape shape = {x[0], x[1], ConvOutSize<int64_t>(x[2], a.kernel[0], a.stride[0], a.padding[0], 1),
                   ConvOutSize<int64_t>(x[3], a.kernel[1], a.stride[1], a.padding[1], 1)};
    RefTensor value = RefTensor::Zeros(shape), position = RefTensor::Zeros(shape);
    for (int64_t p = 0; p < x[0] * x[1]; ++p)
      for (int64_t oh = 0; oh < shape[2]; ++oh)
        for (int64_t ow = 0; ow < shape[3]; ++ow) {
          double best = -INFINITY;
          int64_t where = 0;
          for (int64_t kh = 0; kh < a.kernel[0]; ++kh)
            for (int64_t kw = 0; kw < a.kernel[1]; ++kw) {
              const int64_t h = oh * a.stride[0] + kh - a.padding[0], w = ow * a.stride[1] + kw - a.padding[1];
              if (h < 0 || w < 0 || h >= x[2] || w >= x[3]) continue;
              const double v = in[0].data[(p * x[2] + h) * x[3] + w];
              if (v > best) best = v, where = h * x[3] + w;
            }
          value.data[(p * shape[2] + oh) * shape[3] + ow] = best;
          position.data[(p * shape[2] + oh) * shape[3] + ow] = static_cast<double>(where);
        }
    return std::vector{value, position};
  });
}

Expr MaxPool2dGrad::Element(ElementCtx& c) {
  const Attrs& attrs = c.Attrs<Attrs>();
  const PoolAttrs& a = attrs.pool;
  const SymShape& g = c.in[0].shape;
  // Windows (oh, ow) that cover (h, w), from the last tap to the first so that windows come in order.
  Loop th(Dim(a.kernel[0])), tw(Dim(a.kernel[1]));
  auto window = [&](int i, const Expr& p, const Expr& tap) {
    Expr shifted = p + I64(a.padding[i]) - (I64(a.kernel[i] - 1) - tap);
    Expr at = a.stride[i] == 1 ? shifted : Expr::Binary(ExprKind::kFloorDiv, shifted, I64(a.stride[i]));
    Expr inside = (I64(0) <= at) & (at < Expr::Size(g[2 + i]));
    if (a.stride[i] > 1) inside = inside & num::Equal(at * I64(a.stride[i]), shifted);
    return std::pair(at, inside);
  };
  auto [oh, inside_h] = window(0, c.at[2], th.index);
  auto [ow, inside_w] = window(1, c.at[3], tw.index);
  Expr inside = inside_h & inside_w;
  Expr chosen = c.InIf(1, {c.at[0], c.at[1], oh, ow}, inside);
  Expr mine = inside & num::Equal(chosen, c.at[2] * Expr::Size(c.out[0].shape[3]) + c.at[3]);
  Expr value = c.InIf(0, {c.at[0], c.at[1], oh, ow}, mine);
  return Expr::Reduce(ReduceKind::kSum, {th.var, tw.var}, {value});
}

void MaxPool2dGrad::Grad(GradCtx& c) {
  if (c.g() && c.wanted[0]) c.grad_in[0] = plane_gather(c.g(), c.in[1], {.pool = c.Attrs<Attrs>().pool});
}

void MaxPool2dGrad::Samples(SampleSink& s) {
  // Positions are those of a pooling of a constant image: the first of each window.
  s.Case({{{1, 2, 2, 2}}, {{1, 2, 2, 2}, 0, 1, kInt64}}, MakeAttrs(Attrs{{}, 4, 4})).Case({{{0, 2, 2, 2}}, {{0, 2, 2, 2}, 0, 1, kInt64}}, MakeAttrs(Attrs{{}, 4, 4}));
  s.MaxUlp(4).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    const int64_t h = a.height.value(), w = a.width.value();
    const Shape& g = in[0].shape;
    RefTensor r = RefTensor::Zeros({g[0], g[1], h, w});
    for (int64_t p = 0; p < g[0] * g[1]; ++p)
      for (int64_t o = 0; o < g[2] * g[3]; ++o) {
        const int64_t at = static_cast<int64_t>(in[1].data[p * g[2] * g[3] + o]);
        const int64_t top = o / g[3] * a.pool.stride[0] - a.pool.padding[0], left = o % g[3] * a.pool.stride[1] - a.pool.padding[1];
        const bool covered = at / w >= top && at / w < top + a.pool.kernel[0] && at % w >= left && at % w < left + a.pool.kernel[1];
        if (covered) r.data[p * h * w + at] += in[0].data[p * g[2] * g[3] + o];
      }
    return std::vector{r};
  });
}

Expr PlaneGather::Element(ElementCtx& c) {
  Expr flat = c.In(1, c.at);
  flat = Expr::Convert(flat, kInt64);
  const Dim height = c.in[0].shape[2], width = c.in[0].shape[3];
  const PoolAttrs& a = c.Attrs<Attrs>().pool;
  Expr h = Expr::Binary(ExprKind::kFloorDiv, flat, Expr::Size(width)), w = Expr::Binary(ExprKind::kFloorMod, flat, Expr::Size(width));
  Expr inside = (I64(0) <= flat) & (flat < Expr::Size(height) * Expr::Size(width));
  const Expr position[] = {h, w};
  for (int i : {0, 1}) {
    Expr first = c.at[2 + i] * I64(a.stride[i]) - I64(a.padding[i]);
    inside = inside & (first <= position[i]) & (position[i] < first + I64(a.kernel[i]));
  }
  return c.InIf(0, {c.at[0], c.at[1], h, w}, inside);
}

void PlaneGather::Grad(GradCtx& c) {
  if (!c.g() || !c.wanted[0]) return;
  const SymShape& in = c.in[0].shape();
  c.grad_in[0] = max_pool2d_grad(c.g(), c.in[1], {.pool = c.Attrs<Attrs>().pool, .height = in[2], .width = in[3]});
}

void PlaneGather::Samples(SampleSink& s) {
  s.Case({{{1, 2, 4, 4}}, {{1, 2, 2, 2}, 0, 1, kInt64}}, MakeAttrs(Attrs{})).MaxUlp(0);
  s.Reference([](std::span<const RefTensor> in, const AttrPtr&) {
    RefTensor r = RefTensor::Zeros(in[1].shape);
    const int64_t plane = in[0].shape[2] * in[0].shape[3], out = in[1].shape[2] * in[1].shape[3];
    // 2x2 windows of a 4x4 image.
    for (size_t i = 0; i < r.data.size(); ++i) {
      const int64_t o = static_cast<int64_t>(i) % out, at = static_cast<int64_t>(in[1].data[i]);
      if (at / 4 / 2 == o / 2 && at % 4 / 2 == o % 2) r.data[i] = in[0].data[static_cast<int64_t>(i) / out * plane + at];
    }
    return std::vector{r};
  });
}

}  // namespace sinter::ops
