#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The functions of the CUDA driver that Sinter calls, opened at run time. Device is how they are used.
namespace sinter::codegen::cuda {

/// The driver's header is not needed: results are numbers (0 is success), devices are numbers, contexts, modules and functions are pointers,
/// device memory is a 64-bit address.
struct Driver {
  static constexpr int kOutOfMemory = 2;                       // CUDA_ERROR_OUT_OF_MEMORY
  static constexpr int kAttributeMajor = 75, kAttributeMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*retain)(void** context, int device) = nullptr;
  int (*release)(int device) = nullptr;
  int (*set_current)(void* context) = nullptr;
  int (*allocate)(uint64_t* address, size_t bytes) = nullptr;
  int (*free)(uint64_t address) = nullptr;
  int (*copy_in)(uint64_t to, const void* from, size_t bytes) = nullptr;
  int (*copy_out)(void* to, uint64_t from, size_t bytes) = nullptr;
  int (*load)(void** module, const void* image) = nullptr;
  int (*unload)(void* module) = nullptr;
  int (*get_function)(void** function, void* module, const char* name) = nullptr;
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** parameters, void** extra) = nullptr;
  int (*synchronize)() = nullptr;
  int (*error_name)(int result, const char** name) = nullptr;
  int (*error_string)(int result, const char** text) = nullptr;

  /// Empty, or why the library can't be used. It stays open: a driver has threads of its own.
  std::string Open(const std::string& library);

  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string Text(int result) const;
};

}  // namespace sinter::codegen::cuda
