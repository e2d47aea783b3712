#include "sinter/graph/ops/views.h"

#include "sinter/graph/ops/basic.h"

namespace sinter::ops {
namespace {


std::vector<Dim> DimsOf(const SymShape& s) { return {s.begin(), s.end()}; }

}  // namespace

// Splits both shapes into the shortest runs of dimensions with equal products, so that only runs that really merge or split
// dimensions cost divisions.
Expr Reshape::Element(ElementCtx& c) {
  const SymShape& in = c.in[0].shape;
  const SymShape& out = c.out[0].shape;
  std::vector<Expr> position(in.size());
  size_t i = 0, o = 0;
  while (i < in.size() || o < out.size()) {
    const size_t i0 = i, o0 = o;
    Dim pi = 1, po = 1;
    if (i < in.size()) pi = in[i++];
    if (o < out.size()) po = out[o++];
    // Grow the side that is smaller for sure; without certainty grow both to the end.
    while (!(pi == po) || (i < in.size() && IsOne(in[i])) || (o < out.size() && IsOne(out[o]))) {
      if (pi == po) {
        if (i < in.size() && IsOne(in[i])) ++i;
        else ++o;
        continue;
      }
      const bool po_multiple = o <= out.size() && ProvablyDivisible(po, pi) && i < in.size();
      if (po_multiple) pi = pi * in[i++];
      else if (o < out.size()) po = po * out[o++];
      else if (i < in.size()) pi = pi * in[i++];
      else break;
    }
    if (i - i0 == 1 && o - o0 == 1) {
      position[i0] = c.at[o0];
      continue;
    }
    Expr flat = I64(0);
    for (size_t k = o0; k < o; ++k)
      if (!IsOne(out[k])) flat = flat * Expr::Size(out[k]) + c.at[k];
    bool first = true;  // the outermost size above 1 needs no remainder
    std::vector<size_t> large;
    for (size_t k = i0; k < i; ++k) {
      if (IsOne(in[k])) position[k] = I64(0);
      else large.push_back(k);
    }
    for (size_t n = large.size(); n-- > 0;) {
      const size_t k = large[n];
      first = n == 0;
      position[k] = first ? flat : Expr::Binary(ExprKind::kFloorMod, flat, Expr::Size(in[k]));
      if (!first) flat = Expr::Binary(ExprKind::kFloorDiv, flat, Expr::Size(in[k]));
    }
  }
  return c.In(0, position);
}

bool Reshape::View(ViewCtx& c) {
  // Strides of the result exist when every run of operand dimensions that is merged or split is dense in itself.
  c.out_strides.assign(c.out_shape.size(), 0);
  if (NumElements(c.out_shape) == 0) {
    int64_t stride = 1;
    for (size_t k = c.out_shape.size(); k-- > 0;) c.out_strides[k] = stride, stride *= std::max<int64_t>(1, c.out_shape[k]);
    return true;
  }
  int i = static_cast<int>(c.in_shape.size()) - 1, o = static_cast<int>(c.out_shape.size()) - 1;
  while (i >= 0 && o >= 0) {
    if (c.in_shape[i] == 1) { --i; continue; }
    const int64_t base = c.in_strides[i];
    int64_t merged = c.in_shape[i], made = 1;
    int next = i - 1;
    while (o >= 0 && made < merged) {
      c.out_strides[o] = base * made;
      made *= c.out_shape[o--];
      while (made > merged) {
        while (next >= 0 && c.in_shape[next] == 1) --next;
        if (next < 0 || c.in_strides[next] != base * merged) return false;
        merged *= c.in_shape[next--];
      }
    }
    if (made != merged) {
      return false;
    }
    i = next;
  }
  for (; o >= 0; --o) c.out_strides[o] = 1;  // sizes of 1
  return true;
}

void Reshape::Grad(GradCtx& c) {
  if (c.g()) c.grad_in[0] = reshape(c.g(), {.shape = DimsOf(c.in[0].shape())});
}

void Reshape::Samples(SampleSink& s) {
  s.Case({{{2, 6}}}, MakeAttrs(Attrs{{3, 4}}))
      .Case({{{2, 3, 4}}}, MakeAttrs(Attrs{{6, -1}}))
      .Case({{{4, 1, 3}}}, MakeAttrs(Attrs{{2, 2, 3, 1}}))
      .Case({{{1}}}, MakeAttrs(Attrs{{}}))
      .Case({{{0, 3}}}, MakeAttrs(Attrs{{3, 0}}))
      .MaxUlp(0)
      .Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
        RefTensor r = in[0];
        r.shape.clear();
        int64_t known = 1;
        for (Dim d : attrs->As<Attrs>().shape) known *= d.value() < 0 ? 1 : d.value();
        for (Dim d : attrs->As<Attrs>().shape) r.shape.push_back(d.value() < 0 ? static_cast<int64_t>(in[0].data.size()) / known : d.value());
        return std::vector{r};
      });
}

std::vector<int> Permute::Order(const Attrs& a, int rank) {
  std::vector<int> order;
  std::vector<bool> seen(rank);
  for (int64_t d : a.dims) {
    int k = NormalizeAxis(d, rank, "permute");
    if (seen[k]) throw Error(ErrorCode::kInvalidArgument, "permute: dimension " + std::to_string(k) + " is given twice");
    seen[k] = true;
    order.push_back(k);
  }
  if (static_cast<int>(order.size()) != rank)
    throw Error(ErrorCode::kInvalidArgument, "permute: " + std::to_string(order.size()) + " dimensions given for a tensor of rank " + std::to_string(rank));
  return order;
}

Expr Permute::Element(ElementCtx& c) {
  std::vector<Expr> position(c.at.size());
  std::vector<int> order = Order(c.Attrs<Attrs>(), static_cast<int>(c.at.size()));
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = c.at[i];
  return c.In(0, position);
}

bool Permute::View(ViewCtx& c) {
  for (int d : Order(c.Attrs<Attrs>(), static_cast<int>(c.in_shape.size()))) c.out_strides.push_back(c.in_strides[d]);
  return true;
}

void Permute::Grad(GradCtx& c) {
  if (!c.g()) return;
  std::vector<int> order = Order(c.Attrs<Attrs>(), c.in[0].rank());
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  c.grad_in[0] = permute(c.g(), {.dims = inverse});
}

void Permute::Samples(SampleSink& s) {
  s.Case({{{2, 3, 4}}}, MakeAttrs(Attrs{{2, 0, 1}})).Case({{{3, 5}}}, MakeAttrs(Attrs{{-1, 0}})).Case({{{0, 5}}}, MakeAttrs(Attrs{{1, 0}}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const int rank = static_cast<int>(in[0].shape.size());
    std::vector<int> order = Order(attrs->As<Attrs>(), rank);
    Shape shape, at(rank, 0);
    for (int d : order) shape.push_back(in[0].shape[d]);
    RefTensor r = RefTensor::Zeros(shape);
    for (double& v : r.data) {
      int64_t flat = 0;
      Shape from(rank, 0);
      for (int i = 0; i < rank; ++i) from[order[i]] = at[i];
      for (int i = 0; i < rank; ++i) flat = flat * in[0].shape[i] + from[i];
      v = in[0].data[flat];
      for (int i = rank - 1; i >= 0 && ++at[i] == shape[i]; --i) at[i] = 0;
    }
    return std::vector{r};
  });
}

bool Expand::View(ViewCtx& c) {
  const size_t skip = c.out_shape.size() - c.in_shape.size();
  c.out_strides.assign(c.out_shape.size(), 0);
  for (size_t i = 0; i < c.in_shape.size(); ++i)
    c.out_strides[skip + i] = c.in_shape[i] == 1 && c.out_shape[skip + i] != 1 ? 0 : c.in_strides[i];
  return true;
}

void Expand::Grad(GradCtx& c) {
  if (c.g()) c.grad_in[0] = SumToShape(c.g(), c.in[0].shape());
}

void Expand::Samples(SampleSink& s) {
  s.Case({{{3, 1}}}, MakeAttrs(Attrs{{3, 4}})).Case({{{}}}, MakeAttrs(Attrs{{2, 4}})).Case({{{1, 4}}}, MakeAttrs(Attrs{{0, 4}}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    Shape shape;
    for (Dim d : attrs->As<Attrs>().shape) shape.push_back(d.value());
    RefTensor r = RefTensor::Zeros(shape);
    for (size_t i = 0; i < r.data.size(); ++i) {
      int64_t row = static_cast<int64_t>(i) / 4, column = static_cast<int64_t>(i) % 4;
      r.data[i] = in[0].shape.empty() ? in[0].data[0] : in[0].shape[1] == 1 ? in[0].data[row] : in[0].data[column];
    }
    return std::vector{r};
  });
}

Expr Slice::Element(ElementCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  const int dim = NormalizeAxis(a.dim, static_cast<int>(c.at.size()), "slice");
  std::vector<Expr> position(c.at.begin(), c.at.end());
  position[dim] = Expr::Size(Bound<Dim>(a.start, c.in[0].shape[dim])) + position[dim] * I64(a.step);
  return c.In(0, position);
}

bool Slice::View(ViewCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  const int dim = NormalizeAxis(a.dim, static_cast<int>(c.in_shape.size()), "slice");
  c.out_strides = c.in_strides;
  c.out_offset = Bound<int64_t>(a.start.value(), c.in_shape[dim]) * c.in_strides[dim];
  c.out_strides[dim] *= a.step;
  return true;
}

void Slice::Grad(GradCtx& c) {
  if (!c.g()) return;
  const Attrs& a = c.Attrs<Attrs>();
  const int dim = NormalizeAxis(a.dim, c.in[0].rank(), "slice");
  const SymShape& in = c.in[0].shape();
  Var g = c.g();
  // Put step - 1 zeros after each element, then pad on both sides.
  const Dim length = g.shape()[dim];
  Dim covered = length;
  if (a.step > 1) {
    std::vector<Dim> split = DimsOf(g.shape());
    split.insert(split.begin() + dim + 1, Dim(1));
    g = reshape(g, {.shape = split});
    std::vector<Dim> none(split.size(), Dim(0)), after = none;
    after[dim + 1] = a.step - 1;
    g = pad(g, {.before = none, .after = after});
    std::vector<Dim> merged = DimsOf(c.out[0].shape());
    merged[dim] = length * a.step;
    g = reshape(g, {.shape = merged});
    covered = length * a.step;
  }
  const Dim start = Bound<Dim>(a.start, in[dim]);
  // The zeros after the last element may reach beyond the operand.
  const Dim room = in[dim] - start;
  if (!(covered == room)) {
    std::vector<Dim> before(in.size(), Dim(0)), after = before;
    after[dim] = Max(Dim(0), room - covered);
    if (!(after[dim] == Dim(0))) g = pad(g, {.before = before, .after = after});
    g = slice(g, {.dim = dim, .start = 0, .end = room});
  }
  std::vector<Dim> before(in.size(), Dim(0)), after = before;
  before[dim] = start;
  if (!(start == Dim(0))) g = pad(g, {.before = before, .after = after});
  c.grad_in[0] = reshape(g, {.shape = DimsOf(in)});
}

void Slice::Samples(SampleSink& s) {
  s.Case({{{3, 8}}}, MakeAttrs(Attrs{1, 2, 7, 1}))
      .Case({{{3, 8}}}, MakeAttrs(Attrs{1, 1, 8, 3}))
      .Case({{{5, 2}}}, MakeAttrs(Attrs{0, -3, kToEnd, 2}))
      .Case({{{5, 2}}}, MakeAttrs(Attrs{0, 4, 2, 1}))
      .MaxUlp(0)
      .Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
        const Attrs& a = attrs->As<Attrs>();
        const int64_t size = in[0].shape[a.dim];
        int64_t start = a.start.value() < 0 ? a.start.value() + size : a.start.value();
        std::vector<int64_t> picked;
        for (int64_t i = start; i < std::min(size, a.end.value()); i += a.step) picked.push_back(i);
        Shape shape = in[0].shape;
        shape[a.dim] = static_cast<int64_t>(picked.size());
        RefTensor r = RefTensor::Zeros(shape);
        for (int64_t i = 0; i < shape[0]; ++i)
          for (int64_t j = 0; j < shape[1]; ++j)
            r.at({i, j}) = a.dim == 0 ? in[0].at({picked[i], j}) : in[0].at({i, picked[j]});
        return std::vector{r};
      });
}

Expr Pad::Element(ElementCtx& c) {
  const Attrs& a = c.Attrs<Attrs>();
  std::vector<Expr> position;
  Expr inside = Expr::Bool(true);
  for (size_t i = 0; i < c.at.size(); ++i) {
    Expr p = c.at[i] - Expr::Size(a.before[i]);
    if (!(a.before[i] == Dim(0))) inside = inside & (I64(0) <= p);
    if (!(a.after[i] == Dim(0))) inside = inside & (p < Expr::Size(c.in[0].shape[i]));
    position.push_back(p);
  }
  Expr x = c.InIf(0, position, inside);
  return a.value == 0 && !std::signbit(a.value) ? x : num::Select(inside, x, num::Const(x, a.value));
}

void Pad::Grad(GradCtx& c) {
  if (!c.g()) return;
  const Attrs& a = c.Attrs<Attrs>();
  Var g = c.g();
  for (size_t i = 0; i < a.before.size(); ++i) {
    if (a.before[i] == Dim(0) && a.after[i] == Dim(0)) continue;
    g = slice(g, {.dim = static_cast<int64_t>(i), .start = a.before[i], .end = a.before[i] + c.in[0].shape()[i]});
  }
  c.grad_in[0] = g;
}

void Pad::Samples(SampleSink& s) {
  s.Case({{{2, 3}}}, MakeAttrs(Attrs{{1, 0}, {0, 2}})).Case({{{2, 3}}}, MakeAttrs(Attrs{{0, 2}, {1, 1}, -3.5})).Case({{{0, 3}}}, MakeAttrs(Attrs{{1, 0}, {0, 1}}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const Attrs& a = attrs->As<Attrs>();
    int64_t top = a.before[0].value(), left = a.before[1].value();
    RefTensor r = RefTensor::Zeros({top + in[0].shape[0] + a.after[0].value(), left + in[0].shape[1] + a.after[1].value()});
    for (double& v : r.data) v = a.value;
    for (int64_t i = 0; i < in[0].shape[0]; ++i)
      for (int64_t j = 0; j < in[0].shape[1]; ++j) r.at({top + i, left + j}) = in[0].at({i, j});
    return std::vector{r};
  });
}

Expr Concat::Element(ElementCtx& c) {
  const int dim = NormalizeAxis(c.Attrs<Attrs>().dim, static_cast<int>(c.at.size()), "concat");
  const DType t = ComputeType(c.out[0].dtype);
  Expr result;
  // From the last operand to the first: p < end_k ? operand k : the rest. Loads are predicated, so none reads outside.
  std::vector<Dim> starts;
  Dim start = 0;
  for (const TensorType& x : c.in) {
    starts.push_back(start);
    start = start + x.shape[dim];
  }
  for (size_t k = c.in.size(); k-- > 0;) {
    std::vector<Expr> position(c.at.begin(), c.at.end());
    position[dim] = position[dim] - Expr::Size(starts[k]);
    Expr before_end = position[dim] < Expr::Size(c.in[k].shape[dim]);
    Expr inside = (I64(0) <= position[dim]) & before_end;
    Expr x = Expr::Convert(c.in.size() == 1 ? c.In(static_cast<int>(k), position) : c.InIf(static_cast<int>(k), position, inside), t);
    result = result ? num::Select(before_end, x, result) : x;
  }
  return result;
}

void Concat::Grad(GradCtx& c) {
  if (!c.g()) return;
  const int dim = NormalizeAxis(c.Attrs<Attrs>().dim, c.out[0].rank(), "concat");
  Dim start = 0;
  for (size_t k = 0; k < c.in.size(); ++k) {
    const Dim end = start + c.in[k].shape()[dim];
    if (c.wanted[k]) {
      Var g = slice(c.g(), {.dim = dim, .start = start, .end = end});
      c.grad_in[k] = g.dtype() == c.in[k].dtype() ? g : cast(g, {.dtype = c.in[k].dtype()});
    }
    start = end;
  }
}

void Concat::Samples(SampleSink& s) {
  s.Case({{{2, 3}}, {{2, 1}}, {{2, 4}}}, MakeAttrs(Attrs{1})).Case({{{2, 3}}, {{0, 3}}, {{1, 3}}}, MakeAttrs(Attrs{0})).Case({{{2, 3}}}, MakeAttrs(Attrs{-1}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    const bool columns = attrs->As<Attrs>().dim != 0;
    Shape shape = in[0].shape;
    for (size_t k = 1; k < in.size(); ++k) shape[columns] += in[k].shape[columns];
    RefTensor r = RefTensor::Zeros(shape);
    int64_t start = 0;
    for (const RefTensor& x : in) {
      for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int64_t j = 0; j < x.shape[1]; ++j) r.at({i + (columns ? 0 : start), j + (columns ? start : 0)}) = x.at({i, j});
      start += x.shape[columns];
    }
    return std::vector{r};
  });
}

void StopGradient::Samples(SampleSink& s) {
  s.Case({{{2, 3}}}).Case({{{0, 4}}}).Case({{{}}});
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr&) { return std::vector{in[0]}; });
}

}  // namespace sinter::ops
