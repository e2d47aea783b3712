#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  /// Freed memory that is kept for the next allocations; 0: none.
  size_t keep_bytes = size_t{1} << 30;
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
  /// What the driver was made for: "CUDA 13.0".
  const std::string& driver() const { return driver_name_; }
  int sm() const { return sm_; }

  uint64_t Allocate(size_t bytes);
  void Free(uint64_t address) noexcept;
  /// Of what Allocate gave, with what sizes were rounded up by.
  size_t bytes_in_use() const;
  void CopyIn(uint64_t to, const void* from, size_t bytes);
  void CopyOut(void* to, uint64_t from, size_t bytes);
  /// Compiles and loads; equal sources have one function.
  const DeviceFunction* Load(const CudaSource& source);
  /// Runs to the end. `parameters` are pointers to the kernel's parameters.
  void Launch(const DeviceFunction* function, int64_t blocks, int threads, void** parameters);

 private:
  struct State;
  explicit Device(DeviceOptions options);
  int Describe();
  void MakeCurrent();
  void Check(int result, const std::string& what) const;

  std::unique_ptr<State> state_;
  DeviceOptions options_;
  std::string name_, driver_name_;
  int sm_ = 0;
};

/// Memory that is freed with this object.
class DeviceMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  ~DeviceMemory() {
    for (uint64_t a : addresses_) device_.Free(a);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  uint64_t Allocate(size_t bytes) {
    addresses_.push_back(0);
    return addresses_.back() = device_.Allocate(bytes);
  }
  /// With a copy of `bytes` at `from`.
  uint64_t AllocateCopy(const void* from, size_t bytes) {
    const uint64_t address = Allocate(bytes);
    device_.CopyIn(address, from, bytes);
    return address;
  }

 private:
  Device& device_;
  std::vector<uint64_t> addresses_;
};

/// What `sinter doctor` prints about CUDA: NVRTC, the driver, the GPU, each found, or why not; and whether a kernel could be launched, which is
/// tried. Several lines, each ended.
std::string DescribeCuda(const DeviceOptions& options = {});

}  // namespace sinter::codegen::cuda
