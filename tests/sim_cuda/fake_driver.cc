// A stand-in for libcuda.so.1, for tests of the code that talks to the driver: device memory is memory of this process under addresses that
// are none of this process's, modules are CUDA C++ text, launches run on the simulated device. Every address is checked.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sinter/tests/sim_cuda/host_compile.h"
#include "sinter/tests/sim_cuda/sim_device.h"

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719;

struct Block {
  size_t bytes;
  std::unique_ptr<char[]> memory;
};

struct State {
  std::mutex mutex;
  std::map<uint64_t, Block> blocks;
  uint64_t next = uint64_t{0xd} << 60;
  size_t limit = SIZE_MAX, used = 0;
  int modules = 0, contexts = 0, fault = 0;  // `fault`: result of the next cuInit or cuLaunchKernel
};
State& S() {
  static auto* s = new State();
  return *s;
}
thread_local void* current = nullptr;

// The memory at a device address, if all of it belongs to one allocation.
char* At(uint64_t address, size_t bytes) {
  auto it = S().blocks.upper_bound(address);
  if (it == S().blocks.begin()) return nullptr;
  --it;
  const uint64_t offset = address - it->first;
  return offset <= it->second.bytes && bytes <= it->second.bytes - offset ? it->second.memory.get() + offset : nullptr;
}

}  // namespace

extern "C" {

// Controls of the tests.
void fake_cuda_fault(int result) { S().fault = result; }
void fake_cuda_limit(size_t bytes) { S().limit = bytes; }
int fake_cuda_live_blocks() { return static_cast<int>(S().blocks.size()); }
int fake_cuda_live_modules() { return S().modules; }
int fake_cuda_live_contexts() { return S().contexts; }

int cuInit(unsigned) { return std::exchange(S().fault, 0); }
int cuDriverGetVersion(int* v) { return *v = 13000, kSuccess; }
int cuDeviceGetCount(int* n) { return *n = 1, kSuccess; }
int cuDeviceGet(int* device, int ordinal) { return ordinal == 0 ? (*device = 0, kSuccess) : kNoDevice; }
int cuDeviceGetName(char* name, int n, int) { return std::strncpy(name, "simulated", static_cast<size_t>(n)), kSuccess; }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : 0, kSuccess; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &S(), ++S().contexts, kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int) { return --S().contexts, kSuccess; }
int cuCtxSetCurrent(void* context) { return current = context, kSuccess; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (current == nullptr || bytes == 0) return kInvalidValue;
  std::lock_guard lock(S().mutex);
  if (bytes > S().limit - std::min(S().limit, S().used)) return kOutOfMemory;
  *address = S().next;
  S().next += (bytes + 4095) / 4096 * 4096 + 4096;
  S().used += bytes;
  Block b{bytes, std::make_unique<char[]>(bytes)};
  std::memset(b.memory.get(), 0x5a, bytes);
  S().blocks.emplace(*address, std::move(b));
  return kSuccess;
}
int cuMemFree_v2(uint64_t address) {
  std::lock_guard lock(S().mutex);
  auto it = S().blocks.find(address);
  if (current == nullptr || it == S().blocks.end()) return kInvalidValue;
  S().used -= it->second.bytes;
  S().blocks.erase(it);
  return kSuccess;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  std::lock_guard lock(S().mutex);
  char* p = At(to, bytes);
  if (current == nullptr || p == nullptr) return kIllegalAddress;
  return std::memcpy(p, from, bytes), kSuccess;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  std::lock_guard lock(S().mutex);
  const char* p = At(from, bytes);
  if (current == nullptr || p == nullptr) return kIllegalAddress;
  return std::memcpy(to, p, bytes), kSuccess;
}
int cuModuleLoadData(void** module, const void* image) {
  const char* text = static_cast<const char*>(image);
  if (current == nullptr || std::strstr(text, "__global__") == nullptr) return kInvalidImage;
  ++S().modules;
  *module = new int(sinter::sim_cuda::Announce(text));
  return kSuccess;
}
int cuModuleUnload(void* module) {
  delete static_cast<int*>(module);
  return --S().modules, kSuccess;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return std::strcmp(name, "sinter_kernel") == 0 ? (*function = module, kSuccess) : kNotFound;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void*, void** parameters, void**) {
  if (current == nullptr || blocks == 0 || threads == 0 || threads > 1024) return kInvalidValue;
  if (S().fault != 0) return std::exchange(S().fault, 0);
  std::vector<void*> buffers;
  const long long* sizes = nullptr;
  char* scratch = nullptr;
  {
    std::lock_guard lock(S().mutex);
    const uint64_t table = *static_cast<uint64_t*>(parameters[0]), size_table = *static_cast<uint64_t*>(parameters[1]), local = *static_cast<uint64_t*>(parameters[4]);
    auto block = S().blocks.find(table);
    if (block == S().blocks.end()) return kIllegalAddress;
    for (size_t i = 0; i < block->second.bytes / sizeof(uint64_t); ++i) {
      uint64_t address;
      std::memcpy(&address, block->second.memory.get() + i * sizeof address, sizeof address);
      buffers.push_back(address == 0 ? nullptr : At(address, 0));
      if (address != 0 && buffers.back() == nullptr) return kIllegalAddress;
    }
    sizes = reinterpret_cast<const long long*>(At(size_table, 0));
    scratch = At(local, 0);
    if (sizes == nullptr || scratch == nullptr) return kIllegalAddress;
  }
  try {
    const long long begin = *static_cast<long long*>(parameters[2]), end = *static_cast<long long*>(parameters[3]), stride = *static_cast<long long*>(parameters[5]);
    sinter::sim_cuda::Launch(sinter::sim_cuda::HostKernelOf(*static_cast<int*>(function)), {static_cast<int>(blocks), static_cast<int>(threads), 1}, buffers.data(), sizes, begin,
                             end, scratch, stride);
  } catch (...) {
    return kLaunchFailed;
  }
  return kSuccess;
}
int cuCtxSynchronize() { return current == nullptr ? kInvalidValue : kSuccess; }
int cuGetErrorName(int result, const char** name) {
  *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : result == kNoDevice ? "CUDA_ERROR_NO_DEVICE" : result == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : nullptr;
  return *name ? kSuccess : kInvalidValue;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == kOutOfMemory ? "out of memory" : result == kNoDevice ? "no CUDA-capable device is detected" : nullptr;
  return *text ? kSuccess : kInvalidValue;
}

}  // extern "C"
