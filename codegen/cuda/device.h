#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sinter/codegen/cuda/emit_cuda.h"

/// A GPU behind the CUDA driver, opened at run time: one binary serves machines with and without one.
namespace sinter::codegen::cuda {

/// A kernel on a device; lives as long as the device.
struct DeviceFunction;

struct DeviceOptions {
  std::string library = "libcuda.so.1";
  /// The image that the driver loads for a source, given the device's architecture (90: sm_90). By default NVRTC's machine code, or its
  /// newest PTX where the device is newer than NVRTC.
  std::function<std::string(const CudaSource& source, int sm)> compile;
};

/// Thread-safe. Faults of the driver are Errors with its name and text for them.
class Device {
 public:
  /// Null where there is no usable GPU; `why` (may be null) says why not.
  static std::shared_ptr<Device> Open(int ordinal = 0, std::string* why = nullptr, DeviceOptions options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "NVIDIA H200, sm_90".
  const std::string& name() const { return name_; }
  int sm() const { return sm_; }

  uint64_t Allocate(size_t bytes);
  void Free(uint64_t address) noexcept;
  void CopyIn(uint64_t to, const void* from, size_t bytes);
  void CopyOut(void* to, uint64_t from, size_t bytes);
  /// Compiles and loads; equal sources have one function.
  const DeviceFunction* Load(const CudaSource& source);
  /// Runs to the end. `parameters` are pointers to the kernel's parameters.
  void Launch(const DeviceFunction* function, int64_t blocks, int threads, void** parameters);

 private:
  struct Driver;
  Device();
  void MakeCurrent();
  void Check(int result, const char* what) const;

  std::unique_ptr<Driver> driver_;
  DeviceOptions options_;
  std::string name_;
  int sm_ = 0;
};

/// What `sinter doctor` prints about CUDA: NVRTC, the driver, the GPU; each found, or why not. Several lines, each ended.
std::string DescribeCuda();

}  // namespace sinter::codegen::cuda
