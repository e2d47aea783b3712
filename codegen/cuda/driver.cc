#include "sinter/codegen/cuda/driver.h"

#include <dlfcn.h>

#include <type_traits>

#include "sinter/graph/strings.h"

namespace sinter::codegen::cuda {

std::string Driver::Open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    return StrCat("no NVIDIA driver can be opened: ", error != nullptr ? error : library);
  }
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find("cuInit", init);
  find("cuDriverGetVersion", version);
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
  if (missing.empty()) return "";
  dlclose(handle);
  return StrCat(library, " is not a usable CUDA driver: it lacks ", missing);
}

std::string Driver::Text(int result) const {
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  return StrCat(name != nullptr ? name : StrCat("driver error ", result), text != nullptr ? StrCat(" (", text, ")") : "");
}

}  // namespace sinter::codegen::cuda
