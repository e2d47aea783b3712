#include "sinter/codegen/cuda/prelude.h"

namespace sinter::codegen::cuda {

// Semantics as in graph/expr.h. Half types are bits: conversions are exact integer code, the same on every device.
const char kPrelude[] = R"cuda(typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

__device__ __forceinline__ float s_canon(float x) { return x != x ? __int_as_float(0x7fc00000) : x; }
__device__ __forceinline__ double s_canon(double x) { return x != x ? __longlong_as_double(0x7ff8000000000000ll) : x; }
__device__ __forceinline__ float s_max(float a, float b) { return a != a || b != b ? a + b : a == b ? (__float_as_int(a) < 0 ? b : a) : a > b ? a : b; }
__device__ __forceinline__ double s_max(double a, double b) { return a != a || b != b ? a + b : a == b ? (__double_as_longlong(a) < 0 ? b : a) : a > b ? a : b; }
__device__ __forceinline__ float s_min(float a, float b) { return a != a || b != b ? a + b : a == b ? (__float_as_int(a) < 0 ? a : b) : a < b ? a : b; }
__device__ __forceinline__ double s_min(double a, double b) { return a != a || b != b ? a + b : a == b ? (__double_as_longlong(a) < 0 ? a : b) : a < b ? a : b; }
__device__ __forceinline__ int s_max(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ i64 s_max(i64 a, i64 b) { return a > b ? a : b; }
__device__ __forceinline__ int s_min(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ i64 s_min(i64 a, i64 b) { return a < b ? a : b; }
__device__ __forceinline__ int s_add(int a, int b) { return (int)((u32)a + (u32)b); }
__device__ __forceinline__ i64 s_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
__device__ __forceinline__ int s_sub(int a, int b) { return (int)((u32)a - (u32)b); }
__device__ __forceinline__ i64 s_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
__device__ __forceinline__ int s_mul(int a, int b) { return (int)((u32)a * (u32)b); }
__device__ __forceinline__ i64 s_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
__device__ __forceinline__ int s_div(int a, int b) { return b == 0 ? 0 : b == -1 ? s_sub(0, a) : a / b; }
__device__ __forceinline__ i64 s_div(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? s_sub((i64)0, a) : a / b; }
__device__ __forceinline__ int s_rem(int a, int b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
__device__ __forceinline__ i64 s_rem(i64 a, i64 b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
__device__ __forceinline__ int s_floordiv(int a, int b) { int r = s_rem(a, b); return s_sub(s_div(a, b), b != 0 && r != 0 && (r < 0) != (b < 0)); }
__device__ __forceinline__ i64 s_floordiv(i64 a, i64 b) { i64 r = s_rem(a, b); return s_sub(s_div(a, b), (i64)(b != 0 && r != 0 && (r < 0) != (b < 0))); }
__device__ __forceinline__ int s_floormod(int a, int b) { int r = s_rem(a, b); return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r; }
__device__ __forceinline__ i64 s_floormod(i64 a, i64 b) { i64 r = s_rem(a, b); return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r; }
__device__ __forceinline__ int s_abs(int a) { return a < 0 ? s_sub(0, a) : a; }
__device__ __forceinline__ i64 s_abs(i64 a) { return a < 0 ? s_sub((i64)0, a) : a; }
__device__ __forceinline__ int s_shl(int a, int b) { return (int)((u32)a << (b & 31)); }
__device__ __forceinline__ i64 s_shl(i64 a, i64 b) { return (i64)((u64)a << (b & 63)); }
__device__ __forceinline__ int s_shr(int a, int b) { return a >> (b & 31); }
__device__ __forceinline__ i64 s_shr(i64 a, i64 b) { return a >> (b & 63); }
__device__ __forceinline__ int s_shrl(int a, int b) { return (int)((u32)a >> (b & 31)); }
__device__ __forceinline__ i64 s_shrl(i64 a, i64 b) { return (i64)((u64)a >> (b & 63)); }
__device__ __forceinline__ int s_clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
__device__ __forceinline__ int s_f2i(float x) { return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? (int)0x80000000 : (int)x; }
__device__ __forceinline__ int s_f2i(double x) { return x != x ? 0 : x >= 2147483648.0 ? 2147483647 : x < -2147483648.0 ? (int)0x80000000 : (int)x; }
__device__ __forceinline__ i64 s_f2l(float x) { return x != x ? 0 : x >= 9223372036854775808.0f ? 0x7fffffffffffffffll : x < -9223372036854775808.0f ? (i64)0x8000000000000000ull : (i64)x; }
__device__ __forceinline__ i64 s_f2l(double x) { return x != x ? 0 : x >= 9223372036854775808.0 ? 0x7fffffffffffffffll : x < -9223372036854775808.0 ? (i64)0x8000000000000000ull : (i64)x; }
__device__ __forceinline__ float s_bf2f(u16 b) { return __int_as_float((int)((u32)b << 16)); }
__device__ __forceinline__ u16 s_f2bf(float x) { u32 u = (u32)__float_as_int(x); if (x != x) return 0x7fc0; return (u16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16); }
__device__ __forceinline__ float s_h2f(u16 h) {
  u32 sign = (u32)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u;
  if (e == 31u) return __int_as_float((int)(sign | 0x7f800000u | (m << 13)));
  if (e == 0u) { float v = (float)m * 5.9604644775390625e-8f; return sign ? -v : v; }
  return __int_as_float((int)(sign | ((e + 112u) << 23) | (m << 13)));
}
__device__ __forceinline__ u16 s_f2h(float x) {
  u32 u = (u32)__float_as_int(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (x != x) return 0x7e00;
  if (a >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (a < 0x38800000u) {
    float scaled = __int_as_float((int)a) + 0.5f;  // half ulp of a subnormal half is 2^-25: 0.5 + x rounds x to multiples of 2^-24
    return (u16)(sign | ((u32)__float_as_int(scaled) - 0x3f000000u));
  }
  return (u16)(sign | ((a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13));
}
__device__ __forceinline__ float s_odd(double x) {  // rounded to odd, so that a second rounding is right
  float f = (float)x;
  if ((double)f == x || x != x) return f;
  u32 u = (u32)__float_as_int(f);
  double af = f < 0 ? -(double)f : (double)f, ax = x < 0 ? -x : x;
  if (af > ax) --u;
  return __int_as_float((int)(u | 1u));
}
)cuda";

}  // namespace sinter::codegen::cuda
