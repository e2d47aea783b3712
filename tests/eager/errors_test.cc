#include <gtest/gtest.h>

#include <functional>

#include "sinter/eager/autograd.h"
#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/views.h"

namespace sinter {
namespace {

// Runs f, which must fail with these words.
void ExpectError(const std::function<void()>& f, std::initializer_list<const char*> words) {
  try {
    f();
  } catch (const Error& e) {
    for (const char* w : words)
      EXPECT_NE(std::string(e.what()).find(w), std::string::npos)
          << "'" << w << "' is missing in: " << e.what();
    return;
  }
  ADD_FAILURE() << "no error";
}

TEST(Errors, ShapesThatDontFit) {
  ExpectError(
      [] {
        ones({2, 3}) + ones({4});
      },
      {"add", "float32[2, 3]", "float32[4]", "broadcast", "errors_test.cc"});
  ExpectError([] { matmul(ones({2, 3}), ones({4, 5})); }, {"matmul", "float32[2, 3]", "float32[4, 5]"});
  ExpectError(
      [] {
        ones({2, 3}).reshape({4, 2});
      },
      {"reshape", "[2, 3]", "[4, 2]", "numbers of elements differ"});
  ExpectError([] { ones({2, 3}).sum(2); }, {"sum", "axis 2", "rank 2"});
  ExpectError([] { ones({2, 3})[2]; }, {"index 2", "out of range", "float32[2, 3]"});
  ExpectError([] { ones({2, 3}).squeeze(0); }, {"squeeze", "not of size 1"});
  ExpectError([] { ones({-1}); }, {"negative"});
  ExpectError([] { from_vector(std::vector<float>{1, 2, 3}, {2, 2}); }, {"3 values", "[2, 2]"});
  ExpectError([] { tensor({{1, 2}, {3}}); }, {"different lengths"});
}

TEST(Errors, UseOfUndefined) {
  Tensor nothing;
  ExpectError([&] { nothing.shape(); }, {"undefined", "assign it"});
  ExpectError([&] { ones({2}) + nothing; }, {"add", "operand 1", "undefined"});
}

TEST(Errors, HostReads) {
  ExpectError([] { ones({2}).item<float>(); }, {"item()", "one element", "float32[2]"});
  ExpectError(
      [] {
        if (ones({2}) > 0) FAIL();
      },
      {"condition", "one element", "any() or all()"});
  ExpectError([] { ones({2}).data<double>(); }, {"float64", "float32[2]", "to()"});
  ExpectError([] { ones({2, 3}).transpose().data<float>(); }, {"contiguous()"});
}

TEST(Errors, BackwardWithoutAGradient) {
  ExpectError([] { ones({1}).backward(); }, {"backward", "requires_grad_()"});
  Tensor x = ones({2}).requires_grad_();
  ExpectError([&] { (x * 2.0).backward(); }, {"more than one element", "seed"});
  ExpectError([&] { x.argmax().to(kFloat32).backward(); }, {"argmax", "errors_test.cc:", "no gradient"});
  Tensor y;
  {
    NoGradGuard off;
    y = (x * 2.0).sum();
  }
  ExpectError([&] { (y + 1.0).backward(); }, {"turned off at", "errors_test.cc:"});
  ExpectError([&] { x.detach().sum().backward(); }, {"detach()", "errors_test.cc:"});
  ExpectError([&] { x.sum().backward(ones({3})); }, {"seed", "float32[3]", "float32[]"});
  ExpectError([&] { grad({x.sum()}, {ones({2}).requires_grad_()}); },
              {"no output depends on input 0", "allow_unused"});
  ExpectError([&] { tensor({1, 2}).requires_grad_(); }, {"floating"});
}

TEST(Errors, SecondBackward) {
  Tensor x = ones({2}).requires_grad_();
  Tensor y = (x * x).sum();
  y.backward();
  ExpectError([&] { y.backward(); }, {"freed", "retain_graph"});
}

TEST(Errors, OverwrittenValues) {
  Tensor x = ones({2}).requires_grad_(), w = ones({2});
  Tensor y = x * w;
  w.add_(1);
  ExpectError([&] { y.sum().backward(); }, {"mul", "operand 1", "overwritten", "clone()"});
  EXPECT_FALSE(x.grad().defined());  // nothing was added
  Tensor z = x + w;                  // reads neither value
  w.add_(1);
  z.sum().backward();
  Tensor e = exp(x);
  {
    NoGradGuard off;
    e.mul_(2);
  }
  ExpectError([&] { e.sum().backward(); }, {"exp", "result 0", "overwritten"});
  Parameter p(ones({2}));
  Tensor q = p * p;
  p = ones({2});
  ExpectError([&] { q.sum().backward(); }, {"mul", "operand", "overwritten"});
  AnomalyGuard anomaly;
  Tensor v = ones({2}), s = (x * v).sum();
  v.add_(1);
  ExpectError([&] { s.backward(); }, {"ran at", "errors_test.cc:"});
}

TEST(Errors, InPlaceWrites) {
  Tensor x = ones({2}).requires_grad_();
  ExpectError([&] { x.add_(1); }, {"add_", "leaf", "NoGradGuard"});
  Tensor y = x * 2.0;
  Tensor view = y.slice(0, 0, 1);
  ExpectError([&] { y.add_(x); }, {"views", "clone()"});
  ExpectError([&] { view.add_(1); }, {"views", "clone()"});
  ExpectError([&] { ones({2}).add_(ones({3, 2})); }, {"add_", "float32[3, 2]", "float32[2]"});
  ExpectError([&] { tensor({1, 2}).add_(tensor({0.5, 0.5})); }, {"add_", "float32[2]", "int64[2]"});
  ExpectError([&] { Parameter(ones({2})).set_data(ones({3})); }, {"set_data", "float32[3]", "float32[2]"});
  float host[2] = {1, 2};
  ImplPtr mapped(new TensorImpl());
  mapped->storage = Storage::Borrow(host, sizeof host, nullptr, true);
  mapped->shape = {2};
  mapped->strides = {1};
  Tensor file(mapped);
  ExpectError([&] { file.add_(1); }, {"read-only", "clone()"});
  ExpectError([&] { file.mutable_data<float>(); }, {"read-only"});
  EXPECT_EQ((file + 1.0).ToVector<float>(), (std::vector<float>{2, 3}));
}

TEST(Errors, SizesAndMemoryOfTheCaller) {
  auto why = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  EXPECT_NE(why([] { from_vector(std::vector<float>{1, 2}, {-1, -2}); }).find("a size is negative"), std::string::npos);
  EXPECT_NE(why([] { from_blob(nullptr, {3}, kFloat32); }).find("the pointer is null"), std::string::npos);
  EXPECT_EQ(why([] { from_blob(nullptr, {0, 3}, kFloat32); }), "");
  EXPECT_NE(why([] { arange(0, 1e30, 1, kFloat32); }).find("more than a tensor can have"), std::string::npos);
  EXPECT_NE(why([] { arange(Int(-3)); }).find("can't be negative"), std::string::npos);
  EXPECT_NE(why([] { eye(Int(-1)); }).find("can't be negative"), std::string::npos);
  Tensor e = ones({1}).expand({3});
  EXPECT_NE(why([&] { e.copy_(from_vector(std::vector<float>{1, 2, 3})); }).find("one place in memory"), std::string::npos);
  EXPECT_NE(why([&] { e.add_(1.0); }).find("one place in memory"), std::string::npos);
  const Tensor b = ones({2}, kBool);
  EXPECT_NE(why([&] { -b; }).find("has no meaning on bool"), std::string::npos);
  EXPECT_NE(why([&] { b - b; }).find("has no meaning on bool"), std::string::npos);
}

}  // namespace
}  // namespace sinter
