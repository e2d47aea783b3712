// Keys, state, gradients and errors of compiled functions.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/nn/layers.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/views.h"
#include "sinter/tracer/difference.h"
#include "sinter/tracer/static_function.h"

namespace sinter {
namespace {

std::vector<float> V(const Tensor& t) { return t.ToVector<float>(); }

TEST(StaticFunction, OneEntryForEverySizeOfADynamicDimension) {
  auto f = [](const Tensor& x) { return softmax(x * 2, {.dim = 1}); };
  auto g = to_static(f, {InputSpec({kDynamic, 5})}, {.numerics = Numerics::kExact});
  for (int64_t n : {0, 1, 2, 7, 33}) {
    Tensor x = rand({n, 5});
    EXPECT_EQ(V(f(x)), V(g(x))) << n;
  }
  EXPECT_EQ(g.num_entries(), 1);
}

TEST(StaticFunction, WrongArgumentsSayWhatWasExpected) {
  auto g = to_static([](const Tensor& x) { return x + 1; }, {InputSpec({kDynamic, 4}, kFloat32, "image")});
  auto failure = [&](const Tensor& x) -> std::string {
    try {
      g(x);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(failure(zeros({3})).find("rank"), std::string::npos);
  EXPECT_NE(failure(zeros({3, 5})).find("dimension 1 is 5"), std::string::npos) << failure(zeros({3, 5}));
  EXPECT_NE(failure(zeros({3, 4}, kInt64)).find("element types"), std::string::npos);
  EXPECT_NE(failure(zeros({3, 5})).find("'image'"), std::string::npos);
  EXPECT_NE(failure(zeros({3, 5})).find("static_function_test.cc"), std::string::npos) << failure(zeros({3, 5}));
}

TEST(StaticFunction, HostArgumentsAreInTheKey) {
  auto g = to_static([](const Tensor& x, float k) { return x * k; }, {InputSpec({"n"})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({1.0, 2.0});
  EXPECT_EQ(V(g(x, 2)), (std::vector<float>{2, 4}));
  EXPECT_EQ(V(g(x, 3)), (std::vector<float>{3, 6}));
  EXPECT_EQ(V(g(x, 2)), (std::vector<float>{2, 4}));
  EXPECT_EQ(g.num_entries(), 2);
  EXPECT_NE(g.explain().find("host arguments"), std::string::npos);
}

TEST(StaticFunction, HostArgumentsThatDifferAtAllAreDifferent) {
  auto g = to_static([](const Tensor& x, double k, const std::string& a, const std::string& b) { return x * k + (a == "p" && b == "q" ? 1 : 0); },
                     {InputSpec({"n"}, kFloat64)}, {.numerics = Numerics::kExact});
  const Tensor x = from_vector(std::vector<double>{1.0});
  EXPECT_EQ(g(x, 1e-7, "", "").ToVector<double>(), std::vector<double>{1e-7});
  EXPECT_EQ(g(x, 2e-7, "", "").ToVector<double>(), std::vector<double>{2e-7});
  EXPECT_EQ(g(x, 1.0, "p", "q").ToVector<double>(), std::vector<double>{2});
  EXPECT_EQ(g(x, 1.0, "p\";\"q", "").ToVector<double>(), std::vector<double>{1});
  EXPECT_EQ(g(x, 1.0, "p", "\";\"q").ToVector<double>(), std::vector<double>{1});
}

struct Hidden : nn::Module {
  nn::Linear listed{2, 2};
  std::vector<nn::Linear> hidden;  // on the heap and not listed
  Hidden() { hidden.emplace_back(2, 2); }
  SINTER_MODULE(listed)
  Tensor forward(const Tensor& x) { return hidden[0](listed(x)); }
};

TEST(StaticFunction, AModuleThatComputesWithAnUnlistedParameterIsAnError) {
  Hidden m;
  auto g = to_static(m, {InputSpec({"n", 2})});
  try {
    g(ones({1, 2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("add the member that holds it to SINTER_MODULE"), std::string::npos) << e.what();
  }
}

std::string WhyRefused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

float threshold = 1;

TEST(Verify, AFrozenHostValueThatChangesIsFound) {
  auto f = [](const Tensor& x) { return x * threshold; };
  const Tensor x = tensor({3.0});
  for (VerifyMode v : {VerifyMode::kOff, VerifyMode::kFirstCall, VerifyMode::kAlways}) {
    threshold = 1;
    auto g = to_static(f, {InputSpec({1})}, {.numerics = Numerics::kExact, .verify = v});
    EXPECT_EQ(V(g(x)), (std::vector<float>{3}));
    threshold = 2;
    const std::string why = WhyRefused([&] { g(x); });
    EXPECT_EQ(why.find("verify: result 0") != std::string::npos, v == VerifyMode::kAlways) << why;
  }
}

// One path of 256 differs: no test of the capture takes it, the comparison of that very call does.
TEST(Verify, APathThatNoTestTookIsFound) {
  auto needle = [](const Tensor& x) {
    int taken = 0;
    Tensor y = x;
    for (int i = 0; i < 8; ++i)
      if (x[i] > 0) {
        y = y * 2;
        taken |= 1 << i;
      }
    return taken == 0xb5 ? y + 1 : y;
  };
  auto g = to_static(needle, {InputSpec({8})}, {.numerics = Numerics::kExact, .verify = VerifyMode::kAlways});
  int found = 0;
  for (int w = 0; w < 256; ++w) {
    std::vector<float> v;
    for (int i = 0; i < 8; ++i) v.push_back(w >> i & 1 ? 1.0f : -1.0f);
    const Tensor x = from_vector(v);
    std::vector<float> got;
    const std::string why = WhyRefused([&] { got = V(g(x)); });
    if (why.empty()) {
      EXPECT_EQ(got, V(needle(x))) << w;
    }
    found += !why.empty();
  }
  EXPECT_LE(found, 1);
}

TEST(Verify, StateStaysAsItWas) {
  Buffer count(tensor({0.0}));
  Parameter w(tensor({2.0}));
  threshold = 1;
  auto step = [&](const Tensor& x) {
    (w * x).sum().backward();
    count = count + threshold;
    return x + count;
  };
  auto g = to_static(step, {InputSpec({1})}, {.numerics = Numerics::kExact, .verify = VerifyMode::kAlways});
  const Tensor x = tensor({3.0});
  EXPECT_EQ(V(g(x)), (std::vector<float>{4}));
  EXPECT_EQ(V(g(x)), (std::vector<float>{5}));
  EXPECT_EQ(V(count), (std::vector<float>{2}));
  EXPECT_EQ(V(w.grad()), (std::vector<float>{6}));
  threshold = 5;
  EXPECT_NE(WhyRefused([&] { g(x); }), "");
  EXPECT_EQ(V(count), (std::vector<float>{2}));
  EXPECT_EQ(V(w.grad()), (std::vector<float>{6}));
}

TEST(DifferenceOf, NoInfinityHidesADifference) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = from_vector(std::vector<float>{inf, 1}), b = from_vector(std::vector<float>{inf, 2});
  EXPECT_EQ(DifferenceOf(a, a, Numerics::kDefault), "");
  EXPECT_NE(DifferenceOf(a, b, Numerics::kDefault), "");
  EXPECT_NE(DifferenceOf(b, from_vector(std::vector<float>{1, 2}), Numerics::kDefault), "");
  const int64_t big = int64_t{1} << 60;
  EXPECT_NE(DifferenceOf(from_vector(std::vector<int64_t>{big}), from_vector(std::vector<int64_t>{big + 1}), Numerics::kDefault), "");
}

TEST(StaticFunction, ABadTargetFailsTheWholeStep) {
  Parameter w(ones({2, 3}));
  auto step = [&](const Tensor& x, const Tensor& target) {
    nn::cross_entropy(matmul(x, w), target).backward();  // the loss itself is not used
    NoGradGuard no_grad;
    w = w - w.grad() * 0.5f;
    w.clear_grad();
  };
  auto g = to_static(step, {InputSpec({"n", 2}), InputSpec({"n"}, kInt64)});
  const Tensor x = ones({2, 2});
  g(x, tensor({0, 1}));
  const std::vector<float> before = V(w);
  EXPECT_NE(before, std::vector<float>(6, 1.0f));
  const std::string why = WhyRefused([&] { g(x, tensor({0, 3})); });
  EXPECT_NE(why.find("a target is outside"), std::string::npos) << why;
  EXPECT_NE(why.find("static_function_test.cc"), std::string::npos) << why;
  EXPECT_EQ(V(w), before);
}

TEST(StaticFunction, TheGraphIsThereOnDemand) {
  auto g = to_static([](const Tensor& x) { return x * 2; }, {InputSpec({"n"})});
  EXPECT_NE(g.explain().find("nothing is compiled yet"), std::string::npos);
  EXPECT_NE(Print(g.graph()).find("mul"), std::string::npos);
  auto unspecified = to_static([](const Tensor& x) { return x * 2; });
  EXPECT_NE(WhyRefused([&] { unspecified.graph(); }).find("InputSpec"), std::string::npos);
}

TEST(StaticFunction, ATensorKeptInAContainerOutsideIsRefused) {
  std::vector<Tensor> history;
  auto g = to_static([&](const Tensor& x) {
    history.push_back(x * 2);
    return x + 1;
  }, {InputSpec({"n"})});
  const std::string why = WhyRefused([&] { g(ones({2})); });
  EXPECT_NE(why.find("outlives its call"), std::string::npos) << why;
}

TEST(StaticFunction, AConditionOfManyElementsSaysSo) {
  auto g = to_static([](const Tensor& x) { return x > 0 ? x : -x; }, {InputSpec({"n"})});
  const std::string why = WhyRefused([&] { g(ones({2})); });
  EXPECT_NE(why.find("say any() or all()"), std::string::npos) << why;
}

TEST(StaticFunction, AGrowingTensorSaysWhatGrows) {
  auto g = to_static([](const Tensor& x) {
    Tensor y = x;
    while (y.sum() < 10) y = concat(std::vector<Tensor>{y, x}, {.dim = 0});
    return y.sum();
  }, {InputSpec({3})});
  const std::string why = WhyRefused([&] { g(ones({3})); });
  EXPECT_NE(why.find("grows from turn to turn"), std::string::npos) << why;
  EXPECT_NE(why.find("static_function_test.cc"), std::string::npos) << why;
}

// A size that breaks a guard is no error: it gets a program of its own.
TEST(StaticFunction, GuardsThatBreakGiveAnotherEntry) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto g = to_static(f, {InputSpec({"n"}), InputSpec({"m"})}, {.numerics = Numerics::kExact});
  EXPECT_EQ(V(g(ones({5}), ones({1}))), V(f(ones({5}), ones({1}))));
  EXPECT_EQ(V(g(ones({5}), ones({5}))), V(f(ones({5}), ones({5}))));
  EXPECT_EQ(V(g(ones({7}), ones({7}))), V(f(ones({7}), ones({7}))));
  EXPECT_EQ(V(g(ones({5}), ones({1}))), V(f(ones({5}), ones({1}))));
  EXPECT_EQ(g.num_entries(), 2);
  EXPECT_THROW(g(ones({5}), ones({3})), Error);
  auto pinned = [](const Tensor& x) { return x.reshape({x.shape()[0], -1}) * 2; };
  auto h = to_static(pinned, {InputSpec({kDynamic, 2})}, {.numerics = Numerics::kExact});
  for (int64_t n : {4, 3, 4, 1}) EXPECT_EQ(V(h(ones({n, 2}))), V(pinned(ones({n, 2})))) << n;
  EXPECT_EQ(h.num_entries(), 3);
  EXPECT_NE(h.explain().find("shape() pinned the size"), std::string::npos) << h.explain();
  auto strict = to_static(pinned, {InputSpec({kDynamic, 2}, kFloat32, "x", {.strict = true})});
  EXPECT_NE(WhyRefused([&] { strict(ones({4, 2})); }).find("an InputSpec is strict"), std::string::npos);
}

TEST(StaticFunction, ConditionsOnSizesMayGoEitherWay) {
  auto f = [](const Tensor& x, const Tensor& y) {
    if (x.dim(0) == y.dim(0)) return x + y;
    return x + y.sum();
  };
  auto g = to_static(f, {InputSpec({"n"}), InputSpec({"m"})}, {.numerics = Numerics::kExact});
  for (auto [n, m] : {std::pair(3, 3), std::pair(5, 2), std::pair(4, 4), std::pair(2, 5)})
    EXPECT_EQ(V(g(ones({n}), ones({m}))), V(f(ones({n}), ones({m})))) << n << " " << m;
}

TEST(StaticFunction, OneNameWithTwoFactsIsAnError) {
  EXPECT_NE(WhyRefused([] { to_static([](const Tensor& x, const Tensor& y) { return x + y; }, {InputSpec({"n"}), InputSpec({dim("n", {.min = 1})})}); })
                .find("different facts"),
            std::string::npos);
}

TEST(StaticFunction, AnIndexThatIsDataIsChecked) {
  auto f = [](const Tensor& x, const Tensor& at) { return x[Int(at)] * 2; };
  auto g = to_static(f, {InputSpec({"n"}), InputSpec({}, kInt64)}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({1.0, 2.0, 3.0});
  for (int64_t i : {0, 2, -1, -3}) EXPECT_EQ(V(g(x, tensor(i))), V(f(x, tensor(i)))) << i;
  for (int64_t i : {3, -4}) EXPECT_NE(WhyRefused([&] { g(x, tensor(i)); }).find("out of range"), std::string::npos) << i;
}

TEST(StaticFunction, StateIsReadByReference) {
  Parameter w(tensor({1.0, 2.0}));
  auto g = to_static([&](const Tensor& x) { return x * w; }, {InputSpec({2})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({10.0, 10.0});
  NoGradGuard no_grad;
  EXPECT_EQ(V(g(x)), (std::vector<float>{10, 20}));
  w = tensor({3.0, 4.0});
  EXPECT_EQ(V(g(x)), (std::vector<float>{30, 40}));
  EXPECT_EQ(g.num_entries(), 1);
}

TEST(StaticFunction, WritesAreCommittedOnlyWhenTheCallSucceeds) {
  Buffer count(tensor({0.0}));
  auto g = to_static([&](const Tensor& x) {
    count = count + 1;
    return x + count;
  }, {InputSpec({"n"})}, {.numerics = Numerics::kExact});
  EXPECT_EQ(V(g(tensor({1.0}))), (std::vector<float>{2}));
  EXPECT_EQ(V(g(tensor({1.0}))), (std::vector<float>{3}));
  EXPECT_EQ(V(count), (std::vector<float>{2}));
  EXPECT_THROW(g(zeros({2, 2})), Error);
  EXPECT_EQ(V(count), (std::vector<float>{2}));
}

TEST(StaticFunction, RandomNumbersAreTheEagerOnes) {
  auto f = [](Generator& g, const Tensor& x) { return x + g.rand({4}); };
  Generator eager(11), captured(11);
  auto g = to_static([&](const Tensor& x) { return f(captured, x); }, {InputSpec({4})}, {.numerics = Numerics::kExact});
  const Tensor x = zeros({4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(V(f(eager, x)), V(g(x)));
  EXPECT_EQ(eager.offset(), captured.offset());
}

TEST(StaticFunction, ATrainingStepIsOneProgram) {
  auto make = [] { return Parameter(tensor({1.0, -2.0, 0.5})); };
  Parameter a = make(), b = make();
  auto step = [](Parameter& w, const Tensor& x) {
    Tensor loss = (tanh(w * x) - 0.25f).square().mean();
    loss.backward();
    {
      NoGradGuard no_grad;
      w = w - w.grad() * 0.5f;
    }
    w.clear_grad();
    return loss;
  };
  auto g = to_static([&](const Tensor& x) { return step(b, x); }, {InputSpec({3})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({0.3, -0.7, 1.1});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(V(step(a, x)), V(g(x))) << i;
  EXPECT_EQ(V(a), V(b));
  EXPECT_FALSE(b.grad().defined());
  EXPECT_EQ(g.num_entries(), 1);
}

// Whether a gradient is there before the call is part of the key; the one that is there is added to, whichever tensor it is.
TEST(StaticFunction, GradientsAccumulateFromCallToCall) {
  Parameter w(tensor({1.0, 2.0}));
  auto step = [&](const Tensor& x) {
    (w * x).sum().backward();
    return w.grad() * 2;
  };
  auto g = to_static(step, {InputSpec({2})}, {.numerics = Numerics::kExact, .verify = VerifyMode::kAlways});
  const Tensor x = tensor({3.0, 4.0});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(V(g(x)), (std::vector<float>{6, 8}));
    EXPECT_EQ(V(g(x)), (std::vector<float>{12, 16}));
    EXPECT_EQ(V(g(x)), (std::vector<float>{18, 24}));
    EXPECT_EQ(V(w.grad()), (std::vector<float>{9, 12}));
    w.clear_grad();
  }
  EXPECT_EQ(g.num_entries(), 2);
}

TEST(StaticFunction, AGradientClearedInTheFunctionIsCleared) {
  Parameter w(tensor({1.0}));
  auto g = to_static([&](const Tensor& x) {
    w.clear_grad();
    return x * w;
  }, {InputSpec({1})}, {.numerics = Numerics::kExact});
  NoGradGuard no_grad;
  g(tensor({3.0}));
  w.set_grad(tensor({7.0}));
  g(tensor({3.0}));
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(g.num_entries(), 1);
}

TEST(StaticFunction, BackwardThroughACompiledCall) {
  Parameter w(rand({5, 3}));
  auto f = [&](const Tensor& x) { return softmax(relu(matmul(x, w)), {.dim = 1}); };
  auto g = to_static(f, {InputSpec({"n", 5})}, {.numerics = Numerics::kExact});
  Tensor x = rand({4, 5}), seed = rand({4, 3});
  (f(x) * seed).sum().backward();
  const std::vector<float> want = V(w.grad());
  w.clear_grad();
  (g(x) * seed).sum().backward();
  EXPECT_EQ(V(w.grad()), want);
}

TEST(StaticFunction, GradientThroughABranch) {
  Parameter w(tensor({1.0, 2.0}));
  auto step = [&](const Tensor& x) {
    Tensor y = w * x;
    if (x.sum() > 0) y = y.square();
    else y = y * 3;
    y.sum().backward();
    Tensor g = w.grad();
    w.clear_grad();
    return g;
  };
  auto g = to_static(step, {InputSpec({2})}, {.numerics = Numerics::kExact});
  for (double s : {1.0, -1.0}) {
    const Tensor x = tensor({0.5 * s, 0.25 * s});
    EXPECT_EQ(V(step(x)), V(g(x))) << s;
  }
}

// backward() after the branch has ended, over values of before, inside and after it that depend on one another.
TEST(StaticFunction, GradientThroughABranchThatJoins) {
  Parameter w(tensor({1.0, 2.0}));
  auto f = [&](const Tensor& x) {
    Tensor a = w * x, b = a * a;
    if (x.sum() > 0) b = b * a + w;
    else b = b - a;
    return b * w;
  };
  auto g = to_static(f, {InputSpec({2})}, {.numerics = Numerics::kExact});
  for (double s : {1.0, -1.0}) {
    const Tensor x = tensor({0.5 * s, 0.25 * s});
    f(x).sum().backward();
    const std::vector<float> want = V(w.grad());
    w.clear_grad();
    g(x).sum().backward();
    const std::vector<float> got = V(w.grad());
    w.clear_grad();
    EXPECT_EQ(got, want) << s;
  }
}

TEST(StaticFunction, MismatchedShapesNameTheLine) {
  auto g = to_static([](const Tensor& x, const Tensor& y) { return matmul(x, y); }, {InputSpec({2, 3}), InputSpec({4, 5})});
  try {
    g(zeros({2, 3}), zeros({4, 5}));
    FAIL();
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("matmul(float32[2, 3], float32[4, 5])"), std::string::npos) << text;
    EXPECT_NE(text.find("static_function_test.cc"), std::string::npos) << text;
  }
}

TEST(StaticFunction, ThreadsShareOneProgram) {
  auto f = [](const Tensor& x) { return softmax(exp(x) * 0.5f, {.dim = 1}); };
  auto g = to_static(f, {InputSpec({kDynamic, 6})}, {.numerics = Numerics::kExact});
  std::vector<Tensor> inputs;
  std::vector<std::vector<float>> want;
  for (int64_t n : {1, 3, 8, 50}) {
    inputs.push_back(rand({n, 6}));
    want.push_back(V(f(inputs.back())));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 50; ++i) wrong += V(g(inputs[(t + i) % 4])) != want[(t + i) % 4];
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(g.num_entries(), 1);
}

TEST(StaticFunction, InsideAnotherCaptureItIsPartOfIt) {
  auto inner = to_static([](const Tensor& x) { return exp(x); }, {InputSpec({"n"})});
  auto outer = to_static([&](const Tensor& x) { return inner(x) + 1; }, {InputSpec({"n"})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({0.5, 1.5});
  EXPECT_EQ(V(outer(x)), V(exp(x) + 1));
}

}  // namespace
}  // namespace sinter
