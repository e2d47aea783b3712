#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/graph/error.h"
#include "sinter/runtime/half.h"
#include "sinter/tests/sim_cuda/sim_device.h"

// The simulated device itself, on sources written by hand, and the functions that emitted kernels call.
namespace sinter::sim_cuda {
namespace {

constexpr char kSignature[] =
    "extern \"C\" __global__ void sinter_kernel(void* const* buffers, const long long* sizes, long long begin, long long end, "
    "char* scratch, long long scratch_stride) ";

// Runs `body` with buffers x (input) and y (output) of ints.
std::vector<int> RunInts(const std::string& body, const Grid& grid, std::vector<int> x, size_t outputs) {
  const HostKernel kernel =
      HostKernelOf(Announce(std::string(kSignature) + "{ const int* x = (const int*)buffers[0]; int* y = (int*)buffers[1]; " + body + " }"));
  std::vector<int> y(outputs, -1);
  void* buffers[] = {x.data(), y.data()};
  Launch(kernel, grid, buffers, nullptr, 0, 0, nullptr, 0);
  return y;
}

std::vector<int> Numbers(int n) {
  std::vector<int> x(static_cast<size_t>(n));
  std::iota(x.begin(), x.end(), 100);
  return x;
}

TEST(SimCuda, IndicesCoverTheGrid) {
  const auto y = RunInts("y[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x * 1000 + threadIdx.x;", {3, 40, 7}, {0}, 120);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 3000 + i % 40);
}

// Every thread publishes a value and reads its neighbour's.
std::string Neighbour(const char* barrier) {
  return std::string("__shared__ int s[128]; const int t = threadIdx.x; s[t] = 0; __syncthreads(); s[t] = x[t]; ") + barrier +
         " y[t] = s[(t + 1) % blockDim.x];";
}

TEST(SimCuda, FindsARaceByTheOrder) {
  const std::vector<int> x = Numbers(128);
  EXPECT_NE(RunInts(Neighbour(""), {1, 128, 1}, x, 128), RunInts(Neighbour(""), {1, 128, 2}, x, 128));
  // The same seed gives the same order: a race that was found can be looked at.
  EXPECT_EQ(RunInts(Neighbour(""), {1, 128, 1}, x, 128), RunInts(Neighbour(""), {1, 128, 1}, x, 128));
}

TEST(SimCuda, ABarrierEndsTheRace) {
  const std::vector<int> x = Numbers(128);
  std::vector<int> want(128);
  for (size_t i = 0; i < 128; ++i) want[i] = x[(i + 1) % 128];
  for (unsigned seed = 1; seed < 6; ++seed) EXPECT_EQ(RunInts(Neighbour("__syncthreads();"), {1, 128, seed}, x, 128), want);
}

TEST(SimCuda, BarriersInLoopsReduceATree) {
  const std::string tree =
      "__shared__ int s[256]; const int t = threadIdx.x; s[t] = x[t]; __syncthreads();"
      "for (int h = 128; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); } if (t == 0) y[blockIdx.x] = s[0];";
  const std::vector<int> x = Numbers(256);
  const int sum = std::accumulate(x.begin(), x.end(), 0);
  for (unsigned seed = 1; seed < 4; ++seed) EXPECT_EQ(RunInts(tree, {2, 256, seed}, x, 2), std::vector<int>({sum, sum}));
}

TEST(SimCuda, Shuffles) {
  const std::vector<int> x = Numbers(96);
  const auto run = [&](const char* call) { return RunInts(std::string("y[threadIdx.x] = ") + call + ";", {1, 96, 3}, x, 96); };
  const auto down = run("__shfl_down_sync(0xffffffffu, x[threadIdx.x], 3)"), up = run("__shfl_up_sync(0xffffffffu, x[threadIdx.x], 3)"),
             flip = run("__shfl_xor_sync(0xffffffffu, x[threadIdx.x], 5)"), one = run("__shfl_sync(0xffffffffu, x[threadIdx.x], 7)");
  for (size_t i = 0; i < 96; ++i) {
    const size_t lane = i % 32, warp = i - lane;
    EXPECT_EQ(down[i], x[lane + 3 < 32 ? i + 3 : i]);
    EXPECT_EQ(up[i], x[lane >= 3 ? i - 3 : i]);
    EXPECT_EQ(flip[i], x[warp + (lane ^ 5)]);
    EXPECT_EQ(one[i], x[warp + 7]);
  }
}

TEST(SimCuda, ShufflesOfDoublesSumAWarp) {
  const std::string sum =
      "double v = x[threadIdx.x] * 0.5; for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d); y[threadIdx.x] = (int)v;";
  const std::vector<int> x = Numbers(32);
  EXPECT_EQ(RunInts(sum, {1, 32, 1}, x, 32), std::vector<int>(32, std::accumulate(x.begin(), x.end(), 0) / 2));
}

TEST(SimCuda, ABarrierThatSomeSkipIsAnError) {
  EXPECT_THROW(RunInts("if (threadIdx.x < 5) __syncthreads(); y[0] = x[0];", {1, 64, 1}, {1}, 1), Error);
  EXPECT_THROW(RunInts("if (threadIdx.x == 5) __syncthreads(); else __syncwarp(); y[0] = x[0];", {1, 64, 1}, {1}, 1), Error);
}

TEST(SimCuda, FaultsOfTheSourceAreErrors) { EXPECT_THROW(RunInts("undeclared = 1;", {1, 1, 1}, {1}, 1), Error); }

// f(in[i]) for all i with the emitter's helper functions.
template <class Out, class In>
std::vector<Out> Apply(const std::string& call, const std::string& in_type, const std::string& out_type, const std::vector<In>& in) {
  const std::string text =
      codegen::cuda::kPrelude + std::string(kSignature) + "{ const " + in_type + "* x = (const " + in_type + "*)buffers[0]; " + out_type + "* y = (" +
      out_type + "*)buffers[1]; for (i64 i = begin + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x) y[i] = " + call +
      "; }";
  std::vector<Out> out(in.size());
  void* buffers[] = {const_cast<In*>(in.data()), out.data()};
  Launch(HostKernelOf(Announce(text)), {1, 32, 1}, buffers, nullptr, 0, static_cast<long long>(in.size()), nullptr, 0);
  return out;
}

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(Prelude, EveryHalfBecomesItsFloat) {
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  const auto half = Apply<float>("s_h2f(x[i])", "u16", "float", all), bfloat = Apply<float>("s_bf2f(x[i])", "u16", "float", all);
  for (size_t i = 0; i < all.size(); ++i) {
    const float h = HalfToFloat(all[i]), b = BFloat16ToFloat(all[i]);
    // Which NaN is unspecified inside expressions.
    ASSERT_TRUE(std::isnan(h) ? std::isnan(half[i]) : Bits(half[i]) == Bits(h)) << i;
    ASSERT_TRUE(std::isnan(b) ? std::isnan(bfloat[i]) : Bits(bfloat[i]) == Bits(b)) << i;
  }
}

TEST(Prelude, FloatsRoundToHalfs) {
  std::vector<float> x;
  std::mt19937 rng(5);
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += 1021) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(b)));
  // Every half, what lies half way to the next, and the neighbours of both.
  for (uint32_t h = 0; h < 65536; ++h)
    for (uint32_t upper : {Bits(HalfToFloat(static_cast<uint16_t>(h))), h << 16})
      for (uint32_t middle : {0u, 0x1000u, 0x8000u})
        for (uint32_t d : {~0u, 0u, 1u}) x.push_back(std::bit_cast<float>(upper + middle + d));
  // Half way between subnormal halves.
  for (int m = 0; m < 2048; ++m)
    for (float direction : {-INFINITY, INFINITY}) {
      const float middle = std::ldexp(static_cast<float>(m) + 0.5f, -24);
      for (float v : {middle, std::nextafter(middle, direction)}) x.push_back(v), x.push_back(-v);
    }
  for (int i = 0; i < 1000000; ++i) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
  const auto half = Apply<uint16_t>("s_f2h(x[i])", "float", "u16", x), bfloat = Apply<uint16_t>("s_f2bf(x[i])", "float", "u16", x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(half[i], FloatToHalf(x[i])) << std::hex << Bits(x[i]);
    ASSERT_EQ(bfloat[i], FloatToBFloat16(x[i])) << std::hex << Bits(x[i]);
  }
}

// A double goes to a half in one rounding, though through a float. The reference: of the two halves around it the nearer, the even one
// half way.
TEST(Prelude, DoublesRoundOnceToHalfs) {
  std::vector<double> x;
  std::vector<uint16_t> want;
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const double low = HalfToFloat(static_cast<uint16_t>(h)), high = HalfToFloat(static_cast<uint16_t>(h + 1)), middle = (low + high) / 2;
    for (double v : {low, std::nextafter(low, high), std::nextafter(middle, 0), middle, std::nextafter(middle, high), std::nextafter(high, 0)}) {
      const uint32_t rounded = v < middle ? h : v > middle ? h + 1 : h + (h & 1);
      x.push_back(v), want.push_back(static_cast<uint16_t>(rounded));
      x.push_back(-v), want.push_back(static_cast<uint16_t>(rounded | 0x8000));
    }
  }
  EXPECT_EQ(Apply<uint16_t>("s_f2h(s_odd(x[i]))", "double", "u16", x), want);
}

}  // namespace
}  // namespace sinter::sim_cuda
