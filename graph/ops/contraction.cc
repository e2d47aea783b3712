#include "sinter/graph/ops/contraction.h"

#include "sinter/graph/ops/basic.h"

namespace sinter::ops {
namespace {

Var Transpose(Var v) {
  std::vector<int64_t> dims(v.rank());
  for (int i = 0; i < v.rank(); ++i) dims[i] = i;
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return permute(v, {.dims = dims});
}

Expr FloorDivExpr(Expr a, int64_t b) { return b == 1 ? a : Expr::Binary(ExprKind::kFloorDiv, std::move(a), I64(b)); }

/// Position in the image of output position `o` under kernel tap `k`, and whether it is inside.
struct Tap {
  Expr position;
  Expr inside;
};
Tap ImageTap(const Expr& o, const Expr& k, const Conv2dAttrs& a, int i, Dim size) {
  Expr p = o * I64(a.stride[i]) + k * I64(a.dilation[i]) - I64(a.padding[i]);
  if (a.padding[i] == 0) return {p, Expr::Bool(true)};
  return {p, (I64(0) <= p) & (p < Expr::Size(size))};
}

}  // namespace

Expr Matmul::Element(ElementCtx& c) {
  const size_t rank = c.at.size();
  const DType t = ComputeType(c.out[0].dtype);
  Loop k(c.in[0].shape.back());
  auto position = [&](int operand, Expr row, Expr column) {
    const SymShape& shape = c.in[operand].shape;
    const size_t batch = shape.size() - 2, skip = rank - shape.size();
    std::vector<Expr> p;
    for (size_t i = 0; i < batch; ++i) p.push_back(IsOne(shape[i]) && !IsOne(c.out[0].shape[skip + i]) ? I64(0) : c.at[skip + i]);
    p.push_back(std::move(row));
    p.push_back(std::move(column));
    return p;
  };
  Expr a = Expr::Convert(c.In(0, position(0, c.at[rank - 2], k.index)), t);
  Expr b = Expr::Convert(c.In(1, position(1, k.index, c.at[rank - 1])), t);
  return Expr::Reduce(ReduceKind::kContract, {k.var}, {a, b});
}

void Matmul::Grad(GradCtx& c) {
  if (!c.g()) return;
  if (c.wanted[0]) c.grad_in[0] = SumToShape(matmul(c.g(), Transpose(c.in[1])), c.in[0].shape());
  if (c.wanted[1]) c.grad_in[1] = SumToShape(matmul(Transpose(c.in[0]), c.g()), c.in[1].shape());
  for (int i : {0, 1})
    if (c.grad_in[i] && c.grad_in[i].dtype() != c.in[i].dtype()) c.grad_in[i] = cast(c.grad_in[i], {.dtype = c.in[i].dtype()});
}

void Matmul::Samples(SampleSink& s) {
  s.Case({{{3, 4}}, {{4, 5}}})
      .Case({{{1, 300}}, {{300, 17}}})
      .Case({{{2, 3, 4}}, {{2, 4, 2}}})
      .Case({{{2, 1, 3, 4}}, {{3, 4, 2}}})
      .Case({{{3, 0}}, {{0, 2}}})
      .Case({{{0, 3}}, {{3, 2}}})
      .MaxUlp(64)
      .Reference([](std::span<const RefTensor> in, const AttrPtr&) {
        const RefTensor &a = in[0], &b = in[1];
        const size_t ra = a.shape.size(), rb = b.shape.size();
        const int64_t m = a.shape[ra - 2], k = a.shape[ra - 1], n = b.shape[rb - 1];
        Shape batch;
        const size_t rank = std::max(ra, rb) - 2;
        auto size = [&](const RefTensor& t, size_t i) {  // batch size i of t, aligned at the end
          const size_t own = t.shape.size() - 2, skip = rank - own;
          return i < skip ? int64_t{1} : t.shape[i - skip];
        };
        for (size_t i = 0; i < rank; ++i) batch.push_back(size(a, i) == 1 ? size(b, i) : size(a, i));
        Shape shape = batch;
        shape.push_back(m);
        shape.push_back(n);
        RefTensor r = RefTensor::Zeros(shape);
        const int64_t batches = NumElements(batch);
        for (int64_t t = 0; t < batches; ++t) {
          int64_t rest = t, ia = 0, ib = 0, sa = 1, sb = 1;
          for (size_t i = rank; i-- > 0;) {
            const int64_t at = rest % batch[i];
            rest /= batch[i];
            if (size(a, i) != 1) ia += at * sa;
            if (size(b, i) != 1) ib += at * sb;
            sa *= size(a, i);
            sb *= size(b, i);
          }
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t l = 0; l < k; ++l) r.data[(t * m + i) * n + j] += a.data[(ia * m + i) * k + l] * b.data[(ib * k + l) * n + j];
        }
        return std::vector{r};
      });
}

Expr Conv2d::Element(ElementCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape &x = c.in[0].shape, &w = c.in[1].shape;
  const DType t = ComputeType(c.out[0].dtype);
  Loop kh(w[2]), kw(w[3]), ch(w[1]);
  Tap h = ImageTap(c.at[2], kh.index, a, 0, x[2]), v = ImageTap(c.at[3], kw.index, a, 1, x[3]);
  Expr channel = ch.index;
  if (a.groups > 1) {
    Expr group = Expr::Binary(ExprKind::kFloorDiv, c.at[1], Expr::Size(FloorDiv(w[0], Dim(a.groups))));
    channel = group * Expr::Size(w[1]) + channel;
  }
  Expr image = Expr::Convert(c.InIf(0, {c.at[0], channel, h.position, v.position}, h.inside & v.inside), t);
  Expr weight = Expr::Convert(c.In(1, {c.at[1], ch.index, kh.index, kw.index}), t);
  return Expr::Reduce(ReduceKind::kContract, {kh.var, kw.var, ch.var}, {image, weight});
}

void Conv2d::Grad(GradCtx& c) {
  if (!c.g()) return;
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape &x = c.in[0].shape(), &w = c.in[1].shape();
  if (c.wanted[0]) c.grad_in[0] = conv2d_input_grad(c.g(), c.in[1], {.conv = a, .height = x[2], .width = x[3]});
  if (c.wanted[1]) c.grad_in[1] = conv2d_weight_grad(c.in[0], c.g(), {.conv = a, .kernel_h = w[2], .kernel_w = w[3]});
}

Expr Conv2dInputGrad::Element(ElementCtx& c) {
  const Attrs& attrs = c.Attrs<Attrs>();
  const Conv2dAttrs& a = attrs.conv;
  const SymShape &g = c.in[0].shape, &w = c.in[1].shape;
  const DType t = ComputeType(c.out[0].dtype);
  const Dim group_size = FloorDiv(w[0], Dim(a.groups));
  Loop kh(w[2]), kw(w[3]), o(group_size);
  // Output position whose tap k reads this element: (p + padding - k dilation) / stride where that is whole and inside.
  auto source = [&](int i, const Expr& p, const Expr& k) {
    Expr shifted = p + I64(a.padding[i]) - k * I64(a.dilation[i]);
    Expr at = FloorDivExpr(shifted, a.stride[i]);
    Expr inside = (I64(0) <= at) & (at < Expr::Size(g[2 + i]));
    if (a.stride[i] > 1) inside = inside & num::Equal(at * I64(a.stride[i]), shifted);
    return Tap{at, inside};
  };
  Tap h = source(0, c.at[2], kh.index), v = source(1, c.at[3], kw.index);
  Expr out_channel = o.index, in_channel = c.at[1];
  if (a.groups > 1) {
    Expr group = Expr::Binary(ExprKind::kFloorDiv, c.at[1], Expr::Size(w[1]));
    out_channel = group * Expr::Size(group_size) + o.index;
    in_channel = c.at[1] - group * Expr::Size(w[1]);
  }
  Expr gradient = Expr::Convert(c.InIf(0, {c.at[0], out_channel, h.position, v.position}, h.inside & v.inside), t);
  Expr weight = Expr::Convert(c.In(1, {out_channel, in_channel, kh.index, kw.index}), t);
  return Expr::Reduce(ReduceKind::kContract, {kh.var, kw.var, o.var}, {gradient, weight});
}

void Conv2dInputGrad::Grad(GradCtx& c) {
  if (!c.g()) return;
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape& w = c.in[1].shape();
  if (c.wanted[0]) c.grad_in[0] = conv2d(c.g(), c.in[1], a.conv);
  if (c.wanted[1]) c.grad_in[1] = conv2d_weight_grad(c.g(), c.in[0], {.conv = a.conv, .kernel_h = w[2], .kernel_w = w[3]});
}

Expr Conv2dWeightGrad::Element(ElementCtx& c) {
  const Attrs& attrs = c.Attrs<Attrs>();
  const Conv2dAttrs& a = attrs.conv;
  const SymShape &x = c.in[0].shape, &g = c.in[1].shape;
  const DType t = ComputeType(c.out[0].dtype);
  Loop n(g[0]), oh(g[2]), ow(g[3]);
  Tap h = ImageTap(oh.index, c.at[2], a, 0, x[2]), v = ImageTap(ow.index, c.at[3], a, 1, x[3]);
  Expr channel = c.at[1];
  if (a.groups > 1) {
    Expr group = Expr::Binary(ExprKind::kFloorDiv, c.at[0], Expr::Size(FloorDiv(g[1], Dim(a.groups))));
    channel = group * Expr::Size(c.out[0].shape[1]) + channel;
  }
  Expr image = Expr::Convert(c.InIf(0, {n.index, channel, h.position, v.position}, h.inside & v.inside), t);
  Expr gradient = Expr::Convert(c.In(1, {n.index, c.at[0], oh.index, ow.index}), t);
  return Expr::Reduce(ReduceKind::kContract, {n.var, oh.var, ow.var}, {image, gradient});
}

void Conv2dWeightGrad::Grad(GradCtx& c) {
  if (!c.g()) return;
  const Attrs& a = c.Attrs<Attrs>();
  const SymShape& x = c.in[0].shape();
  if (c.wanted[0]) c.grad_in[0] = conv2d_input_grad(c.in[1], c.g(), {.conv = a.conv, .height = x[2], .width = x[3]});
  if (c.wanted[1]) c.grad_in[1] = conv2d(c.in[0], c.g(), a.conv);
}

namespace {

// All three in double, by the scatter form of the definition: for every (n, o, oh, ow, c, kh, kw) that meets inside the image.
template <class F>
void ForEachTap(const Conv2dAttrs& a, const Shape& x, const Shape& w, const Shape& out, F f) {
  const int64_t group_out = w[0] / a.groups;
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t o = 0; o < w[0]; ++o)
      for (int64_t oh = 0; oh < out[2]; ++oh)
        for (int64_t ow = 0; ow < out[3]; ++ow)
          for (int64_t c = 0; c < w[1]; ++c)
            for (int64_t kh = 0; kh < w[2]; ++kh)
              for (int64_t kw = 0; kw < w[3]; ++kw) {
                const int64_t h = oh * a.stride[0] - a.padding[0] + kh * a.dilation[0];
                const int64_t v = ow * a.stride[1] - a.padding[1] + kw * a.dilation[1];
                if (h < 0 || v < 0 || h >= x[2] || v >= x[3]) continue;
                const int64_t channel = o / group_out * w[1] + c;
                f(((n * x[1] + channel) * x[2] + h) * x[3] + v, ((o * w[1] + c) * w[2] + kh) * w[3] + kw,
                  ((n * out[1] + o) * out[2] + oh) * out[3] + ow);
              }
}

struct ConvCase {
  Shape x, w;
  Conv2dAttrs a;
  Shape out() const {
    return {x[0], w[0], ConvOutSize<int64_t>(x[2], w[2], a.stride[0], a.padding[0], a.dilation[0]),
            ConvOutSize<int64_t>(x[3], w[3], a.stride[1], a.padding[1], a.dilation[1])};
  }
};

std::vector<ConvCase> ConvCases() {
  return {{{2, 3, 5, 5}, {4, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
          {{1, 2, 6, 5}, {3, 2, 2, 3}, {{2, 1}, {0, 2}, {1, 1}, 1}},
          {{2, 4, 6, 6}, {6, 2, 3, 3}, {{1, 2}, {2, 1}, {2, 1}, 2}},
          {{1, 3, 4, 4}, {3, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3}},
          {{2, 2, 3, 3}, {2, 2, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}},
          {{0, 2, 3, 3}, {2, 2, 1, 1}, {}}};
}

}  // namespace

void Conv2d::Samples(SampleSink& s) {
  for (const ConvCase& k : ConvCases()) s.Case({{k.x}, {k.w}}, MakeAttrs(k.a));
  s.MaxUlp(64).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    ConvCase k{in[0].shape, in[1].shape, attrs->As<Attrs>()};
    RefTensor r = RefTensor::Zeros(k.out());
    ForEachTap(k.a, k.x, k.w, k.out(), [&](int64_t x, int64_t w, int64_t o) { r.data[o] += in[0].data[x] * in[1].data[w]; });
    return std::vector{r};
  });
}

void Conv2dInputGrad::Samples(SampleSink& s) {
  for (const ConvCase& k : ConvCases()) s.Case({{k.out()}, {k.w}}, MakeAttrs(Attrs{k.a, k.x[2], k.x[3]}));
  s.MaxUlp(64).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    const Shape& w = in[1].shape;
    ConvCase k{{in[0].shape[0], w[1] * a.conv.groups, a.height.value(), a.width.value()}, w, a.conv};
    RefTensor r = RefTensor::Zeros(k.x);
    ForEachTap(k.a, k.x, k.w, k.out(), [&](int64_t x, int64_t wi, int64_t o) { r.data[x] += in[0].data[o] * in[1].data[wi]; });
    return std::vector{r};
  });
}

void Conv2dWeightGrad::Samples(SampleSink& s) {
  for (const ConvCase& k : ConvCases()) s.Case({{k.x}, {k.out()}}, MakeAttrs(Attrs{k.a, k.w[2], k.w[3]}));
  s.MaxUlp(64).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    ConvCase k{in[0].shape, {in[1].shape[1], in[0].shape[1] / a.conv.groups, a.kernel_h.value(), a.kernel_w.value()}, a.conv};
    RefTensor r = RefTensor::Zeros(k.w);
    ForEachTap(k.a, k.x, k.w, k.out(), [&](int64_t x, int64_t w, int64_t o) { r.data[w] += in[0].data[x] * in[1].data[o]; });
    return std::vector{r};
  });
}

}  // namespace sinter::ops
