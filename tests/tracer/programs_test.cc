// Whole programs whose compilation once went wrong: many operands, layouts that are not row-major, folding.
#include <gtest/gtest.h>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/views.h"
#include "sinter/tracer/difference.h"
#include "sinter/tracer/static_function.h"

namespace sinter {
namespace {

template <class F>
void ExpectEqual(F f, const Tensor& x, Numerics numerics = Numerics::kExact) {
  NoGradGuard no_grad;
  auto g = to_static(f, {InputSpec::Of(x)}, {.numerics = numerics});
  EXPECT_EQ(DifferenceOf(f(x), g(x), numerics, 1e-4), "");
}

TEST(Programs, SumsAndConcatsOfManyTensors) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 150; ++i) parts.push_back(rand({4}));
  ExpectEqual([&](const Tensor& x) {
    Tensor y = x;
    for (const Tensor& p : parts) y = y + p;
    return y;
  }, rand({4}));
  ExpectEqual([&](const Tensor& x) {
    std::vector<Tensor> all = parts;
    all.push_back(x);
    return concat(all, {.dim = 0}) * 2;
  }, rand({4}));
}

TEST(Programs, ConvolutionsOfConstantsAreFoldedInTheRightOrder) {
  const std::vector<float> image = rand({1, 3, 5, 4}).ToVector<float>(), weight = rand({2, 3, 2, 2}).ToVector<float>();
  ExpectEqual([&](const Tensor& x) {
    Tensor i = from_vector(image, {1, 3, 5, 4}), w = from_vector(weight, {2, 3, 2, 2});
    return conv2d(i, w, {}) + x;
  }, rand({1, 2, 4, 3}));
}

TEST(Programs, ABiasOfPositionsIsNoBiasOfChannels) {
  const Tensor w = rand({4, 3, 1, 1}), rows = rand({4}), columns = rand({4});
  const Tensor scale = rand({4}), shift = rand({4}), mean = rand({4}), variance = rand({4}) + 0.5f;
  for (int kind = 0; kind < 3; ++kind)
    ExpectEqual([&](const Tensor& x) {
      Tensor y = conv2d(x, w, {});
      y = kind == 0 ? y + rows.reshape({4, 1}) : kind == 1 ? y + columns.reshape({4}) : y + rows.reshape({4, 1, 1});
      return batch_norm(std::vector<Tensor>{y, scale, shift, mean, variance}, {});
    }, rand({2, 3, 4, 4}), Numerics::kDefault);
}

TEST(Programs, BytesSaturate) {
  const Tensor x = from_vector(std::vector<float>{1.9f, -1.9f, 300, -300, NAN, INFINITY, -INFINITY, 127.9f});
  const Tensor y = x.to(kInt8), z = x.to(kUInt8);
  EXPECT_EQ(y.ToVector<int64_t>(), (std::vector<int64_t>{1, -1, 127, -128, 0, 127, -128, 127}));
  EXPECT_EQ(z.ToVector<int64_t>(), (std::vector<int64_t>{1, 0, 255, 0, 0, 255, 0, 127}));
  ExpectEqual([](const Tensor& v) { return (v * 2).to(kInt8); }, x);
  ExpectEqual([](const Tensor& v) { return (v * 2).to(kUInt8); }, x);
}

TEST(Programs, BatchNormOfBatchNorm) {
  const Tensor w = rand({4, 3, 1, 1});
  const Tensor scale = rand({4}), shift = rand({4}), mean = rand({4}), variance = rand({4}) + 0.5f;
  ExpectEqual([&](const Tensor& x) {
    Tensor y = batch_norm(std::vector<Tensor>{conv2d(x, w, {}), scale, shift, mean, variance}, {});
    return batch_norm(std::vector<Tensor>{y, shift, scale, mean, variance}, {});
  }, rand({2, 3, 4, 4}), Numerics::kDefault);
}

}  // namespace
}  // namespace sinter
