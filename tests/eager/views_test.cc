#include <gtest/gtest.h>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/ops/views.h"

namespace sinter {
namespace {

using Floats = std::vector<float>;

Tensor Range(const Shape& shape) { return arange(Int(NumElements(shape))).to(kFloat32).reshape(shape); }
bool Shares(const Tensor& a, const Tensor& b) { return a.impl().storage == b.impl().storage; }

TEST(Views, ShareMemoryWhereTheyCan) {
  Tensor x = Range({2, 3, 4});
  EXPECT_TRUE(Shares(x, x.reshape({6, 4})));
  EXPECT_TRUE(Shares(x, x.transpose(0, 2)));
  EXPECT_TRUE(Shares(x, x.slice(1, 1, 3)));
  EXPECT_TRUE(Shares(x, x[1]));
  EXPECT_TRUE(Shares(x, x.unsqueeze(1).expand({2, 5, 3, 4})));
  EXPECT_FALSE(Shares(x, x.transpose(0, 2).reshape({24})));
  EXPECT_FALSE(Shares(x, x.clone()));
}

TEST(Views, Values) {
  Tensor x = Range({2, 3});
  EXPECT_EQ(x.transpose().ToVector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.transpose().reshape({6}).ToVector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.slice(1, -2).ToVector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(x.slice(1, 0, kToEnd, 2).ToVector<float>(), (Floats{0, 2, 3, 5}));
  EXPECT_EQ(x[-1].ToVector<float>(), (Floats{3, 4, 5}));
  EXPECT_EQ(x.select(1, 1).ToVector<float>(), (Floats{1, 4}));
  EXPECT_EQ(x.reshape({-1, 2}).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.flatten().shape(), (Shape{6}));
  EXPECT_EQ(Range({2, 3, 4}).flatten(1).shape(), (Shape{2, 12}));
  EXPECT_EQ(x.unsqueeze(-1).squeeze(2).shape(), (Shape{2, 3}));
  EXPECT_EQ(x.slice(1, 1).slice(0, 1).ToVector<float>(), (Floats{4, 5}));
  EXPECT_EQ(concat(std::vector<Tensor>{x, x.transpose().transpose()}, {.dim = 0}).shape(), (Shape{4, 3}));
}

TEST(Views, WritesAreSeenThroughViewsAndCounted) {
  Tensor x = Range({2, 3});
  Tensor row = x[1], column = x.select(1, 0);
  const uint64_t before = x.version();
  row.mul_(10);
  EXPECT_NE(x.version(), before);
  EXPECT_EQ(x.ToVector<float>(), (Floats{0, 1, 2, 30, 40, 50}));
  column.fill_(-1);
  EXPECT_EQ(x.ToVector<float>(), (Floats{-1, 1, 2, -1, 40, 50}));
  EXPECT_EQ(row.ToVector<float>(), (Floats{-1, 40, 50}));
  x.copy_(tensor({7, 8, 9}));  // converts and broadcasts
  EXPECT_EQ(x.ToVector<float>(), (Floats{7, 8, 9, 7, 8, 9}));
}

TEST(Views, OverlappingWritesReadFirst) {
  Tensor x = Range({5});
  x.slice(0, 1).copy_(x.slice(0, 0, 4));
  EXPECT_EQ(x.ToVector<float>(), (Floats{0, 0, 1, 2, 3}));
  Tensor y = Range({4});
  y.slice(0, 1).add_(y.slice(0, 0, 3));
  EXPECT_EQ(y.ToVector<float>(), (Floats{0, 1, 3, 5}));
  Tensor z = Range({2, 2});
  z.add_(z.transpose());
  EXPECT_EQ(z.ToVector<float>(), (Floats{0, 3, 3, 6}));
}

TEST(Views, VersionsAreUnique) {
  Tensor a = ones({2}), b = ones({2});
  EXPECT_NE(a.version(), b.version());
  const uint64_t v = a.version();
  Tensor c = a + b;
  EXPECT_EQ(a.version(), v);
  a.mutable_data<float>()[0] = 5;
  EXPECT_NE(a.version(), v);
}

TEST(Views, LargeTransposes) {
  Tensor x = Range({67, 3, 131});
  Tensor t = x.permute({2, 0, 1}).contiguous();
  const float* p = t.data<float>();
  const Floats v = x.ToVector<float>();
  for (int i = 0; i < 131; ++i)
    for (int j = 0; j < 67; ++j)
      for (int k = 0; k < 3; ++k) ASSERT_EQ(p[(i * 67 + j) * 3 + k], v[(j * 3 + k) * 131 + i]);
}

}  // namespace
}  // namespace sinter
