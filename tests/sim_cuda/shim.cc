#include "sinter/tests/sim_cuda/shim.h"

namespace sinter::sim_cuda {

const char kShim[] = R"shim(#include <math.h>
struct sinter_sim_index_t { unsigned x = 0, y = 0, z = 0; };
struct sinter_sim_state_t {
  sinter_sim_index_t thread, block, block_dim, grid_dim;
  void (*wait)(unsigned) = nullptr;
  unsigned long long* (*exchange)() = nullptr;
};
static thread_local sinter_sim_state_t sinter_sim_now;
extern "C" void* sinter_sim_state() { return &sinter_sim_now; }
#define threadIdx sinter_sim_now.thread
#define blockIdx sinter_sim_now.block
#define blockDim sinter_sim_now.block_dim
#define gridDim sinter_sim_now.grid_dim
#define __global__
#define __device__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static thread_local
static inline void __syncthreads() { sinter_sim_now.wait(0); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { sinter_sim_now.wait(mask); }
template <class To, class From> static inline To sinter_sim_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  return __builtin_bit_cast(To, x);
}
static inline float __int_as_float(int x) { return sinter_sim_bits<float>(x); }
static inline int __float_as_int(float x) { return sinter_sim_bits<int>(x); }
static inline double __longlong_as_double(long long x) { return sinter_sim_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return sinter_sim_bits<long long>(x); }
template <class T> static inline T sinter_sim_shuffle(unsigned mask, T x, unsigned from) {
  static_assert(sizeof(T) <= 8, "a lane's slot");
  unsigned long long* slots = sinter_sim_now.exchange();
  __builtin_memcpy(&slots[threadIdx.x % 32], &x, sizeof(T));
  sinter_sim_now.wait(mask);
  T got;
  __builtin_memcpy(&got, &slots[from % 32], sizeof(T));
  sinter_sim_now.wait(mask);
  return got;
}
template <class T> static inline T __shfl_sync(unsigned mask, T x, int lane) { return sinter_sim_shuffle(mask, x, (unsigned)lane); }
template <class T> static inline T __shfl_xor_sync(unsigned mask, T x, int bits) { return sinter_sim_shuffle(mask, x, threadIdx.x % 32 ^ (unsigned)bits); }
template <class T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return sinter_sim_shuffle(mask, x, lane < by ? lane : lane - by);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return sinter_sim_shuffle(mask, x, lane + by > 31 ? lane : lane + by);
}
)shim";

}  // namespace sinter::sim_cuda
