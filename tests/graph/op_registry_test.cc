// Walks the registry: every op has all its parts, computes what an independent reference says, and its gradient is that of finite
// differences.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/gradient.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/runtime/strides.h"

namespace sinter {
namespace {

std::vector<const OpDef*> Testable() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : AllOps())
    if (op->samples) ops.push_back(op);
  return ops;
}

struct Array {
  DType dtype;
  Shape shape, strides;
  std::vector<std::byte> bytes;
  Array(DType t, Shape s) : dtype(t), shape(std::move(s)), strides(RowMajorStrides(shape)), bytes(static_cast<size_t>(NumElements(shape)) * ItemSize(t) + 8) {}
  TensorView view() { return {bytes.data(), dtype, shape, strides}; }
  void Set(size_t i, double v) {
    switch (dtype) {
      case DType::kFloat32: reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(v); break;
      case DType::kFloat64: reinterpret_cast<double*>(bytes.data())[i] = v; break;
      case DType::kInt32: reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(v); break;
      case DType::kInt64: reinterpret_cast<int64_t*>(bytes.data())[i] = static_cast<int64_t>(v); break;
      default: reinterpret_cast<bool*>(bytes.data())[i] = v != 0;
    }
  }
  double Get(size_t i) const {
    switch (dtype) {
      case DType::kFloat32: return reinterpret_cast<const float*>(bytes.data())[i];
      case DType::kFloat64: return reinterpret_cast<const double*>(bytes.data())[i];
      case DType::kInt32: return reinterpret_cast<const int32_t*>(bytes.data())[i];
      case DType::kInt64: return static_cast<double>(reinterpret_cast<const int64_t*>(bytes.data())[i]);
      default: return reinterpret_cast<const bool*>(bytes.data())[i];
    }
  }
};

// The samples of an op as explicit cases; pointwise ops get shapes (with broadcasting) from here.
struct Suite {
  std::vector<Sample> cases;
  ReferenceFn reference;
  SampleSink sink;
};

Suite SuiteOf(const OpDef& op) {
  Suite s;
  op.samples(s.sink);
  s.cases = s.sink.cases;
  s.reference = s.sink.reference;
  if (!s.sink.range) return s;
  std::vector<AttrPtr> grid = s.sink.attr_grid;
  if (grid.empty()) grid.push_back(op.default_attrs);
  for (const AttrPtr& attrs : grid)
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 3}, Shape{1, 1}, Shape{300}}) {
      Sample c;
      c.attrs = attrs;
      for (int i = 0; i < op.inputs; ++i) {
        // The second operand broadcasts.
        const Shape own = i == 1 && shape.size() == 2 ? Shape{shape[1]} : shape;
        c.inputs.push_back({own, s.sink.range->first, s.sink.range->second});
      }
      s.cases.push_back(std::move(c));
    }
  auto scalar = s.sink.scalar_;
  s.reference = [scalar, &op](std::span<const RefTensor> in, const AttrPtr& attrs) {
    RefTensor r = in[0];
    for (size_t i = 0; i < r.data.size(); ++i) {
      double x[4];
      for (size_t k = 0; k < in.size(); ++k) x[k] = in[k].data[in[k].data.size() == r.data.size() ? i : i % in[k].data.size()];
      r.data[i] = scalar({x, in.size()}, op.AttrsOrDefault(attrs));
    }
    return std::vector{r};
  };
  return s;
}

std::vector<Array> Draw(const Sample& c, DType dtype, const std::vector<double>& kinks, std::vector<RefTensor>& refs) {
  std::mt19937 rng(7);
  std::vector<Array> arrays;
  for (const SampleInput& in : c.inputs) {
    Array a(in.dtype.value_or(dtype), in.shape);
    RefTensor r = RefTensor::Zeros(in.shape);
    std::uniform_real_distribution<double> u(in.low, in.high);
    for (size_t i = 0; i < r.data.size(); ++i) {
      double v = u(rng);
      for (double k : kinks)
        if (std::abs(v - k) < 1e-2) v = k + 2e-2;
      if (!IsFloating(a.dtype)) v = std::floor(v);
      a.Set(i, v);
      r.data[i] = a.Get(i);
    }
    arrays.push_back(std::move(a));
    refs.push_back(std::move(r));
  }
  return arrays;
}

// Builds a graph on the arrays' types and runs it with the interpreter.
std::vector<Array> Evaluate(std::vector<Array>& in, const std::function<std::vector<Value*>(Graph&, std::vector<Value*>)>& build) {
  Graph g;
  g.numerics = Numerics::kExact;
  std::vector<Value*> args;
  for (const Array& a : in) args.push_back(g.AddArg({a.dtype, SymShape(a.shape.begin(), a.shape.end())}, "x"));
  std::vector<Value*> results = build(g, args);
  g.SetOutputs(results);
  codegen::Optimize(g);
  codegen::CompileOptions o;
  o.backend = codegen::InterpretKernel;
  auto executable = codegen::Compile(g, o);
  std::vector<TensorView> views;
  for (Array& a : in) views.push_back(a.view());
  const DimEnv env = executable->Bind(views);
  const HostOutputs raw = AllocateOutputs(*executable, env);
  executable->Run(env, views, raw.views);
  std::vector<Array> out;
  for (size_t i = 0; i < raw.views.size(); ++i) {
    out.emplace_back(raw.types[i].dtype, raw.types[i].shape);
    CopyView(raw.views[i], out.back().view());
  }
  return out;
}

std::vector<Value*> OneNode(Graph& g, const OpDef& op, const AttrPtr& attrs, std::vector<Value*> args) {
  Node* n = g.AddNode(g.body, op, attrs, std::move(args));
  std::vector<Value*> r;
  for (const auto& o : n->outputs) r.push_back(o.get());
  return r;
}

class Registry : public testing::TestWithParam<const OpDef*> {};

TEST_P(Registry, EqualsItsReference) {
  const OpDef& op = *GetParam();
  Suite s = SuiteOf(op);
  ASSERT_FALSE(s.cases.empty());
  ASSERT_TRUE(s.reference) << "no independent reference";
  for (const Sample& c : s.cases)
    for (DType dtype : {kFloat32, kFloat64}) {
      if (dtype == kFloat64 && op.kind == OpKind::kRandom) continue;  // the dtype is an attribute
      std::vector<RefTensor> refs;
      std::vector<Array> in = Draw(c, dtype, {}, refs);
      std::vector<RefTensor> want = s.reference(refs, op.AttrsOrDefault(c.attrs));
      std::vector<Array> got = Evaluate(in, [&](Graph& g, std::vector<Value*> args) { return OneNode(g, op, c.attrs, args); });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got[i].shape, want[i].shape);
        double scale = 0;
        for (double v : want[i].data) scale = std::max(scale, std::abs(v));
        const bool f64 = got[i].dtype == kFloat64;
        // Dot products and sums may cancel: their unit is that of the largest result.
        for (size_t k = 0; k < want[i].data.size(); ++k) {
          const double w = want[i].data[k], v = got[i].Get(k);
          if (std::isnan(w) && std::isnan(v)) continue;
          const double unit = std::ldexp(1.0, std::max(-126, std::ilogb(s.sink.range ? w : scale)) - (f64 ? 52 : 23));
          const double limit = f64 ? std::max(4.0, 2 * s.sink.max_ulp) : s.sink.max_ulp + 0.5;
          if (w == v) continue;
          ASSERT_LE(std::abs(w - v) / unit, limit) << op.name << " {" << AttrsToString(c.attrs) << "} " << DTypeName(dtype) << " element " << k << ": " << v << ", reference " << w;
        }
      }
    }
}

TEST_P(Registry, GradientEqualsFiniteDifferences) {
  const OpDef& op = *GetParam();
  if (op.no_grad) return;
  Suite s = SuiteOf(op);
  for (const Sample& c : s.cases) {
    std::vector<RefTensor> refs;
    std::vector<Array> in = Draw(c, kFloat64, s.sink.kinks, refs);
    std::vector<size_t> wrt;
    int64_t elements = 0;
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].dtype == kFloat64) wrt.push_back(i), elements += NumElements(in[i].shape);
    if (wrt.empty() || elements == 0 || elements > 400) continue;
    // loss = sum of result 0 times fixed weights
    auto loss = [&](Graph& g, std::vector<Value*> args) -> Value* {
      Value* y = OneNode(g, op, c.attrs, args)[0];
      if (!IsFloating(y->type.dtype)) return nullptr;
      GraphBuilder b(g.body);
      Var position = ApplyConstant(b.Wrap(y), DefOf<ops::Full>(), MakeAttrs(ops::Full::Attrs{{y->type.shape.begin(), y->type.shape.end()}, 0.7, y->type.dtype}));
      Var weighted = mul(b.Wrap(y), position);
      if (y->type.rank() > 0) {
        Var number = cast(ApplyConstant(b.Wrap(y), DefOf<ops::Iota>(), MakeAttrs(ops::Iota::Attrs{{y->type.shape.begin(), y->type.shape.end()}, -1})), {.dtype = y->type.dtype});
        weighted = add(weighted, mul(mul(b.Wrap(y), number), ScalarLike(number, 0.3)));
      }
      return GraphBuilder::Unwrap(sum(weighted));
    };
    bool floating = true;
    std::vector<Array> grads = Evaluate(in, [&](Graph& g, std::vector<Value*> args) -> std::vector<Value*> {
      Value* l = loss(g, args);
      if (l == nullptr) {
        floating = false;
        return {args[0]};
      }
      std::vector<Value*> targets;
      for (size_t i : wrt) targets.push_back(args[i]);
      std::vector<Value*> r = Differentiate(g.body, l, nullptr, targets);
      GraphBuilder b(g.body);
      for (size_t k = 0; k < r.size(); ++k)
        if (r[k] == nullptr) r[k] = GraphBuilder::Unwrap(FullLike(b.Wrap(targets[k]), 0));
      return r;
    });
    if (!floating) continue;
    auto value = [&] { return Evaluate(in, [&](Graph& g, std::vector<Value*> args) { return std::vector<Value*>{loss(g, args)}; })[0].Get(0); };
    std::mt19937 rng(3);
    for (size_t k = 0; k < wrt.size(); ++k) {
      Array& x = in[wrt[k]];
      const int64_t n = NumElements(x.shape);
      for (int64_t probe = 0; probe < std::min<int64_t>(n, 6); ++probe) {
        const size_t i = static_cast<size_t>(n <= 6 ? probe : static_cast<int64_t>(rng() % static_cast<uint64_t>(n)));
        const double old = x.Get(i), h = 1e-5;
        x.Set(i, old + h);
        const double up = value();
        x.Set(i, old - h);
        const double down = value();
        x.Set(i, old);
        const double want = (up - down) / (2 * h), got = grads[k].Get(i);
        ASSERT_NEAR(got, want, 1e-5 * std::max(1.0, std::abs(want)) + 1e-10 * std::abs(up)) << op.name << " {" << AttrsToString(c.attrs) << "} operand " << wrt[k] << " element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Registry, testing::ValuesIn(Testable()), [](const auto& p) { return p.param->name; });

TEST(Registry, EveryOpHasAllItsParts) {
  for (const OpDef* op : AllOps()) {
    EXPECT_EQ(FindOp(op->name), op);
    EXPECT_TRUE(op->shape || op->inputs == 1 || op->kind == OpKind::kPointwise || op->kind == OpKind::kControlFlow) << op->name;
    if (op->kind == OpKind::kControlFlow) continue;
    if (op->kind != OpKind::kOpaque) {
      EXPECT_TRUE(op->element || op->decompose) << op->name << " can't be computed";
    }
    EXPECT_TRUE(op->no_grad || op->grad || op->kind == OpKind::kPointwise || op->decompose) << op->name << " has neither a gradient nor says that it has none";
    EXPECT_TRUE(op->samples || op->kind == OpKind::kConstant) << op->name << " has no samples";
    EXPECT_GE(op->since, 1);
    // Attributes survive being taken apart and read again.
    if (op->default_attrs && op->kind != OpKind::kConstant) {
      EXPECT_TRUE(op->parse_attrs(op->default_attrs->Fields())->Equals(*op->default_attrs)) << op->name;
    }
  }
}

TEST(Registry, DerivativesAreKnownByName) {
  const DerivedOp d = DerivativeOf(GetOp("tanh"), 0, nullptr);
  ASSERT_NE(d.op, nullptr);
  EXPECT_EQ(d.op->name, "tanh.d0[g,y]");
  EXPECT_EQ(FindOp("tanh.d0[g,y]"), d.op);
  EXPECT_EQ(FindOp("tanh.d0[g,x0]"), nullptr);
  EXPECT_NE(FindOp("mish.d0[g,x0].d1[g,x0,x1]"), nullptr);
  for (const char* bad : {"tanh.d1[g]", "tanh.d0[]", "tanh.d0[y,g]", "tanh.dx[g]", "none.d0[g]", "tanh.d0[g", "]", ".d0[g]"}) EXPECT_EQ(FindOp(bad), nullptr) << bad;
  try {
    GetOp("sotfmax");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'softmax'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sinter
