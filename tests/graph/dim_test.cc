#include "sinter/graph/dim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m", {.min = 1}), k = Dim::Symbol("k", {.min = 8, .max = 64, .multiple_of = 8});

TEST(Dim, EqualExpressionsAreEqualObjects) {
  EXPECT_EQ((n + 1) * (n - 1) + 1, n * n);
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ(n * 2 - n, n);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(FloorDiv(n * 4, 4), n);
  EXPECT_EQ(FloorDiv(n * 8 + 4, 4), n * 2 + 1);
  EXPECT_EQ(Mod(n * 4, 4), Dim(0));
  EXPECT_EQ(FloorDiv(n * m, m), n);
  EXPECT_EQ(FloorDiv(n + 2 - 3, 1) + 1, n);
  EXPECT_EQ(FloorDiv(FloorDiv(k, 8) * 8, 8) * 8, k);
  EXPECT_EQ(Mod(k, 8), Dim(0));
  EXPECT_EQ(Mod(k, 4), Dim(0));
  EXPECT_EQ(Max(n, 0), n);
  EXPECT_EQ(Min(n, n + 1), n);
  EXPECT_EQ(Max(Max(n, m), n), Max(m, n));
  EXPECT_NE(n, Dim::Symbol("n", {.min = 2}));
}

TEST(Dim, ExtremaHaveOneFormWhateverTheNesting) {
  const Dim same = Dim::Symbol("same"), other_same = Dim::Symbol("same", {.min = 2}), three = Dim::Symbol("three", {.min = 3, .max = 3});
  const std::vector<Dim> terms = {n, m, k, n + 1, n * m, same, other_same, m + 2, Dim(5), three, FloorDiv(n, 3), Dim(3)};
  std::mt19937 rng(5);
  auto fold = [&](std::vector<Dim> v, Dim (*f)(Dim, Dim)) {
    std::shuffle(v.begin(), v.end(), rng);
    while (v.size() > 1) {
      const size_t i = rng() % (v.size() - 1);
      v[i] = rng() % 2 ? f(v[i], v[i + 1]) : f(v[i + 1], v[i]);
      v.erase(v.begin() + static_cast<int64_t>(i) + 1);
    }
    return v[0];
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<Dim> some;
    for (size_t c = 2 + rng() % 5; c > 0; --c) some.push_back(terms[rng() % terms.size()]);
    for (Dim (*f)(Dim, Dim) : {&Min, &Max}) {
      const Dim one = fold(some, f), two = fold(some, f);
      ASSERT_EQ(one, two) << one.ToString() << " and " << two.ToString();
    }
  }
  EXPECT_EQ(Min(Min(n, m), k), Min(k, Min(m, n)));
  EXPECT_EQ(Min(n, Max(n, m)), n);
  EXPECT_EQ(Max(Min(m, n), n), n);
  EXPECT_EQ(Min(three, 3), Min(3, three));
  EXPECT_EQ(ProvablyEqual(three, 3), std::optional(true));
}

TEST(Dim, HostilePowersAndDivisions) {
  std::string power = "n";
  for (int i = 0; i < 5000; ++i) power += "*n";
  EXPECT_THROW(Dim::Parse(power, [](std::string_view) { return n; }), Error);
  const Dim a = Dim::Symbol("a"), b = Dim::Symbol("b");
  DimEnv env;
  env.Set(a, int64_t{1} << 40);
  env.Set(b, int64_t{1} << 23);
  EXPECT_THROW(FloorDiv(-(a * b), b - (int64_t{1} << 23) - 1).Eval(env), Error);
}

TEST(Dim, Decides) {
  EXPECT_EQ(ProvablyLe(n, n + 1), std::optional(true));
  EXPECT_EQ(ProvablyLe(m + 1, 1), std::optional(false));
  EXPECT_EQ(ProvablyLe(n, m), std::nullopt);
  EXPECT_EQ(ProvablyEqual(n * 2, n * 2 + 1), std::optional(false));
  EXPECT_EQ(ProvablyEqual(n * 2 + m * 4, 3), std::optional(false));
  EXPECT_EQ(ProvablyEqual(n, m), std::nullopt);
  EXPECT_TRUE(ProvablyDivisible(k * n, 8));
  EXPECT_FALSE(ProvablyDivisible(n, 2));
}

TEST(Dim, FactsAreChecked) {
  DimEnv env;
  EXPECT_THROW(env.Set(k, 12), Error);
  EXPECT_THROW(env.Set(k, 128), Error);
  env.Set(k, 16);
  EXPECT_EQ((k * 3 + 1).Eval(env), 49);
  EXPECT_THROW(n.Eval(env), Error);
  EXPECT_THROW(Dim::Symbol("1x"), Error);
  EXPECT_THROW(Dim::Symbol("x", {.min = 5, .max = 4}), Error);
  EXPECT_THROW(Dim::Symbol("x", {.min = 1, .max = 7, .multiple_of = 8}), Error);
  EXPECT_THROW(n.value(), Error);
  EXPECT_THROW(FloorDiv(n, 0), Error);
  EXPECT_THROW(Dim(INT64_MAX), Error);
  EXPECT_THROW(Dim(INT64_MAX / 4) * 8, Error);
}

Dim Symbols(std::string_view name) {
  if (name == "n") return n;
  if (name == "m") return m;
  if (name == "k") return k;
  throw Error(ErrorCode::kInvalidArgument, "unknown");
}

// A random expression and its value, computed beside it.
struct Both {
  Dim dim;
  int64_t value;
};
Both Random(std::mt19937& rng, int depth, const int64_t (&values)[3]) {
  if (depth == 0 || rng() % 5 == 0) {
    switch (rng() % 4) {
      case 0: return {n, values[0]};
      case 1: return {m, values[1]};
      case 2: return {k, values[2]};
      default: {
        const int64_t c = static_cast<int64_t>(rng() % 9) - 4;
        return {Dim(c), c};
      }
    }
  }
  Both a = Random(rng, depth - 1, values), b = Random(rng, depth - 1, values);
  const int64_t q = b.value == 0 ? 0 : a.value / b.value - (a.value % b.value != 0 && (a.value % b.value < 0) != (b.value < 0));
  switch (rng() % 7) {
    case 0: return {a.dim + b.dim, a.value + b.value};
    case 1: return {a.dim - b.dim, a.value - b.value};
    case 2: return {a.dim * b.dim, a.value * b.value};
    case 3: return {Min(a.dim, b.dim), std::min(a.value, b.value)};
    case 4: return {Max(a.dim, b.dim), std::max(a.value, b.value)};
    case 5: {
      const int64_t c = static_cast<int64_t>(rng() % 6) + 1;
      return {FloorDiv(a.dim, c), a.value / c - (a.value % c < 0)};
    }
    default:
      if (b.value == 0 || b.dim == Dim(0)) return a;
      return {Mod(a.dim, b.dim), a.value - b.value * q};
  }
}

TEST(Dim, RandomExpressionsKeepTheirValueAndText) {
  std::mt19937 rng(1);
  for (int i = 0; i < 3000; ++i) {
    const int64_t values[] = {static_cast<int64_t>(rng() % 20), static_cast<int64_t>(1 + rng() % 20), static_cast<int64_t>(8 * (1 + rng() % 8))};
    DimEnv env;
    env.Set(n, values[0]);
    env.Set(m, values[1]);
    env.Set(k, values[2]);
    Both e{};
    try {
      e = Random(rng, 4, values);
    } catch (const Error&) {
      continue;  // an overflow or a zero divisor somewhere inside
    }
    int64_t got = 0;
    try {
      got = e.dim.Eval(env);
    } catch (const Error&) {
      continue;
    }
    ASSERT_EQ(got, e.value) << e.dim.ToString();
    ASSERT_LE(e.dim.lower_bound(), e.value) << e.dim.ToString();
    ASSERT_GE(e.dim.upper_bound(), e.value) << e.dim.ToString();
    ASSERT_EQ(Dim::Parse(e.dim.ToString(), Symbols).Eval(env), e.value) << e.dim.ToString();
  }
}

TEST(Dim, HostileTextsCanOnlyFail) {
  for (const char* text : {"", "n +", "floordiv(n)", "floordiv(n, 0)", "((((", "99999999999999999999", "n n", "min()", "q", "n*", "floordiv(n,m,k)", "-", "n)"})
    EXPECT_THROW(Dim::Parse(text, Symbols), Error) << text;
  EXPECT_THROW(Dim::Parse(std::string(100000, '('), Symbols), Error);
  std::string power = "n";
  for (int i = 0; i < 200; ++i) power += "*(n+m+1)";
  EXPECT_THROW(Dim::Parse(power, Symbols), Error);
  EXPECT_EQ(Dim::Parse("floordiv(n, 2)*2 + mod(n, 2)", Symbols), n);
}

TEST(Dim, ThreadsAgree) {
  std::vector<Dim> made(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) made[static_cast<size_t>(t)] = FloorDiv(Dim::Symbol("thread") * i + 7, 3) + Dim::Symbol("other");
    });
  for (std::thread& t : threads) t.join();
  for (Dim d : made) EXPECT_EQ(d, made[0]);
}

}  // namespace
}  // namespace sinter
