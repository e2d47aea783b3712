#include "sinter/codegen/cuda/device.h"

#include <map>
#include <mutex>

#include "sinter/codegen/cuda/driver.h"
#include "sinter/codegen/cuda/memory_pool.h"
#include "sinter/codegen/cuda/nvrtc.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen::cuda {

struct DeviceFunction {
  void* module = nullptr;
  void* function = nullptr;
};

struct Device::State {
  explicit State(size_t keep_bytes) : pool(keep_bytes) {}

  Driver driver;
  int device = 0;
  void* context = nullptr;  // the device's primary one, which all that use it in the process share
  MemoryPool pool;
  std::mutex mutex;                                 // functions
  std::map<std::string, DeviceFunction> functions;  // by text
};

namespace {

// Machine code where NVRTC knows the architecture; else PTX of the newest one that it knows, which the driver compiles.
std::string CompileImage(const CudaSource& source, int sm) {
  int target = 0;
  for (int known : NvrtcArchs())
    if (known <= sm) target = known;
  if (target == 0) {
    std::string why;
    if (!NvrtcAvailable(&why)) throw Error(ErrorCode::kUnavailable, StrCat("a kernel can't be compiled for the GPU: ", why));
    throw Error(ErrorCode::kUnavailable, StrCat("NVRTC knows no architecture that a device of sm_", sm, " runs"));
  }
  CompiledCuda compiled = CompileCubin(source, target);
  return target == sm ? std::move(compiled.cubin) : std::move(compiled.ptx);
}

}  // namespace

Device::Device(DeviceOptions options) : state_(std::make_unique<State>(options.keep_bytes)), options_(std::move(options)) {
  if (!options_.compile) options_.compile = CompileImage;
}

std::shared_ptr<Device> Device::Open(int ordinal, std::string* why, DeviceOptions options) {
  auto fail = [&](std::string text) {
    if (why != nullptr) *why = std::move(text);
    return nullptr;
  };
  std::shared_ptr<Device> d(new Device(std::move(options)));
  Driver& driver = d->state_->driver;
  if (std::string fault = driver.Open(d->options_.library); !fault.empty()) return fail(std::move(fault));
  int count = 0, result = driver.init(0);
  if (result == 0) result = driver.device_count(&count);
  if (result != 0) return fail(StrCat("the driver does not start: ", driver.Text(result)));
  if (ordinal < 0 || ordinal >= count) return fail(count == 0 ? "the driver sees no device" : StrCat("there is no device ", ordinal, ": the driver sees ", count));
  result = driver.device_get(&d->state_->device, ordinal);
  if (result == 0) result = d->Describe();
  if (result == 0) result = driver.retain(&d->state_->context, d->state_->device);
  if (result != 0) return fail(StrCat("device ", ordinal, " can't be used: ", driver.Text(result)));
  return d;
}

// Fills in what the device and the driver are.
int Device::Describe() {
  const Driver& driver = state_->driver;
  char label[256] = {};
  int major = 0, minor = 0, version = 0;
  int result = driver.device_name(label, sizeof label - 1, state_->device);
  if (result == 0) result = driver.device_attribute(&major, Driver::kAttributeMajor, state_->device);
  if (result == 0) result = driver.device_attribute(&minor, Driver::kAttributeMinor, state_->device);
  if (result == 0) result = driver.version(&version);
  sm_ = major * 10 + minor;
  name_ = StrCat(label, ", sm_", sm_);
  driver_name_ = StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
  return result;
}

Device::~Device() {
  State& s = *state_;
  if (s.context == nullptr) return;
  // Faults don't matter any more: a context that is broken takes all of this with it.
  s.driver.set_current(s.context);
  for (auto& [text, f] : s.functions) s.driver.unload(f.module);
  for (uint64_t address : s.pool.Drain()) s.driver.free(address);
  s.driver.set_current(nullptr);
  s.driver.release(s.device);
}

void Device::Check(int result, const std::string& what) const {
  if (result == 0) return;
  throw Error(result == Driver::kOutOfMemory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, StrCat(name_, ": ", what, ": ", state_->driver.Text(result)));
}

void Device::MakeCurrent() { Check(state_->driver.set_current(state_->context), "its context"); }

uint64_t Device::Allocate(size_t bytes) {
  State& s = *state_;
  const size_t size = s.pool.BlockSize(bytes);
  uint64_t address = s.pool.Take(size);
  if (address != 0) return address;
  MakeCurrent();
  int result = s.driver.allocate(&address, size);
  if (result == Driver::kOutOfMemory) {
    // What waits for another use may be what is missing.
    for (uint64_t a : s.pool.Drain()) s.driver.free(a);
    result = s.driver.allocate(&address, size);
  }
  if (result != 0) Check(result, StrCat("an allocation of ", bytes, " bytes"));
  try {
    s.pool.Add(address, size);
  } catch (...) {
    s.driver.free(address);
    throw;
  }
  return address;
}

void Device::Free(uint64_t address) noexcept {
  State& s = *state_;
  if (!s.pool.Release(address)) return;
  s.driver.set_current(s.context);
  s.driver.free(address);
}

size_t Device::bytes_in_use() const { return state_->pool.bytes_in_use(); }

void Device::CopyIn(uint64_t to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  MakeCurrent();
  if (const int result = state_->driver.copy_in(to, from, bytes); result != 0) Check(result, StrCat("a copy of ", bytes, " bytes to the device"));
}

void Device::CopyOut(void* to, uint64_t from, size_t bytes) {
  if (bytes == 0) return;
  MakeCurrent();
  if (const int result = state_->driver.copy_out(to, from, bytes); result != 0) Check(result, StrCat("a copy of ", bytes, " bytes from the device"));
}

const DeviceFunction* Device::Load(const CudaSource& source) {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  if (auto it = s.functions.find(source.text); it != s.functions.end()) return &it->second;
  const std::string image = options_.compile(source, sm_);
  MakeCurrent();
  DeviceFunction loaded;
  if (const int result = s.driver.load(&loaded.module, image.c_str()); result != 0)
    Check(result, StrCat("loading ", source.name, " with a driver for ", driver_name_));
  try {
    if (const int result = s.driver.get_function(&loaded.function, loaded.module, source.name.c_str()); result != 0)
      Check(result, StrCat("finding ", source.name, " in its module"));
    return &s.functions.emplace(source.text, loaded).first->second;
  } catch (...) {
    s.driver.unload(loaded.module);
    throw;
  }
}

void Device::Launch(const DeviceFunction* function, int64_t blocks, int threads, void** parameters) {
  SINTER_CHECK(blocks > 0 && blocks <= INT32_MAX && threads > 0);
  MakeCurrent();
  Check(state_->driver.launch(function->function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1, 1, 0, nullptr, parameters, nullptr), "a launch");
  Check(state_->driver.synchronize(), "a kernel");
}

namespace {

// Runs a kernel that stores a number. Throws what goes wrong.
void TryLaunch(Device& device) {
  const DeviceFunction* function =
      device.Load({"sinter_kernel",
                   "extern \"C\" __global__ void sinter_kernel(void* const* buffers, const long long*, long long begin, long long, char*, long long) {\n"
                   "  *(long long*)buffers[0] = begin;\n}\n"});
  DeviceMemory memory(device);
  constexpr int64_t kNumber = 4213;
  int64_t got = 0, begin = kNumber, end = kNumber + 1, stride = 0;
  uint64_t buffer = memory.AllocateCopy(&got, sizeof got), table = memory.AllocateCopy(&buffer, sizeof buffer);
  void* parameters[] = {&table, &buffer, &begin, &end, &buffer, &stride};
  device.Launch(function, 1, 1, parameters);
  device.CopyOut(&got, buffer, sizeof got);
  if (got != kNumber) throw Error(ErrorCode::kInternal, StrCat(device.name(), ": a kernel stored ", got, " instead of ", kNumber));
}

}  // namespace

std::string DescribeCuda(const DeviceOptions& options) {
  std::string text, why;
  if (NvrtcAvailable(&why)) {
    const std::vector<int> archs = NvrtcArchs();
    StrAppend(&text, "NVRTC: ", NvrtcVersion(), ", sm_", archs.empty() ? 0 : archs.front(), " to sm_", archs.empty() ? 0 : archs.back(), "\n");
  } else {
    StrAppend(&text, "NVRTC: none: ", why, "\n");
  }
  const std::shared_ptr<Device> device = Device::Open(0, &why, options);
  if (!device) return StrCat(text, "GPU: none: ", why, "\nprograms run on the CPU; kernels can be emitted as CUDA C++ but not launched here\n");
  StrAppend(&text, "driver: ", options.library, ", ", device->driver(), "\nGPU: ", device->name(), "\n");
  try {
    TryLaunch(*device);
  } catch (const Error& e) {
    return StrCat(text, "programs run on the CPU; kernels can't be launched on this GPU: ", e.message(), "\n");
  }
  return StrCat(text, "programs run on the CPU; kernels can be launched on this GPU (one was), with their operands copied to and fro\n");
}

}  // namespace sinter::codegen::cuda
