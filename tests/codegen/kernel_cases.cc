#include "sinter/tests/codegen/kernel_cases.h"

#include "sinter/codegen/lower_op.h"
#include "sinter/graph/num.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/random.h"

namespace sinter::codegen::testing {
namespace {

Expr I(int64_t v) { return Expr::ConstInt(kInt64, v); }

template <class T>
Expr CallOf(const Expr& x) { return CallExpr(DefOf<T>(), nullptr, {x}); }

// Builds kernels: buffers are numbered as they are added.
struct Make {
  Kernel k;
  int Buffer(DType t, SymShape shape, BufferRole role = BufferRole::kInput) {
    std::vector<int> order;
    for (size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<int>(i));
    k.buffers.push_back({t, std::move(shape), std::move(order), role});
    return static_cast<int>(k.buffers.size()) - 1;
  }
  Expr Outer(Dim extent) {
    k.outer.push_back({FreshIndex(), extent});
    return Expr::Index(k.outer.back().id);
  }
  KernelStage& Stage(VectorAxis axis) {
    k.stages.emplace_back();
    k.stages.back().vector = axis;
    return k.stages.back();
  }
  Expr Inner(Dim extent) {
    k.stages.back().inner.push_back({FreshIndex(), extent});
    return Expr::Index(k.stages.back().inner.back().id);
  }
  Expr Load(int b, std::vector<Expr> at) const {
    Expr e = Expr::Load(b, k.buffers[b].dtype, std::move(at));
    return Expr::Convert(e, ComputeType(e.dtype()));
  }
  void Store(int b, std::vector<Expr> at, const Expr& v) { k.stages.back().stores.push_back({b, std::move(at), ExpandCalls(v)}); }
  Kernel Done(std::string name) {
    k.name = std::move(name);
    return std::move(k);
  }
};

// out[i] = body(x[i], y[i], ...) for inputs of the given types.
Kernel Elementwise(Dim n, std::vector<DType> in, std::vector<DType> out, std::function<std::vector<Expr>(std::vector<Expr>)> body) {
  Make m;
  std::vector<int> inputs, outputs;
  for (DType t : in) inputs.push_back(m.Buffer(t, {n}));
  for (DType t : out) outputs.push_back(m.Buffer(t, {n}, BufferRole::kOutput));
  Expr i = m.Outer(n);
  std::vector<Expr> loads;
  for (int b : inputs) loads.push_back(m.Load(b, {i}));
  std::vector<Expr> values = body(loads);
  m.Stage(VectorAxis::kOuter);
  for (size_t o = 0; o < outputs.size(); ++o) m.Store(outputs[o], {i}, Expr::Convert(values[o], ComputeType(out[o])));
  return m.Done("elementwise");
}

Kernel Chain(Dim n) {
  return Elementwise(n, {kFloat32, kFloat32}, {kFloat32, kFloat32}, [](std::vector<Expr> x) {
    Expr a = x[0] * x[1] + 1.0;
    return std::vector{num::Fma(a, x[0], x[1]) / (num::Abs(x[1]) + 1.0), num::Max(a, x[1]) - num::Min(x[0], x[1])};
  });
}

Kernel Elementary(Dim n, DType t) {
  return Elementwise(n, {t}, {t, t, t}, [](std::vector<Expr> x) { return std::vector{CallOf<ops::Exp>(x[0]), CallOf<ops::Log>(x[0]), CallOf<ops::Tanh>(x[0])}; });
}

Kernel Rounding(Dim n, DType t) {
  return Elementwise(n, {t}, {t, t, t, t, t, t, kBool}, [](std::vector<Expr> x) {
    return std::vector{num::Floor(x[0]), num::Ceil(x[0]), num::Trunc(x[0]), num::Round(x[0]), num::Sqrt(x[0]), -x[0], num::IsNan(x[0])};
  });
}

Kernel Broadcast(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {n, 13}), row = m.Buffer(kFloat32, {13}), column = m.Buffer(kFloat32, {n}), out = m.Buffer(kFloat32, {n, 13}, BufferRole::kOutput);
  Expr i = m.Outer(n), j = m.Outer(13);
  m.Stage(VectorAxis::kOuter);
  m.Store(out, {i, j}, m.Load(x, {i, j}) * m.Load(row, {j}) + m.Load(column, {i}));
  return m.Done("broadcast");
}

// Dense in one order everywhere: one loop in disguise.
Kernel Mergeable(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {3, n, 5}), y = m.Buffer(kFloat32, {1}), out = m.Buffer(kFloat32, {3, n, 5}, BufferRole::kOutput), flat = m.Buffer(kInt64, {3, n, 5}, BufferRole::kOutput);
  Expr i = m.Outer(3), j = m.Outer(n), k = m.Outer(5);
  m.Stage(VectorAxis::kOuter);
  m.Store(out, {i, j, k}, m.Load(x, {i, j, k}) + m.Load(y, {I(0)}));
  m.Store(flat, {i, j, k}, (i * Expr::Size(n) + j) * I(5) + k);
  return m.Done("mergeable");
}

Kernel Transpose(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {5, n}), y = m.Buffer(kInt8, {n, 3}), out = m.Buffer(kFloat32, {n, 5}, BufferRole::kOutput), last = m.Buffer(kInt32, {n}, BufferRole::kOutput);
  Expr i = m.Outer(n);
  m.Stage(VectorAxis::kInner);
  Expr j = m.Inner(5);
  m.Store(out, {i, j}, m.Load(x, {j, i}));
  m.Stage(VectorAxis::kNone);
  m.Store(last, {i}, m.Load(y, {Expr::Size(n) - I(1) - i, I(2)}));
  return m.Done("transpose");
}

Kernel Softmax(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {3, n}), top = m.Buffer(kFloat32, {}, BufferRole::kLocal), e = m.Buffer(kFloat32, {n}, BufferRole::kLocal);
  const int sum = m.Buffer(kFloat32, {}, BufferRole::kLocal), out = m.Buffer(kFloat32, {3, n}, BufferRole::kOutput);
  Expr i = m.Outer(3);
  auto reduce = [&](ReduceKind kind, int b, bool row) {
    LoopVar l{FreshIndex(), n};
    Expr j = Expr::Index(l.id);
    return Expr::Reduce(kind, {l}, {row ? m.Load(b, {i, j}) : m.Load(b, {j})});
  };
  m.Stage(VectorAxis::kReduction);
  m.Store(top, {}, reduce(ReduceKind::kMax, x, true));
  m.Stage(VectorAxis::kInner);
  Expr j = m.Inner(n);
  m.Store(e, {j}, CallOf<ops::Exp>(m.Load(x, {i, j}) - m.Load(top, {})));
  m.Stage(VectorAxis::kReduction);
  m.Store(sum, {}, reduce(ReduceKind::kSum, e, false));
  m.Stage(VectorAxis::kInner);
  Expr h = m.Inner(n);
  m.Store(out, {i, h}, m.Load(e, {h}) / m.Load(sum, {}));
  return m.Done("softmax");
}

// Reductions of every kind, of columns or of rows.
Kernel Reductions(Dim n, DType t, bool columns) {
  Make m;
  const int x = m.Buffer(t, columns ? SymShape{n, 21} : SymShape{3, n});
  std::vector<ReduceKind> kinds = {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin};
  if (t == kBool) kinds = {ReduceKind::kAny, ReduceKind::kAll, ReduceKind::kMax, ReduceKind::kMin};
  std::vector<int> outs;
  for (size_t i = 0; i < kinds.size(); ++i) outs.push_back(m.Buffer(t, {columns ? Dim(21) : Dim(3)}, BufferRole::kOutput));
  Expr i = m.Outer(columns ? 21 : 3);
  m.Stage(columns ? VectorAxis::kOuter : VectorAxis::kReduction);
  for (size_t o = 0; o < kinds.size(); ++o) {
    LoopVar l{FreshIndex(), n};
    Expr j = Expr::Index(l.id);
    m.Store(outs[o], {i}, Expr::Reduce(kinds[o], {l}, {columns ? m.Load(x, {j, i}) : m.Load(x, {i, j})}));
  }
  return m.Done("reductions");
}

// Per channel over images: two loops that are not one.
Kernel ChannelSum(Dim n, Dim pixels) {
  Make m;
  const int x = m.Buffer(kFloat32, {n, 3, pixels}), out = m.Buffer(kFloat32, {3}, BufferRole::kOutput);
  Expr c = m.Outer(3);
  LoopVar b{FreshIndex(), n}, p{FreshIndex(), pixels};
  Expr v = m.Load(x, {Expr::Index(b.id), c, Expr::Index(p.id)});
  m.Stage(VectorAxis::kReduction);
  m.Store(out, {c}, Expr::Reduce(ReduceKind::kSum, {b, p}, {v * v}));
  return m.Done("channel_sum");
}

Kernel Contraction(Dim inner, Dim columns, DType t) {
  Make m;
  const int a = m.Buffer(t, {3, inner}), b = m.Buffer(t, {inner, columns}), out = m.Buffer(t, {3, columns}, BufferRole::kOutput);
  Expr i = m.Outer(3), j = m.Outer(columns);
  LoopVar l{FreshIndex(), inner};
  Expr k = Expr::Index(l.id);
  m.Stage(VectorAxis::kOuter);
  m.Store(out, {i, j}, Expr::Reduce(ReduceKind::kContract, {l}, {m.Load(a, {i, k}), m.Load(b, {k, j})}));
  return m.Done("contraction");
}

Kernel Window(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {4, n}), out = m.Buffer(kFloat32, {4, n}, BufferRole::kOutput), top = m.Buffer(kFloat32, {4, n}, BufferRole::kOutput);
  Expr i = m.Outer(4), j = m.Outer(n);
  LoopVar u{FreshIndex(), 3}, v{FreshIndex(), 5};
  Expr r = i + Expr::Index(u.id) - I(1), c = j + Expr::Index(v.id) - I(2);
  Expr inside = (r >= I(0)) & (r < I(4)) & (c >= I(0)) & (c < Expr::Size(n));
  Expr value = Expr::LoadIf(x, kFloat32, {r, c}, inside);
  m.Stage(VectorAxis::kOuter);
  m.Store(out, {i, j}, Expr::Reduce(ReduceKind::kSum, {u, v}, {value}));
  m.Store(top, {i, j}, Expr::Reduce(ReduceKind::kMax, {u, v}, {Expr::Select(inside, value, Expr::Const(kFloat32, -INFINITY))}));
  return m.Done("window");
}

Kernel Gather(Dim n) {
  Make m;
  const int index = m.Buffer(kInt64, {n}), table = m.Buffer(kFloat32, {11, 7}), flags = m.Buffer(kBool, {11}), out = m.Buffer(kFloat32, {n, 7}, BufferRole::kOutput), one = m.Buffer(kBool, {n}, BufferRole::kOutput);
  Expr i = m.Outer(n);
  Expr row = Expr::Binary(ExprKind::kFloorMod, m.Load(index, {i}), I(11));
  m.Stage(VectorAxis::kInner);
  Expr j = m.Inner(7);
  m.Store(out, {i, j}, m.Load(table, {row, j}));
  m.Stage(VectorAxis::kNone);
  m.Store(one, {i}, m.Load(flags, {row}) & (m.Load(table, {row, I(3)}) < Expr::Const(kFloat32, 0)));
  return m.Done("gather");
}

Kernel FromFloats(Dim n, DType from) {
  return Elementwise(n, {from}, {kFloat32, kFloat64, kFloat16, kBFloat16, kInt8, kUInt8, kInt32, kInt64, kBool}, [](std::vector<Expr> x) {
    std::vector<Expr> all;
    for (DType t : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt8, kUInt8, kInt32, kInt64, kBool}) all.push_back(Expr::Convert(Expr::Convert(x[0], t), ComputeType(t)));
    return all;
  });
}

Kernel Integers(Dim n, DType t) {
  const std::vector<ExprKind> kinds = {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kDiv, ExprKind::kRem, ExprKind::kFloorDiv, ExprKind::kFloorMod, ExprKind::kMin,
                                       ExprKind::kMax, ExprKind::kAnd, ExprKind::kOr, ExprKind::kXor, ExprKind::kShl, ExprKind::kShr, ExprKind::kShrLogical};
  std::vector<DType> out(kinds.size() + 4, t);
  out.push_back(kBool);
  return Elementwise(n, {t, t}, out, [&](std::vector<Expr> x) {
    std::vector<Expr> all;
    for (ExprKind k : kinds) all.push_back(Expr::Binary(k, x[0], x[1]));
    all.push_back(-x[0]);
    all.push_back(num::Abs(x[0]));
    all.push_back(num::Not(x[0]));
    all.push_back(Expr::Binary(ExprKind::kFloorDiv, x[0], Expr::ConstInt(t, 7)));
    all.push_back((x[0] < x[1]) ^ (x[0] <= Expr::ConstInt(t, 5)) ^ num::Equal(x[0], x[1]));
    return all;
  });
}

Kernel Bools(Dim n) {
  return Elementwise(n, {kBool, kBool, kFloat32}, {kBool, kBool, kBool, kFloat32, kInt32}, [](std::vector<Expr> x) {
    Expr positive = x[2] > 0.0;
    return std::vector{(x[0] & x[1]) | positive, num::Not(x[0]) ^ x[1], Expr::Binary(ExprKind::kNe, x[2], x[2]), Expr::Select(x[0], x[2], -x[2]), Expr::Convert(positive, kInt32)};
  });
}

// Bodies with a reduction of other things inside, and a value of the same point read back.
Kernel Nested(Dim n) {
  Make m;
  const int x = m.Buffer(kFloat32, {n}), y = m.Buffer(kFloat32, {n, 40}), s = m.Buffer(kFloat32, {}, BufferRole::kLocal), out = m.Buffer(kFloat32, {4}, BufferRole::kOutput), twice = m.Buffer(kFloat32, {4}, BufferRole::kOutput);
  Expr i = m.Outer(4);
  LoopVar a{FreshIndex(), n}, b{FreshIndex(), 40};
  Expr inner = Expr::Reduce(ReduceKind::kSum, {b}, {m.Load(y, {Expr::Index(a.id), Expr::Index(b.id)})});
  m.Stage(VectorAxis::kOuter);
  m.Store(s, {}, Expr::Reduce(ReduceKind::kMax, {a}, {m.Load(x, {Expr::Index(a.id)}) * inner}));
  m.Stage(VectorAxis::kOuter);
  m.Store(out, {i}, m.Load(s, {}) + Expr::Convert(i, kFloat32));
  m.Stage(VectorAxis::kOuter);
  m.Store(twice, {i}, m.Load(out, {i}) * 2.0);
  return m.Done("nested");
}

Kernel Random(Dim n, DType t) {
  const TensorType in[] = {{kInt64, {2}}}, out[] = {{t, {n, 3}}};
  const std::vector<int> orders[] = {{0}};
  return KernelFromOp(DefOf<ops::RandomNormal>(), MakeAttrs(ops::RandomAttrs{{n, 3}, t}), in, out, orders, {0, 1});
}

}  // namespace

std::vector<KernelCase> AllKernelCases() {
  return {
      {"chain", Chain},
      {"elementary_f32", [](Dim n) { return Elementary(n, kFloat32); }},
      {"elementary_f64", [](Dim n) { return Elementary(n, kFloat64); }},
      {"rounding_f32", [](Dim n) { return Rounding(n, kFloat32); }},
      {"rounding_f64", [](Dim n) { return Rounding(n, kFloat64); }},
      {"broadcast", Broadcast},
      {"mergeable", Mergeable},
      {"transpose", Transpose},
      {"softmax", Softmax},
      {"rows_f32", [](Dim n) { return Reductions(n, kFloat32, false); }},
      {"rows_i64", [](Dim n) { return Reductions(n, kInt64, false); }},
      {"rows_bool", [](Dim n) { return Reductions(n, kBool, false); }},
      {"columns_f32", [](Dim n) { return Reductions(n, kFloat32, true); }},
      {"columns_f64", [](Dim n) { return Reductions(n, kFloat64, true); }},
      {"columns_i32", [](Dim n) { return Reductions(n, kInt32, true); }},
      {"columns_bool", [](Dim n) { return Reductions(n, kBool, true); }},
      {"channels_48", [](Dim n) { return ChannelSum(n, 48); }},
      {"channels_7", [](Dim n) { return ChannelSum(n, 7); }},
      {"channels_n", [](Dim n) { return ChannelSum(5, n); }},
      {"contraction_k", [](Dim n) { return Contraction(n, 9, kFloat32); }},
      {"contraction_n", [](Dim n) { return Contraction(19, n, kFloat64); }},
      {"contraction_i32", [](Dim n) { return Contraction(n, 5, kInt32); }},
      {"window", Window},
      {"gather", Gather},
      {"convert_f32", [](Dim n) { return FromFloats(n, kFloat32); }},
      {"convert_f64", [](Dim n) { return FromFloats(n, kFloat64); }},
      {"convert_f16", [](Dim n) { return FromFloats(n, kFloat16); }},
      {"convert_bf16", [](Dim n) { return FromFloats(n, kBFloat16); }},
      {"convert_i8", [](Dim n) { return FromFloats(n, kInt8); }},
      {"convert_u8", [](Dim n) { return FromFloats(n, kUInt8); }},
      {"convert_i32", [](Dim n) { return FromFloats(n, kInt32); }},
      {"convert_i64", [](Dim n) { return FromFloats(n, kInt64); }},
      {"convert_bool", [](Dim n) { return FromFloats(n, kBool); }},
      {"integers_i32", [](Dim n) { return Integers(n, kInt32); }},
      {"integers_i64", [](Dim n) { return Integers(n, kInt64); }},
      {"bools", Bools},
      {"nested", Nested},
      {"random_f32", [](Dim n) { return Random(n, kFloat32); }},
      {"random_f64", [](Dim n) { return Random(n, kFloat64); }},
  };
}

}  // namespace sinter::codegen::testing
