// A stand-in for libcuda.so.1, for tests of the code that talks to the driver: device memory is memory of this process under addresses that
// are none of this process's, modules are CUDA C++ text, launches run on the simulated device. Every argument is checked as far as the
// driver could, and each block of device memory ends at a page that faults.
#include "sinter/tests/sim_cuda/fake_driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/tests/sim_cuda/sim_device.h"

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
              kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719;
constexpr size_t kPage = 4096;

class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes), mapped_((bytes + kPage - 1) / kPage * kPage + kPage) {
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    mprotect(base_ + mapped_ - kPage, kPage, PROT_NONE);
    std::memset(data(), 0x5a, bytes);
  }
  ~Block() { munmap(base_, mapped_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  char* data() const { return base_ + mapped_ - kPage - bytes_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, mapped_;
  char* base_;
};

struct Module {
  int handle;
  int max_threads;  // of a block
};

struct Failure {
  std::string call;  // empty: any
  int skip = 0, result = 0;
  bool sticky = false;
};

struct State {
  std::mutex mutex;
  bool initialized = false;
  int devices = 1, sm = 90, contexts = 0;
  std::map<uint64_t, std::unique_ptr<Block>> blocks;
  std::map<Module*, std::unique_ptr<Module>> modules;
  uint64_t next = uint64_t{0xd} << 60;  // no address of a process: to touch it is a fault
  size_t limit = SIZE_MAX, used = 0;
  int pending = 0;  // the fault of a kernel: reported when it is waited for
  Failure failure;
  std::string image;
  std::map<std::string, long> counts;
};
State& S() {
  static auto* s = new State();
  return *s;
}
thread_local void* current = nullptr;

// What every function begins with: the lock, and a fault that a test asked for.
struct Call {
  std::lock_guard<std::mutex> lock{S().mutex};
  int result = kSuccess;
  explicit Call(const char* name, bool frees = false) {
    Failure& f = S().failure;
    if (f.result != 0 && (f.call.empty() || f.call == name) && (f.sticky || !frees) && f.skip-- <= 0) {
      result = f.result;
      f.skip = 0;
      if (!f.sticky) f.result = 0;
    } else if (!S().initialized && std::strcmp(name, "cuInit") != 0) {
      result = kNotInitialized;
    }
    if (result == kSuccess) ++S().counts[name];
  }
  bool NeedContext() {
    if (result == kSuccess && (current == nullptr || S().contexts == 0)) result = kInvalidContext;
    return result == kSuccess;
  }
  bool Need(bool condition, int otherwise) {
    if (result == kSuccess && !condition) result = otherwise;
    return result == kSuccess;
  }
};

// The memory at a device address, if all of it belongs to one block.
char* At(uint64_t address, size_t bytes) {
  auto it = S().blocks.upper_bound(address);
  if (it == S().blocks.begin()) return nullptr;
  const Block& b = *(--it)->second;
  const uint64_t offset = address - it->first;
  return offset < b.bytes() && bytes <= b.bytes() - offset ? b.data() + offset : nullptr;
}

int MaxThreads(const char* text) {
  const char* bounds = std::strstr(text, "__launch_bounds__(");
  return bounds == nullptr ? 1024 : std::atoi(bounds + std::strlen("__launch_bounds__("));
}

const std::map<int, std::pair<const char*, const char*>> kTexts = {
    {kSuccess, {"CUDA_SUCCESS", "no error"}},
    {kInvalidValue, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {kOutOfMemory, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {kNotInitialized, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
    {kNoDevice, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {kInvalidDevice, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
    {kInvalidImage, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
    {kInvalidContext, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {kInvalidHandle, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {kNotFound, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {kIllegalAddress, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
    {kLaunchFailed, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
};

}  // namespace

extern "C" {

bool fake_cuda_fail(const char* call, int skip, int result, bool sticky) {
  std::lock_guard lock(S().mutex);
  const bool to_come = S().failure.result != 0;
  S().failure = {call == nullptr ? "" : call, skip, result, sticky};
  return to_come;
}
void fake_cuda_limit(size_t bytes) {
  std::lock_guard lock(S().mutex);
  S().limit = bytes;
}
void fake_cuda_devices(int count, int sm) {
  std::lock_guard lock(S().mutex);
  S().devices = count, S().sm = sm;
}
sinter::sim_cuda::FakeCudaLive fake_cuda_live() {
  std::lock_guard lock(S().mutex);
  return {static_cast<int>(S().blocks.size()), static_cast<int>(S().modules.size()), S().contexts};
}
const char* fake_cuda_image() { return S().image.c_str(); }
long fake_cuda_count(const char* call) {
  std::lock_guard lock(S().mutex);
  return S().counts[call];
}
void fake_cuda_reset() {
  State& s = S();
  std::lock_guard lock(s.mutex);
  s.initialized = false;
  s.devices = 1, s.sm = 90, s.contexts = 0, s.pending = 0;
  s.blocks.clear(), s.modules.clear(), s.counts.clear();
  s.limit = SIZE_MAX, s.used = 0;
  s.failure = {};
  current = nullptr;
}

int cuInit(unsigned flags) {
  Call c("cuInit");
  if (c.Need(flags == 0, kInvalidValue)) S().initialized = true;
  return c.result;
}
int cuDriverGetVersion(int* v) {
  Call c("cuDriverGetVersion");
  *v = 13000;
  return c.result;
}
int cuDeviceGetCount(int* n) {
  Call c("cuDeviceGetCount");
  if (c.result == kSuccess) *n = S().devices;
  return c.result;
}
int cuDeviceGet(int* device, int ordinal) {
  Call c("cuDeviceGet");
  if (c.Need(ordinal >= 0 && ordinal < S().devices, kInvalidDevice)) *device = ordinal;
  return c.result;
}
int cuDeviceGetName(char* name, int n, int device) {
  Call c("cuDeviceGetName");
  if (c.Need(device < S().devices, kInvalidDevice)) std::strncpy(name, "simulated", static_cast<size_t>(n));
  return c.result;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  Call c("cuDeviceGetAttribute");
  if (c.Need(device < S().devices, kInvalidDevice) && c.Need(attribute == 75 || attribute == 76, kInvalidValue)) *value = attribute == 75 ? S().sm / 10 : S().sm % 10;
  return c.result;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  Call c("cuDevicePrimaryCtxRetain");
  if (c.result == kSuccess) *context = &S(), ++S().contexts;
  return c.result;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  Call c("cuDevicePrimaryCtxRelease_v2", true);
  if (c.Need(S().contexts > 0, kInvalidContext)) --S().contexts;
  return c.result;
}
int cuCtxSetCurrent(void* context) {
  Call c("cuCtxSetCurrent", context == nullptr);
  if (c.Need(context == nullptr || (context == &S() && S().contexts > 0), kInvalidContext)) current = context;
  return c.result;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  Call c("cuMemAlloc_v2");
  if (!c.NeedContext() || !c.Need(bytes > 0, kInvalidValue) || !c.Need(bytes <= S().limit - std::min(S().limit, S().used), kOutOfMemory)) return c.result;
  *address = S().next;
  S().next += (bytes + kPage - 1) / kPage * kPage + kPage;
  S().used += bytes;
  S().blocks.emplace(*address, std::make_unique<Block>(bytes));
  return kSuccess;
}
int cuMemFree_v2(uint64_t address) {
  Call c("cuMemFree_v2", true);
  auto it = S().blocks.find(address);
  if (!c.NeedContext() || !c.Need(it != S().blocks.end(), kInvalidValue)) return c.result;
  S().used -= it->second->bytes();
  S().blocks.erase(it);
  return kSuccess;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  Call c("cuMemcpyHtoD_v2");
  char* p = At(to, bytes);
  if (c.NeedContext() && c.Need(p != nullptr, kInvalidValue)) std::memcpy(p, from, bytes);
  return c.result;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  Call c("cuMemcpyDtoH_v2");
  const char* p = At(from, bytes);
  if (c.NeedContext() && c.Need(p != nullptr, kInvalidValue)) std::memcpy(to, p, bytes);
  return c.result;
}
int cuModuleLoadData(void** module, const void* image) {
  Call c("cuModuleLoadData");
  const char* text = static_cast<const char*>(image);
  S().image = text;
  if (!c.NeedContext() || !c.Need(std::strstr(text, "__global__") != nullptr, kInvalidImage)) return c.result;
  auto m = std::make_unique<Module>(Module{sinter::sim_cuda::Announce(text), MaxThreads(text)});
  *module = m.get();
  S().modules.emplace(m.get(), std::move(m));
  return kSuccess;
}
int cuModuleUnload(void* module) {
  Call c("cuModuleUnload", true);
  if (c.NeedContext() && c.Need(S().modules.count(static_cast<Module*>(module)) == 1, kInvalidHandle)) S().modules.erase(static_cast<Module*>(module));
  return c.result;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  Call c("cuModuleGetFunction");
  if (c.NeedContext() && c.Need(S().modules.count(static_cast<Module*>(module)) == 1, kInvalidHandle) && c.Need(std::strcmp(name, "sinter_kernel") == 0, kNotFound)) *function = module;
  return c.result;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned grid_y, unsigned grid_z, unsigned threads, unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                   void** parameters, void** extra) {
  Module module;
  std::vector<void*> buffers;
  const long long* sizes = nullptr;
  char* scratch = nullptr;
  {
    Call c("cuLaunchKernel");
    auto m = S().modules.find(static_cast<Module*>(function));
    if (!c.NeedContext() || !c.Need(m != S().modules.end(), kInvalidHandle) || !c.Need(parameters != nullptr && extra == nullptr && stream == nullptr && shared_bytes == 0, kInvalidValue) ||
        !c.Need(blocks > 0 && threads > 0 && grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1, kInvalidValue) ||
        !c.Need(static_cast<int>(threads) <= m->second->max_threads, kInvalidValue))
      return c.result;
    module = *m->second;
    // Addresses that are wrong are the kernel's fault, not the launch's: it shows when the kernel is waited for.
    const uint64_t table = *static_cast<uint64_t*>(parameters[0]);
    auto block = S().blocks.find(table);
    sizes = reinterpret_cast<const long long*>(At(*static_cast<uint64_t*>(parameters[1]), 1));
    scratch = At(*static_cast<uint64_t*>(parameters[4]), 1);
    if (block == S().blocks.end() || sizes == nullptr || scratch == nullptr) return S().pending = kIllegalAddress, kSuccess;
    for (size_t i = 0; i < block->second->bytes() / sizeof(uint64_t); ++i) {
      uint64_t address;
      std::memcpy(&address, block->second->data() + i * sizeof address, sizeof address);
      // What no copy wrote is not in the table: blocks may be larger than what was asked for.
      buffers.push_back(At(address, 1));
    }
  }
  int fault = 0;
  try {
    const long long begin = *static_cast<long long*>(parameters[2]), end = *static_cast<long long*>(parameters[3]), stride = *static_cast<long long*>(parameters[5]);
    sinter::sim_cuda::Launch(sinter::sim_cuda::HostKernelOf(module.handle), {static_cast<int>(blocks), static_cast<int>(threads), 1}, buffers.data(), sizes, begin, end, scratch,
                             stride);
  } catch (...) {
    fault = kLaunchFailed;
  }
  std::lock_guard lock(S().mutex);
  if (fault != 0) S().pending = fault;
  return kSuccess;
}
int cuCtxSynchronize() {
  Call c("cuCtxSynchronize");
  if (c.NeedContext() && S().pending != 0) c.result = S().pending, S().pending = 0;
  return c.result;
}
int cuGetErrorName(int result, const char** name) {
  auto it = kTexts.find(result);
  *name = it == kTexts.end() ? nullptr : it->second.first;
  return *name ? kSuccess : kInvalidValue;
}
int cuGetErrorString(int result, const char** text) {
  auto it = kTexts.find(result);
  *text = it == kTexts.end() ? nullptr : it->second.second;
  return *text ? kSuccess : kInvalidValue;
}

}  // extern "C"
