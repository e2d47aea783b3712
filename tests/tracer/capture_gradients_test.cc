// Gradients inside captured functions: the same step eagerly and captured, several times, must leave the same parameters, gradients and
// results, bit for bit.
#include <gtest/gtest.h>

#include <functional>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/ops/math.h"
#include "sinter/tracer/static_function.h"

namespace sinter {
namespace {

std::vector<float> V(const Tensor& t) { return t.ToVector<float>(); }

std::string WhyRefused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

struct State {
  Parameter a{tensor({1.0, -2.0, 0.5})}, b{tensor({0.3, 0.7, -1.1})};
  Buffer seen{zeros({3})};
};

using Step = std::function<Tensor(State&, const Tensor&)>;

void ExpectSameTraining(const Step& step) {
  State eager, captured;
  auto g = to_static([&](const Tensor& x) { return step(captured, x); }, {InputSpec({3})}, {.numerics = Numerics::kExact});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = tensor({0.3 * (i + 1), -0.7, 1.1 - i});
    EXPECT_EQ(V(step(eager, x)), V(g(x))) << i;
    for (auto [e, c] : {std::pair(&eager.a, &captured.a), std::pair(&eager.b, &captured.b)}) {
      EXPECT_EQ(V(*e), V(*c)) << i;
      ASSERT_EQ(e->grad().defined(), c->grad().defined()) << i;
      if (e->grad().defined()) {
        EXPECT_EQ(V(e->grad()), V(c->grad())) << i;
      }
    }
    EXPECT_EQ(V(eager.seen), V(captured.seen)) << i;
  }
}

void Sgd(Parameter& w) {
  NoGradGuard no_grad;
  if (w.grad().defined()) w = w - w.grad() * 0.5f;
  w.clear_grad();
}

TEST(CaptureGradients, ATargetComputedWithoutGradients) {
  ExpectSameTraining([](State& s, const Tensor& x) {
    Tensor target;
    {
      NoGradGuard no_grad;
      target = tanh(s.a * x);
    }
    Tensor loss = (s.a * x - target).square().sum();
    loss.backward();
    Sgd(s.a);
    return loss;
  });
}

TEST(CaptureGradients, ABufferWrittenWithoutGradientsAndReadWithThem) {
  ExpectSameTraining([](State& s, const Tensor& x) {
    {
      NoGradGuard no_grad;
      s.seen = s.seen * 0.5f + s.a * x;
    }
    Tensor loss = (s.a * s.seen * x).sum();
    loss.backward();
    Sgd(s.a);
    return loss;
  });
}

TEST(CaptureGradients, TwoLossesAccumulate) {
  ExpectSameTraining([](State& s, const Tensor& x) {
    (s.a * x).sum().backward();
    Tensor loss = (s.a * s.b).square().sum();
    loss.backward();
    Sgd(s.a);
    return loss;  // b keeps its gradient and adds to it from call to call
  });
}

// The order in which contributions are added is the eager one, through branches too.
TEST(CaptureGradients, OrderOfAccumulation) {
  ExpectSameTraining([](State& s, const Tensor& x) {
    Tensor y = s.a * x, z = y * 1.1f + s.a * 0.3f;
    if (x.sum() > 0) {
      z = z * s.a + y * 0.7f;
      if (x.max() > 1) y = y * s.a + z * 1.3f;
      else z = z * y - s.a;
    } else {
      y = tanh(y) * s.a;
    }
    Tensor loss = (z * s.a + y * s.b).sum() + (z * y).sum();
    loss.backward();
    Sgd(s.a);
    return loss;
  });
}

TEST(CaptureGradients, SeveralResultsOfACompiledCall) {
  State eager, compiled;
  auto f = [](State& s, const Tensor& x) {
    Tensor y = s.a * x, z = tanh(y * s.a) * 0.3f + y;
    return std::pair<Tensor, Tensor>{y * z, z * 1.7f + y * 0.1f};
  };
  auto g = to_static([&](const Tensor& x) { return f(compiled, x); }, {InputSpec({3})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({0.3, -0.7, 1.1}), seed = tensor({0.9, 1.3, -0.2});
  auto [y, z] = f(eager, x);
  ((y * seed).sum() + z.sum()).backward();
  auto [v, w] = g(x);
  ((v * seed).sum() + w.sum()).backward();
  EXPECT_EQ(V(eager.a.grad()), V(compiled.a.grad()));
}

TEST(CaptureGradients, GradOfSeveralOutputs) {
  State eager, captured;
  auto f = [](State& s, const Tensor& x) {
    Tensor y = s.a * x, p = (y * y).sum(), q = (tanh(y) * s.a).sum();
    return grad({p, q}, {s.a})[0];
  };
  auto g = to_static([&](const Tensor& x) { return f(captured, x); }, {InputSpec({3})}, {.numerics = Numerics::kExact});
  const Tensor x = tensor({0.3, -0.7, 1.1});
  EXPECT_EQ(V(f(eager, x)), V(g(x)));
}

// Gradients of gradients of a compiled call, against those of the function itself.
TEST(CaptureGradients, HigherOrdersThroughACompiledCall) {
  State eager, compiled;
  auto f = [](State& s, const Tensor& x) { return (tanh(s.a * x) * s.b * x).sum(); };
  auto g = to_static([&](const Tensor& x) { return f(compiled, x); }, {InputSpec({3})}, {.numerics = Numerics::kExact});
  auto orders = [](State& s, const Tensor& y, const Tensor& x) {
    std::vector<std::vector<float>> r;
    Tensor first = grad({y}, {x}, {}, {.create_graph = true})[0];
    r.push_back(V(first));
    std::vector<Tensor> second = grad({first.square().sum()}, {x, s.a}, {}, {.create_graph = true});
    r.push_back(V(second[0]));
    r.push_back(V(second[1]));
    (second[0].sum() + second[1].square().sum()).backward();
    r.push_back(V(s.a.grad()));
    r.push_back(V(s.b.grad()));
    r.push_back(V(x.grad()));
    return r;
  };
  Tensor x = tensor({0.3, -0.7, 1.1}), z = x.clone();
  x.requires_grad_();
  z.requires_grad_();
  const auto want = orders(eager, f(eager, x), x), got = orders(compiled, g(z), z);
  for (size_t i = 0; i < want.size(); ++i)
    for (size_t k = 0; k < want[i].size(); ++k) EXPECT_NEAR(got[i][k], want[i][k], 1e-5 * (1 + std::abs(want[i][k]))) << i << " " << k;
}

TEST(CaptureGradients, AStepBetweenTwoLosses) {
  ExpectSameTraining([](State& s, const Tensor& x) {
    (s.a * x).square().sum().backward();
    Sgd(s.a);
    Tensor loss = (s.a * s.b * x).sum();
    loss.backward();
    Sgd(s.a);
    Sgd(s.b);
    return loss;
  });
}

TEST(CaptureGradients, ALossOfBeforeTheStepIsRefused) {
  State s;
  auto g = to_static([&](const Tensor& x) {
    Tensor first = (s.a * x).sum(), second = (s.a * s.a * x).sum();
    first.backward();
    Sgd(s.a);
    second.backward();
    return second;
  }, {InputSpec({3})});
  const std::string why = WhyRefused([&] { g(ones({3})); });
  EXPECT_NE(why.find("was written since"), std::string::npos) << why;
}

TEST(CaptureGradients, GradientsThatDifferByPathAreRefused) {
  State s;
  auto g = to_static([&](const Tensor& x) {
    if (x.sum() > 0) (s.a * x).sum().backward();
    else (s.b * x).sum().backward();
    return x;
  }, {InputSpec({3})});
  const std::string why = WhyRefused([&] { g(ones({3})); });
  EXPECT_NE(why.find("differ by path"), std::string::npos) << why;
}

TEST(CaptureGradients, ResultsComputedWithoutGradientsHaveNone) {
  State s;
  auto f = [&](const Tensor& x) {
    Tensor y;
    {
      NoGradGuard no_grad;
      y = s.a * x;
    }
    return s.b * x + y;
  };
  auto g = to_static(f, {InputSpec({3})}, {.numerics = Numerics::kExact});
  g(ones({3})).sum().backward();
  EXPECT_EQ(V(s.b.grad()), (std::vector<float>{1, 1, 1}));
  if (s.a.grad().defined()) {
    EXPECT_EQ(V(s.a.grad()), (std::vector<float>{0, 0, 0}));
  }
}

TEST(CaptureGradients, AnInputOverwrittenBeforeBackwardIsAnError) {
  State s;
  auto g = to_static([&](const Tensor& x) { return s.a * x; }, {InputSpec({3})});
  Tensor x = ones({3});
  Tensor y = g(x).sum();
  x.fill_(0);
  const std::string why = WhyRefused([&] { y.backward(); });
  EXPECT_NE(why.find("overwritten after the call"), std::string::npos) << why;
}

TEST(CaptureGradients, ArgumentsThatWantAGradientOfAnInnerBackward) {
  State s;
  auto g = to_static([&](const Tensor& x) {
    Tensor loss = (s.a * x).sum();
    loss.backward();
    s.a.clear_grad();
    return loss;
  }, {InputSpec({3})});
  g(ones({3}));
  Tensor x = ones({3});
  x.requires_grad_();
  const std::string why = WhyRefused([&] { g(x); });
  EXPECT_NE(why.find("collects gradients of parameters only"), std::string::npos) << why;
}

TEST(CaptureAliases, AnArgumentThatIsWrittenStateIsRefused) {
  State s;
  auto g = to_static([&](const Tensor& x) {
    s.seen = s.seen + 1;
    return x * 2;
  }, {InputSpec({3})});
  g(ones({3}));
  const std::string why = WhyRefused([&] { g(s.seen); });
  EXPECT_NE(why.find("shares memory with the state"), std::string::npos) << why;
}

}  // namespace
}  // namespace sinter
