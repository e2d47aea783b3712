#include "sinter/codegen/cuda/device.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "sinter/codegen/cuda/nvrtc.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::codegen::cuda {

struct DeviceFunction {
  void* module = nullptr;
  void* function = nullptr;
};

// The functions of the CUDA driver that are used, by their stable names. The driver's header is not needed: results are 0 for success,
// devices are numbers, contexts, modules and functions are pointers, device memory is a 64-bit address.
struct Device::Driver {
  void* library = nullptr;
  int (*init)(unsigned);
  int (*driver_version)(int*);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*retain)(void**, int);
  int (*release)(int);
  int (*set_current)(void*);
  int (*allocate)(uint64_t*, size_t);
  int (*free)(uint64_t);
  int (*copy_in)(uint64_t, const void*, size_t);
  int (*copy_out)(void*, uint64_t, size_t);
  int (*load)(void**, const void*);
  int (*unload)(void*);
  int (*get_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*synchronize)();
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);

  int device = 0;
  void* context = nullptr;
  std::mutex mutex;                                 // functions
  std::map<std::string, DeviceFunction> functions;  // by text

  /// Empty, or why the library can't be used.
  std::string Open(const std::string& name) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return StrCat(name, " not found: no NVIDIA driver is installed");
    std::string missing;
    auto find = [&](const char* symbol, auto& f) {
      f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(library, symbol));
      if (f == nullptr && missing.empty()) missing = symbol;
    };
    find("cuInit", init);
    find("cuDriverGetVersion", driver_version);
    find("cuDeviceGetCount", device_count);
    find("cuDeviceGet", device_get);
    find("cuDeviceGetName", device_name);
    find("cuDeviceGetAttribute", device_attribute);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuDevicePrimaryCtxRelease_v2", release);
    find("cuCtxSetCurrent", set_current);
    find("cuMemAlloc_v2", allocate);
    find("cuMemFree_v2", free);
    find("cuMemcpyHtoD_v2", copy_in);
    find("cuMemcpyDtoH_v2", copy_out);
    find("cuModuleLoadData", load);
    find("cuModuleUnload", unload);
    find("cuModuleGetFunction", get_function);
    find("cuLaunchKernel", launch);
    find("cuCtxSynchronize", synchronize);
    find("cuGetErrorName", error_name);
    find("cuGetErrorString", error_string);
    return missing.empty() ? "" : StrCat(name, " is not a usable CUDA driver: it lacks ", missing);
  }

  std::string Text(int result) const {
    const char *label = nullptr, *text = nullptr;
    error_name(result, &label);
    error_string(result, &text);
    return StrCat(label != nullptr ? label : StrCat("driver error ", result), text != nullptr ? StrCat(" (", text, ")") : "");
  }

  std::string DeviceText(int ordinal_device, int* sm) const {
    constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
    int major = 0, minor = 0;
    char label[256] = {};
    device_name(label, sizeof label - 1, ordinal_device);
    device_attribute(&major, kMajor, ordinal_device);
    device_attribute(&minor, kMinor, ordinal_device);
    *sm = major * 10 + minor;
    return StrCat(label, ", sm_", *sm);
  }
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

Device::Device() : driver_(std::make_unique<Driver>()) {}

std::shared_ptr<Device> Device::Open(int ordinal, std::string* why, DeviceOptions options) {
  auto fail = [&](std::string text) {
    if (why != nullptr) *why = std::move(text);
    return nullptr;
  };
  std::shared_ptr<Device> d(new Device());
  Driver& driver = *d->driver_;
  if (std::string fault = driver.Open(options.library); !fault.empty()) return fail(std::move(fault));
  int count = 0, result = driver.init(0);
  if (result == 0) result = driver.device_count(&count);
  if (result != 0) return fail(StrCat("the driver does not start: ", driver.Text(result)));
  if (ordinal < 0 || ordinal >= count) return fail(count == 0 ? "the driver sees no device" : StrCat("there is no device ", ordinal, ": the driver sees ", count));
  result = driver.device_get(&driver.device, ordinal);
  if (result == 0) result = driver.retain(&driver.context, driver.device);
  if (result != 0) return fail(StrCat("device ", ordinal, " can't be used: ", driver.Text(result)));
  d->name_ = driver.DeviceText(driver.device, &d->sm_);
  d->options_ = std::move(options);
  if (!d->options_.compile) d->options_.compile = CompileImage;
  return d;
}

Device::~Device() {
  if (driver_->context == nullptr) return;
  driver_->set_current(driver_->context);
  for (auto& [text, f] : driver_->functions) driver_->unload(f.module);
  driver_->release(driver_->device);
}

void Device::Check(int result, const char* what) const {
  if (result == 0) return;
  constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
  throw Error(result == kOutOfMemory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, StrCat(name_, ": ", what, ": ", driver_->Text(result)));
}

void Device::MakeCurrent() { Check(driver_->set_current(driver_->context), "its context"); }

uint64_t Device::Allocate(size_t bytes) {
  MakeCurrent();
  uint64_t address = 0;
  Check(driver_->allocate(&address, bytes == 0 ? 1 : bytes), StrCat("an allocation of ", bytes, " bytes").c_str());
  return address;
}

void Device::Free(uint64_t address) noexcept {
  if (address == 0 || driver_->set_current(driver_->context) != 0) return;
  driver_->free(address);
}

void Device::CopyIn(uint64_t to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  MakeCurrent();
  Check(driver_->copy_in(to, from, bytes), StrCat("a copy of ", bytes, " bytes to the device").c_str());
}

void Device::CopyOut(void* to, uint64_t from, size_t bytes) {
  if (bytes == 0) return;
  MakeCurrent();
  Check(driver_->copy_out(to, from, bytes), StrCat("a copy of ", bytes, " bytes from the device").c_str());
}

const DeviceFunction* Device::Load(const CudaSource& source) {
  std::lock_guard lock(driver_->mutex);
  DeviceFunction& f = driver_->functions[source.text];
  if (f.function != nullptr) return &f;
  try {
    const std::string image = options_.compile(source, sm_);
    MakeCurrent();
    DeviceFunction loaded;
    Check(driver_->load(&loaded.module, image.c_str()), StrCat("loading ", source.name).c_str());
    if (const int result = driver_->get_function(&loaded.function, loaded.module, source.name.c_str()); result != 0) {
      driver_->unload(loaded.module);
      Check(result, StrCat("finding ", source.name, " in its module").c_str());
    }
    f = loaded;
  } catch (...) {
    driver_->functions.erase(source.text);
    throw;
  }
  return &f;
}

void Device::Launch(const DeviceFunction* function, int64_t blocks, int threads, void** parameters) {
  SINTER_CHECK(blocks > 0 && blocks <= INT32_MAX && threads > 0);
  MakeCurrent();
  Check(driver_->launch(function->function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1, 1, 0, nullptr, parameters, nullptr), "a launch");
  Check(driver_->synchronize(), "a kernel");
}

std::string DescribeCuda() {
  std::string text, why;
  const bool nvrtc = NvrtcAvailable(&why);
  if (nvrtc) {
    const std::vector<int> archs = NvrtcArchs();
    StrAppend(&text, "NVRTC: ", NvrtcVersion(), ", sm_", archs.empty() ? 0 : archs.front(), " to sm_", archs.empty() ? 0 : archs.back(), "\n");
  } else {
    StrAppend(&text, "NVRTC: none: ", why, "\n");
  }
  const std::shared_ptr<Device> device = Device::Open(0, &why);
  StrAppend(&text, device ? "driver: libcuda.so.1\nGPU: " + device->name() : "GPU: none: " + why, "\n");
  return text + (device && nvrtc ? "programs run on the CPU; kernels can be compiled for this GPU and run on it, with their operands copied to and fro\n"
                                 : "programs run on the CPU; kernels can be emitted as CUDA C++\n");
}

}  // namespace sinter::codegen::cuda
