#pragma once

#include <sys/mman.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sinter/codegen/kernel.h"

/// Runs kernels on data with awkward values, in memory that faults beyond its end.
namespace sinter::codegen::testing {

/// Bytes that end at a page that cannot be touched, so that a read or write past the end crashes.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes) {
    mapped_ = (bytes + kPage - 1) / kPage * kPage + 2 * kPage;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    if (mapped_ > 2 * kPage) mprotect(base_ + kPage, mapped_ - 2 * kPage, PROT_READ | PROT_WRITE);
  }
  GuardedBuffer(GuardedBuffer&& o) noexcept : base_(o.base_), mapped_(o.mapped_), bytes_(o.bytes_) { o.base_ = nullptr; }
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer() {
    if (base_ != nullptr) munmap(base_, mapped_);
  }
  char* data() { return base_ + mapped_ - kPage - bytes_; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPage = 4096;
  char* base_ = nullptr;
  size_t mapped_ = 0;
  size_t bytes_ = 0;
};

template <class T>
void FillAs(char* data, size_t n, std::mt19937& rng, const std::vector<T>& specials, auto ordinary) {
  for (size_t i = 0; i < n; ++i) {
    const T v = rng() % 8 == 0 ? specials[rng() % specials.size()] : static_cast<T>(ordinary());
    std::memcpy(data + i * sizeof(T), &v, sizeof(T));
  }
}

/// Random values, one in eight of them special; floats mostly in [-4, 4), integers mostly in [-100, 100).
inline void Fill(DType t, char* data, size_t n, std::mt19937& rng) {
  std::uniform_real_distribution<double> u(-4, 4);
  auto real = [&] { return u(rng); };
  auto integer = [&] { return static_cast<int>(rng() % 200) - 100; };
  const float inf = INFINITY;
  switch (t) {
    case DType::kFloat32:
      return FillAs<float>(data, n, rng, {0, -0.f, inf, -inf, NAN, -NAN, 1e-40f, 3e38f, 0.5f, 2147483648.f, -1e10f, 65520.f, 1e-7f}, real);
    case DType::kFloat64:
      return FillAs<double>(data, n, rng, {0, -0., inf, -inf, NAN, 5e-324, 1e300, 9.3e18, -9.3e18, 1.00048828125000001, 0x1.002p0 + 0x1p-50, 2e-5}, real);
    case DType::kFloat16: return FillAs<uint16_t>(data, n, rng, {0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x7c01, 0x0001, 0x7bff}, rng);
    case DType::kBFloat16: return FillAs<uint16_t>(data, n, rng, {0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0x7f81, 0x0001}, rng);
    case DType::kInt8:
    case DType::kUInt8: return FillAs<uint8_t>(data, n, rng, {0, 1, 127, 128, 255}, integer);
    case DType::kInt32: return FillAs<int32_t>(data, n, rng, {0, 1, -1, INT32_MIN, INT32_MAX, 31, 33}, integer);
    case DType::kInt64: return FillAs<int64_t>(data, n, rng, {0, 1, -1, INT64_MIN, INT64_MAX, 63, 65, int64_t{1} << 53}, integer);
    case DType::kBool: return FillAs<uint8_t>(data, n, rng, {0}, [&] { return rng() & 1; });
  }
}

inline size_t BytesOf(const KernelBuffer& b, const DimEnv& env) {
  int64_t n = 1;
  for (Dim d : b.shape) n *= d.Eval(env);
  return static_cast<size_t>(n * ItemSize(b.dtype));
}

/// The bytes of all outputs after running `compiled` on inputs that depend on `seed` alone. The outer domain is cut in `pieces`.
inline std::vector<std::string> RunKernel(const Kernel& k, const CompiledKernel& compiled, const DimEnv& env, int pieces = 1, unsigned seed = 1) {
  std::mt19937 rng(seed);
  std::vector<GuardedBuffer> memory;
  std::vector<void*> pointers;
  for (const KernelBuffer& b : k.buffers) {
    const bool local = b.role == BufferRole::kLocal;
    memory.emplace_back(local ? 0 : BytesOf(b, env));
    pointers.push_back(local ? nullptr : memory.back().data());
    if (b.role == BufferRole::kInput) Fill(b.dtype, memory.back().data(), memory.back().bytes() / ItemSize(b.dtype), rng);
    else std::memset(memory.back().data(), 0x55, memory.back().bytes());
  }
  std::vector<int64_t> sizes;
  for (Dim d : k.RuntimeSizes()) sizes.push_back(d.Eval(env));
  GuardedBuffer scratch(static_cast<size_t>(ScratchBytes(k).Eval(env)));
  const int64_t points = OuterPoints(k).Eval(env);
  for (int p = 0; p < pieces; ++p) compiled.Run(pointers.data(), sizes.data(), points * p / pieces, points * (p + 1) / pieces, scratch.data());
  std::vector<std::string> out;
  for (size_t i = 0; i < k.buffers.size(); ++i)
    if (k.buffers[i].role == BufferRole::kOutput) out.emplace_back(memory[i].data(), memory[i].bytes());
  return out;
}

}  // namespace sinter::codegen::testing
