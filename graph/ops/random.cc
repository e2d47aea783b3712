#include "sinter/graph/ops/random.h"

#include <array>
#include <cmath>

#include "sinter/graph/ops/basic.h"
#include "sinter/graph/ops/math.h"

namespace sinter::ops {
namespace {

constexpr int64_t kLow32 = 0xffffffff;
constexpr uint32_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57, kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

// The first two of the four words of Philox 4x32-10 for counter {c, 0} and key seed; each an i64 in [0, 2^32).
std::array<Expr, 2> Philox(const Expr& seed, const Expr& counter) {
  const Expr mask = I64(kLow32);
  auto high = [](const Expr& x) { return num::ShiftRightLogical(x, 32); };
  Expr x0 = counter & mask, x1 = high(counter), x2 = I64(0), x3 = I64(0);
  Expr k0 = seed & mask, k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    Expr p0 = x0 * I64(kMul0), p1 = x2 * I64(kMul1);
    Expr y0 = high(p1) ^ x1 ^ k0, y2 = high(p0) ^ x3 ^ k1;
    x1 = p1 & mask;
    x3 = p0 & mask;
    x0 = y0;
    x2 = y2;
    k0 = (k0 + I64(kWeyl0)) & mask;
    k1 = (k1 + I64(kWeyl1)) & mask;
  }
  return {x0, x1};
}

Expr Draw(ElementCtx& c, bool open) {
  Expr seed = c.In(0, {I64(0)}), offset = c.In(0, {I64(1)});
  Expr flat = I64(0);
  for (size_t i = 0; i < c.at.size(); ++i) flat = flat * Expr::Size(c.out[0].shape[i]) + c.at[i];
  auto [w0, w1] = Philox(seed, offset + flat);
  const DType t = ComputeType(c.out[0].dtype);
  // `open`: shifted by half a step, so that 0 does not occur.
  if (t == kFloat64) {
    Expr bits = num::ShiftLeft(num::ShiftRightLogical(w0, 5), 26) | num::ShiftRightLogical(w1, 6);
    Expr x = Expr::Convert(bits, kFloat64);
    return (open ? x + 0.5 : x) * 0x1p-53;
  }
  // Only as many bits as the stored type holds, so that no draw is rounded up to 1.
  const DType stored = c.out[0].dtype;
  if (!open && stored == kFloat16) return Expr::Convert(num::ShiftRightLogical(w0, 21), kFloat32) * 0x1p-11;
  if (!open && stored == kBFloat16) return Expr::Convert(num::ShiftRightLogical(w0, 24), kFloat32) * 0x1p-8;
  Expr x = Expr::Convert(num::ShiftRightLogical(w0, 8), kFloat32);
  return (open ? x * 0x1p-24 + 0x1p-25 : x * 0x1p-24);
}

// Independent scalar Philox for the tests.
std::array<uint32_t, 2> PhiloxRef(uint64_t seed, uint64_t counter) {
  uint32_t x[4] = {uint32_t(counter), uint32_t(counter >> 32), 0, 0}, k[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{kMul0} * x[0], b = uint64_t{kMul1} * x[2];
    const uint32_t y[4] = {uint32_t(b >> 32) ^ x[1] ^ k[0], uint32_t(b), uint32_t(a >> 32) ^ x[3] ^ k[1], uint32_t(a)};
    std::copy(y, y + 4, x);
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return {x[0], x[1]};
}

}  // namespace

Expr RandomUniform::Element(ElementCtx& c) { return Draw(c, false); }

void RandomUniform::Samples(SampleSink& s) {
  s.Case({{{2}, 0, 1000, kInt64}}, MakeAttrs(Attrs{{3, 5}, kFloat32})).Case({{{2}, 0, 1000, kInt64}}, MakeAttrs(Attrs{{0}, kFloat32}));
  s.MaxUlp(0).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    Shape shape;
    for (Dim d : attrs->As<Attrs>().shape) shape.push_back(d.value());
    RefTensor r = RefTensor::Zeros(shape);
    for (size_t i = 0; i < r.data.size(); ++i)
      r.data[i] = (PhiloxRef(static_cast<uint64_t>(in[0].data[0]), static_cast<uint64_t>(in[0].data[1]) + i)[0] >> 8) * 0x1p-24;
    return std::vector{r};
  });
}

Expr RandomNormal::Element(ElementCtx& c) {
  using math_internal::Poly;
  Expr u = Draw(c, true);
  Expr x = u * 2.0 - 1.0;
  Expr w = -log((1.0 - x) * (1.0 + x));
  Expr near = Poly(w - 2.5, 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
                   3.43273939e-07, 2.81022636e-08);
  Expr far = Poly(num::Sqrt(w) - 3.0, 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
                  0.000100950558, -0.000200214257);
  return num::Select(w < 5.0, near, far) * x * 1.4142135623730951;
}

void RandomNormal::Samples(SampleSink& s) {
  s.Case({{{2}, 0, 1000, kInt64}}, MakeAttrs(Attrs{{4, 8}, kFloat32}));
  // Checked by its inverse: the distribution function of the draw is the uniform number behind it.
  s.MaxUlp(64).Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    Shape shape;
    for (Dim d : attrs->As<Attrs>().shape) shape.push_back(d.value());
    RefTensor r = RefTensor::Zeros(shape);
    for (size_t i = 0; i < r.data.size(); ++i) {
      const uint32_t w = PhiloxRef(static_cast<uint64_t>(in[0].data[0]), static_cast<uint64_t>(in[0].data[1]) + i)[0];
      const double u = (w >> 8) * 0x1p-24 + 0x1p-25;
      double low = -10, high = 10;
      for (int step = 0; step < 200; ++step) {
        const double middle = 0.5 * (low + high);
        (0.5 * std::erfc(-middle * std::sqrt(0.5)) < u ? low : high) = middle;
      }
      r.data[i] = 0.5 * (low + high);
    }
    return std::vector{r};
  });
}

void Dropout::Decompose(DecomposeCtx& c) {
  const double p = c.Attrs<Attrs>().p;
  const Var& x = c.in[0];
  Var keep = greater_equal(c.in[1], ScalarLike(c.in[1], p));
  // p = 1 keeps nothing (draws are below 1), so the scale doesn't matter there.
  c.out = {where(keep, mul(x, ScalarLike(x, p < 1 ? 1 / (1 - p) : 1)), ScalarLike(x, 0))};
}

void Dropout::Samples(SampleSink& s) {
  s.Case({{{3, 5}}, {{3, 5}, 0, 1}}, MakeAttrs(Attrs{0.3})).Case({{{0, 5}}, {{0, 5}, 0, 1}}, MakeAttrs(Attrs{0.5})).MaxUlp(1.5);
  s.Reference([](std::span<const RefTensor> in, const AttrPtr& attrs) {
    RefTensor r = in[0];
    const double p = attrs->As<Attrs>().p;
    for (size_t i = 0; i < r.data.size(); ++i) r.data[i] = in[1].data[i] >= p ? r.data[i] / (1 - p) : 0;
    return std::vector{r};
  });
}

}  // namespace sinter::ops
