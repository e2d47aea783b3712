#include "sinter/eager/recorder.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "sinter/eager/creation.h"
#include "sinter/eager/dispatch.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/nn.h"

namespace sinter {
namespace {

// Writes down what it is told, as text.
class Scribe final : public Recorder {
 public:
  std::vector<ImplPtr> Record(const OpDef& op, const AttrPtr&, std::span<TensorImpl* const> inputs,
                              std::span<const TensorType> types) override {
    std::string line = op.name + "(";
    for (TensorImpl* t : inputs) line += Name(*t) + " ";
    log.push_back(line + ")");
    std::vector<ImplPtr> out;
    for (const TensorType& t : types) out.push_back(Symbolic(t));
    return out;
  }
  ImplPtr Symbolic(TensorType type) {
    ImplPtr t(new TensorImpl());
    t->symbolic = std::make_unique<SymbolicValue>();
    t->symbolic->type = std::move(type);
    t->symbolic->index = next_++;
    return t;
  }
  bool Decide(TensorImpl& t) override {
    log.push_back("decide " + Name(t));
    return answer;
  }
  void HostRead(TensorImpl& t, std::string_view what) override {
    if (t.symbolic) throw Error(ErrorCode::kFailedPrecondition, "host read: " + std::string(what));
  }
  int64_t HostSize(const Dim& d, std::string_view) override {
    log.push_back("pin " + d.ToString());
    return 5;
  }
  void Assign(TensorImpl& cell, TensorImpl& value) override {
    log.push_back("assign " + Name(cell) + " = " + Name(value));
  }
  void Backward(TensorImpl& loss, TensorImpl*) override { log.push_back("backward " + Name(loss)); }
  std::vector<ImplPtr> Gradients(std::span<TensorImpl* const>, std::span<TensorImpl* const> in,
                                 std::span<TensorImpl* const>) override {
    std::vector<ImplPtr> r;
    for (TensorImpl* t : in) r.push_back(Symbolic(SymbolicTypeOf(*t)));
    log.push_back("gradients");
    return r;
  }
  void AssignGrad(TensorImpl&, TensorImpl* value) override {
    log.push_back(value ? "set grad" : "clear grad");
  }
  ImplPtr ReadGrad(TensorImpl& t) override { return Symbolic(SymbolicTypeOf(t)); }
  void NoteFlag(const std::shared_ptr<const bool>&) override { log.push_back("flag"); }
  void HandleCreated(Tensor* t) noexcept override { EXPECT_TRUE(live.insert(t).second); }
  void HandleDestroyed(Tensor* t) noexcept override { live.erase(t); }
  void HandleAssigned(Tensor* t) noexcept override {
    if (!live.contains(t)) outside.insert(t);
  }

  std::string Name(TensorImpl& t) { return t.symbolic ? "%" + std::to_string(t.symbolic->index) : "cell"; }

  std::vector<std::string> log;
  std::set<Tensor*> live, outside;
  bool answer = true;

 private:
  uint32_t next_ = 0;
};

using Log = std::vector<std::string>;

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : x(scribe.Symbolic({kFloat32, {Dim::Symbol("n"), Dim(3)}})) {}
  Scribe scribe;
  Tensor x;  // %0, float32[n, 3]
};

TEST_F(RecorderTest, OpsAreRecordedWholeWithInferredTypes) {
  Tensor w = ones({3});
  ScopedRecorder scope(&scribe);
  Tensor y = softmax(x * w, {.dim = 1});
  EXPECT_EQ(scribe.log, (Log{"mul(%0 cell )", "softmax(%1 )"}));
  EXPECT_EQ(y.TypeString(), "float32[n, 3]");
  EXPECT_TRUE(y.is_symbolic());
  EXPECT_TRUE(x.dim(1) == 3);
  EXPECT_EQ(x.transpose().sym_shape()[1], Dim::Symbol("n"));
}

TEST_F(RecorderTest, HostDataBecomesConstants) {
  ScopedRecorder scope(&scribe);
  Tensor a = zeros({x.dim(0), 2}), b = tensor({1, 2});
  Tensor c = x * 2.0;
  EXPECT_EQ(scribe.log, (Log{"full()", "constant()", "full()", "mul(%0 %3 )"}));
  EXPECT_EQ(a.TypeString(), "float32[n, 2]");
}

TEST_F(RecorderTest, ControlFlowAndHostReads) {
  ScopedRecorder scope(&scribe);
  if (x.sum() > 0) scribe.log.push_back("then");
  EXPECT_EQ(scribe.log.back(), "then");
  EXPECT_EQ(scribe.log[scribe.log.size() - 2].substr(0, 6), "decide");
  EXPECT_THROW(x.sum().item<float>(), Error);
  EXPECT_EQ(x.shape(), (Shape{5, 3}));
  EXPECT_EQ(scribe.log.back(), "pin n");
}

TEST_F(RecorderTest, IntsBecomeValuesWhenTheyVary) {
  ScopedRecorder scope(&scribe);
  EXPECT_TRUE((x.dim(0) * 2).is_size());
  EXPECT_TRUE(x.dim(1) < 4);  // decided at once
  EXPECT_TRUE(scribe.log.empty());
  Int i = 0;
  EXPECT_FALSE(i.is_size());
  ++i;
  scribe.answer = false;
  EXPECT_FALSE(i < x.dim(0));
  EXPECT_EQ(scribe.log,
            (Log{"constant()", "constant()", "add(%1 %2 )", "size()", "less(%3 %4 )", "decide %5"}));
  EXPECT_THROW(zeros({i}), Error);
  EXPECT_EQ(x[i].TypeString(), "float32[3]");
}

TEST_F(RecorderTest, WritesAreAssignments) {
  Parameter w(ones({3}));
  Generator g(1);
  Tensor cell = zeros({3});
  {
    ScopedRecorder scope(&scribe);
    cell.add_(1);
    w = x.sum(0);
    w.clear_grad();
    x.sum().backward();
    g.rand({x.dim(0)});
  }
  EXPECT_EQ(scribe.log, (Log{"full()", "add(cell %1 )", "assign cell = %2", "sum(%0 )", "assign cell = %3",
                             "clear grad", "sum(%0 )", "backward %4", "random_uniform(cell )", "size()",
                             "iota()", "mul(%7 %6 )", "add(cell %8 )", "assign cell = %9"}));
  EXPECT_EQ(cell.ToVector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(g.offset(), 0);
}

TEST_F(RecorderTest, RequiresGradIsABit) {
  Parameter w(ones({3}));
  ScopedRecorder scope(&scribe);
  EXPECT_TRUE((x * w).requires_grad());
  EXPECT_TRUE((x * w).is_leaf());  // no tape
  EXPECT_FALSE((x * x).requires_grad());
  EXPECT_FALSE((x * w).detach().requires_grad());
  EXPECT_FALSE(no_grad([&] { return x * w; }).requires_grad());
}

TEST_F(RecorderTest, HandlesAreFollowed) {
  Tensor before = x;
  {
    ScopedRecorder scope(&scribe);
    EXPECT_TRUE(scribe.live.empty());
    Tensor a = x + x;
    EXPECT_EQ(scribe.live, (std::set<Tensor*>{&a}));
    Tensor b = a;
    Tensor c = std::move(b);
    EXPECT_EQ(scribe.live, (std::set<Tensor*>{&a, &b, &c}));
    std::vector<Tensor> v(2);
    v.push_back(a);
    EXPECT_EQ(scribe.live.size(), 6u);
    v.clear();
    EXPECT_EQ(scribe.live.size(), 3u);
    EXPECT_TRUE(scribe.outside.empty());
    before = a;
    EXPECT_EQ(scribe.outside, (std::set<Tensor*>{&before}));
    // The cell behind a handle may be exchanged.
    ImplPtr other = scribe.Symbolic(SymbolicTypeOf(a.impl()));
    (*scribe.live.begin())->slot() = other;
  }
  EXPECT_TRUE(scribe.live.empty());
  Tensor after = x;
  EXPECT_TRUE(scribe.live.empty());
}

TEST_F(RecorderTest, CapturedTensorsHaveNoValueOutside) {
  Tensor y;
  {
    ScopedRecorder scope(&scribe);
    y = x * 2.0;
  }
  EXPECT_THROW(y + 1.0, Error);
  EXPECT_THROW(y.shape(), Error);
  EXPECT_THROW(y.sum(), Error);
  EXPECT_THROW(y.ToVector<float>(), Error);
}

// Observer and autocast
// -----------------------------------------------------------------------------------------------------

TEST(Hooks, ObserverSeesCompositesAndParts) {
  class Names final : public DispatchObserver {
   public:
    void Begin(const OpDef& op, const AttrPtr&, std::span<TensorImpl* const>) override {
      log += "<" + op.name;
    }
    void End(const OpDef&, std::span<const ImplPtr> out) override { log += out.empty() ? "!>" : ">"; }
    std::string log;
  } names;
  {
    ScopedObserver scope(&names);
    ones({2, 2}).mean();
    EXPECT_THROW(ones({2}) + ones({3}), Error);
  }
  EXPECT_EQ(names.log.substr(0, 6), "<mean<");
  EXPECT_NE(names.log.find("sum>"), std::string::npos);
  EXPECT_EQ(names.log.substr(names.log.size() - 6), "<add!>");
}

TEST(Hooks, AutocastCastsWithOps) {
  class Half final : public AutocastHook {
   public:
    std::optional<DType> OperandTypeFor(const OpDef& op, std::span<TensorImpl* const>) const override {
      return op.name == "mul" ? std::optional<DType>(kFloat16) : std::nullopt;
    }
  } half;
  Tensor x = ones({2}).requires_grad_();
  ScopedAutocast scope(&half);
  Tensor y = x * x;
  EXPECT_EQ(y.dtype(), kFloat16);
  EXPECT_EQ((y + y).dtype(), kFloat16);
  y.to(kFloat32).sum().backward();
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace sinter
