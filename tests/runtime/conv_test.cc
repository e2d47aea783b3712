#include "sinter/runtime/kernels/conv.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "sinter/runtime/memory.h"
#include "tests/runtime/contraction_test_util.h"

namespace sinter::kernels {
namespace {

using testing_util::CanonicalSum;
using testing_util::ExpectSameBits;
using testing_util::OnEveryMachine;
using testing_util::RandomValues;

/// Operands of a convolution; the weight lies as [oc, c, kh, kw] or as [oc, kh, kw, c].
template <class T>
struct Problem {
  Conv2dShape s;
  int64_t inner, outer, x_pixel, g_pixel, positions, out_pixels;
  std::vector<T> x, w, g;
  ConvWeight<const T> weight;

  Problem(const Conv2dShape& shape, bool channels_last_weight, bool dense_pixels) : s(shape) {
    inner = s.c / s.groups, outer = s.oc / s.groups;
    // Pixels need not be dense.
    x_pixel = s.c + (dense_pixels ? 0 : 3), g_pixel = s.oc + (dense_pixels ? 0 : 1);
    positions = s.kh * s.kw;
    out_pixels = s.n * s.out_h() * s.out_w();
    x = RandomValues<T>(s.n * s.h * s.w * x_pixel, 1);
    w = RandomValues<T>(s.oc * inner * positions, 2);
    g = RandomValues<T>(out_pixels * g_pixel, 3);
    weight.data = w.data();
    weight.oc = inner * positions;
    weight.c = channels_last_weight ? 1 : positions;
    weight.kh = channels_last_weight ? s.kw * inner : s.kw;
    weight.kw = channels_last_weight ? inner : 1;
  }

  T X(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return h < 0 || h >= s.h || w < 0 || w >= s.w ? T(0) : x[((n * s.h + h) * s.w + w) * x_pixel + c];
  }
  T W(int64_t o, int64_t c, int64_t kh, int64_t kw) const {
    return w[o * weight.oc + c * weight.c + kh * weight.kh + kw * weight.kw];
  }
  T G(int64_t n, int64_t h, int64_t w, int64_t o) const {
    return h < 0 || h >= s.out_h() || w < 0 || w >= s.out_w()
               ? T(0)
               : g[((n * s.out_h() + h) * s.out_w() + w) * g_pixel + o];
  }

  std::vector<T> Forward() const {
    std::vector<T> y(out_pixels * g_pixel, T(-77));
    for (int64_t pixel = 0; pixel < out_pixels; ++pixel) {
      const int64_t n = pixel / s.out_w() / s.out_h(), i = pixel / s.out_w() % s.out_h(),
                    j = pixel % s.out_w();
      for (int64_t o = 0; o < s.oc; ++o) {
        y[pixel * g_pixel + o] = CanonicalSum<T>(positions * inner, [&](int64_t k, T& a, T& b) {
          const int64_t c = k % inner, kw = k / inner % s.kw, kh = k / inner / s.kw;
          a = X(n, i * s.stride_h - s.pad_top + kh * s.dilation_h,
                j * s.stride_w - s.pad_left + kw * s.dilation_w, o / outer * inner + c);
          b = W(o, c, kh, kw);
        });
      }
    }
    return y;
  }

  std::vector<T> BackwardData() const {
    std::vector<T> dx(s.n * s.h * s.w * x_pixel, T(-77));
    for (int64_t pixel = 0; pixel < s.n * s.h * s.w; ++pixel) {
      const int64_t n = pixel / s.w / s.h, h = pixel / s.w % s.h, w = pixel % s.w;
      for (int64_t c = 0; c < s.c; ++c) {
        dx[pixel * x_pixel + c] = CanonicalSum<T>(positions * outer, [&](int64_t k, T& a, T& b) {
          const int64_t o = c / inner * outer + k % outer, kw = k / outer % s.kw, kh = k / outer / s.kw;
          const int64_t i = h + s.pad_top - kh * s.dilation_h, j = w + s.pad_left - kw * s.dilation_w;
          const bool divides = i >= 0 && j >= 0 && i % s.stride_h == 0 && j % s.stride_w == 0;
          a = divides ? G(n, i / s.stride_h, j / s.stride_w, o) : T(0);
          b = W(o, c % inner, kh, kw);
        });
      }
    }
    return dx;
  }

  std::vector<T> BackwardWeight() const {
    std::vector<T> dw(w.size());
    for (int64_t o = 0; o < s.oc; ++o) {
      for (int64_t at = 0; at < inner * positions; ++at) {
        const int64_t c = at / positions, kh = at % positions / s.kw, kw = at % s.kw;
        dw[o * weight.oc + c * weight.c + kh * weight.kh + kw * weight.kw] =
            CanonicalSum<T>(out_pixels, [&](int64_t k, T& a, T& b) {
              const int64_t n = k / s.out_w() / s.out_h(), i = k / s.out_w() % s.out_h(), j = k % s.out_w();
              a = g[k * g_pixel + o];
              b = X(n, i * s.stride_h - s.pad_top + kh * s.dilation_h,
                    j * s.stride_w - s.pad_left + kw * s.dilation_w, o / outer * inner + c);
            });
      }
    }
    return dw;
  }
};

template <class T>
void CheckAll(const Conv2dShape& s) {
  SCOPED_TRACE(testing::Message() << "n " << s.n << " h " << s.h << " w " << s.w << " c " << s.c << " oc "
                                  << s.oc << " k " << s.kh << "x" << s.kw << " stride " << s.stride_h << ","
                                  << s.stride_w << " pad " << s.pad_top << "," << s.pad_left << ","
                                  << s.pad_bottom << "," << s.pad_right << " dilation " << s.dilation_h << ","
                                  << s.dilation_w << " groups " << s.groups);
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(testing::Message() << "form " << form);
    const Problem<T> p(s, form % 2 != 0, form / 2 != 0);
    const std::vector<T> y_expected = p.Forward(), dx_expected = p.BackwardData(),
                         dw_expected = p.BackwardWeight();
    OnEveryMachine([&] {
      std::vector<T> y(y_expected.size(), T(-77)), dx(dx_expected.size(), T(-77)), dw(dw_expected.size());
      Conv2dForwardArgs<T> forward{s, p.x.data(), p.x_pixel, p.weight, nullptr, y.data(), p.g_pixel, {}};
      Conv2dForward(forward);
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(y, y_expected));
      MemoryBlock packed(PackedConvWeightElements<T>(s) * sizeof(T));
      PackConvWeight(s, p.weight, packed.as<T>());
      forward.packed_w = packed.as<T>();
      forward.w = {};
      std::fill(y.begin(), y.end(), T(-77));
      Conv2dForward(forward);
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(y, y_expected));
      Conv2dBackwardData(
          Conv2dBackwardDataArgs<T>{s, p.g.data(), p.g_pixel, p.weight, dx.data(), p.x_pixel, {}});
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(dx, dx_expected));
      const ConvWeight<T> out{dw.data(), p.weight.oc, p.weight.c, p.weight.kh, p.weight.kw};
      Conv2dBackwardWeight(Conv2dBackwardWeightArgs<T>{s, p.x.data(), p.x_pixel, p.g.data(), p.g_pixel, out});
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(dw, dw_expected));
    });
  }
}

Conv2dShape Square(int64_t n, int64_t size, int64_t c, int64_t oc, int64_t kernel, int64_t stride,
                   int64_t pad, int64_t dilation = 1, int64_t groups = 1) {
  Conv2dShape s;
  s.n = n, s.h = s.w = size, s.c = c, s.oc = oc, s.kh = s.kw = kernel, s.groups = groups;
  s.stride_h = s.stride_w = stride, s.dilation_h = s.dilation_w = dilation;
  s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = pad;
  return s;
}

template <class T>
class ConvTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ConvTest, Types);

TYPED_TEST(ConvTest, Grid) {
  for (int64_t kernel : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t pad : {0, 1, 2}) {
        for (int64_t dilation : {1, 2}) {
          for (auto [c, oc] : {std::pair<int64_t, int64_t>{3, 5}, {13, 18}}) {
            CheckAll<TypeParam>(Square(2, 7, c, oc, kernel, stride, pad, dilation));
          }
        }
      }
    }
  }
}

TYPED_TEST(ConvTest, LongContraction) {
  CheckAll<TypeParam>(Square(1, 6, 40, 33, 3, 1, 1));   // Blocks end inside a pixel.
  CheckAll<TypeParam>(Square(1, 5, 300, 20, 1, 1, 0));  // Without a window.
  CheckAll<TypeParam>(Square(1, 5, 300, 20, 1, 2, 0));
  CheckAll<TypeParam>(Square(1, 4, 300, 3, 2, 1, 1));
  CheckAll<TypeParam>(Square(2, 17, 7, 4, 7, 2, 3));  // Short pixels, copied.
  CheckAll<TypeParam>(Square(3, 23, 3, 40, 7, 2, 3));
  CheckAll<TypeParam>(Square(1, 3, 5, 6, 9, 1, 4));  // Windows larger than the image, more than one block.
}

TYPED_TEST(ConvTest, UnequalAxes) {
  Conv2dShape s;
  s.n = 2, s.h = 9, s.w = 6, s.c = 14, s.oc = 19, s.kh = 3, s.kw = 2;
  s.stride_h = 2, s.stride_w = 1, s.pad_top = 2, s.pad_left = 0, s.pad_bottom = 1, s.pad_right = 3;
  s.dilation_h = 1, s.dilation_w = 3;
  CheckAll<TypeParam>(s);
  s.stride_w = 3, s.dilation_h = 2, s.c = 2, s.oc = 4, s.groups = 2;
  CheckAll<TypeParam>(s);
}

TYPED_TEST(ConvTest, Groups) {
  for (int64_t groups : {2, 4}) {
    CheckAll<TypeParam>(Square(1, 6, 8, 12, 3, 1, 1, 1, groups));
    CheckAll<TypeParam>(Square(2, 6, 64, 68, 3, 2, 1, 1, groups));
    CheckAll<TypeParam>(Square(2, 5, 8, 12, 1, 1, 0, 1, groups));
  }
  CheckAll<TypeParam>(Square(1, 6, 6, 12, 3, 1, 1, 1, 6));  // Two outputs for each channel.
}

TYPED_TEST(ConvTest, Depthwise) {
  for (int64_t channels : {2, 7, 8, 37, 64, 100}) {
    CheckAll<TypeParam>(Square(2, 7, channels, channels, 3, 1, 1, 1, channels));
    CheckAll<TypeParam>(Square(1, 9, channels, channels, 5, 2, 2, 2, channels));
    CheckAll<TypeParam>(Square(2, 5, channels, channels, 1, 1, 0, 1, channels));
  }
  CheckAll<TypeParam>(Square(1, 18, 9, 9, 17, 1, 3, 1, 9));  // More than one block of kernel positions.
}

TYPED_TEST(ConvTest, LargeEnoughForManyTasks) {
  CheckAll<TypeParam>(Square(2, 20, 32, 48, 3, 1, 1));
  CheckAll<TypeParam>(Square(1, 14, 16, 120, 3, 1, 1));  // More output channels than a block of rows.
}

TYPED_TEST(ConvTest, EmptyAndSmallSizes) {
  CheckAll<TypeParam>(Square(0, 5, 3, 4, 3, 1, 1));
  CheckAll<TypeParam>(Square(1, 0, 3, 4, 3, 1, 2));  // An output of padding alone.
  CheckAll<TypeParam>(Square(1, 2, 3, 4, 3, 1, 0));  // No output pixel: the weight's gradient is 0.
  CheckAll<TypeParam>(Square(1, 2, 4, 4, 3, 1, 0, 1, 4));
  CheckAll<TypeParam>(Square(1, 5, 0, 4, 3, 1, 1));
  CheckAll<TypeParam>(Square(1, 5, 3, 0, 3, 1, 1));
  CheckAll<TypeParam>(Square(1, 1, 1, 1, 1, 1, 0));
  CheckAll<TypeParam>(Square(1, 1, 1, 1, 3, 1, 1));
}

TYPED_TEST(ConvTest, EpilogueSeesEachFinalElementOnce) {
  using T = TypeParam;
  for (const Conv2dShape& s : {Square(2, 9, 16, 40, 3, 1, 1), Square(2, 9, 8, 12, 3, 1, 1, 1, 4),
                               Square(1, 9, 20, 20, 3, 1, 1, 1, 20), Square(2, 9, 16, 40, 1, 1, 0, 1, 2)}) {
    const Problem<T> p(s, false, false);
    const std::vector<T> expected = p.Forward();
    OnEveryMachine([&] {
      std::vector<T> y(expected.size(), T(-77));
      struct Context {
        const Problem<T>* p;
        std::vector<T>* y;
        const std::vector<T>* expected;
        std::vector<std::atomic<int>> seen;
        std::atomic<bool> wrong{false};
      } context{&p, &y, &expected, std::vector<std::atomic<int>>(y.size()), {}};
      Conv2dForwardArgs<T> args{s, p.x.data(), p.x_pixel, p.weight, nullptr, y.data(), p.g_pixel, {}};
      args.epilogue.context = &context;
      args.epilogue.fn = [](void* opaque, int64_t row0, int64_t rows, int64_t column0, int64_t columns) {
        auto& x = *static_cast<Context*>(opaque);
        for (int64_t i = row0; i < row0 + rows; ++i) {
          for (int64_t j = column0; j < column0 + columns; ++j) {
            const int64_t at = i * x.p->g_pixel + j;
            if (j >= x.p->s.oc || (*x.y)[at] != (*x.expected)[at]) x.wrong = true;
            x.seen[at].fetch_add(1);
          }
        }
      };
      Conv2dForward(args);
      EXPECT_FALSE(context.wrong);
      for (int64_t at = 0; at < p.out_pixels * p.g_pixel; ++at) {
        ASSERT_EQ(context.seen[at].load(), at % p.g_pixel < s.oc ? 1 : 0);
      }
    });
  }
}

}  // namespace
}  // namespace sinter::kernels
