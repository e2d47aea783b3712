#pragma once

#include <cstddef>

/// The controls of libfakecuda.so, for dlsym.
namespace sinter::sim_cuda {

struct FakeCudaLive {
  int blocks;    ///< allocations that were not freed
  int modules;   ///< modules that were not unloaded
  int contexts;  ///< retains that were not released
};

extern "C" {
/// The next calls of `call` (null: of all functions that report faults, but for the ones that only free) fail: after `skip` good ones, one
/// (or with `sticky` all, also the ones that free) with `result`. 0: none does. Returns
/// whether what was asked for before is still to come.
using FakeCudaFail = bool(const char* call, int skip, int result, bool sticky);
/// What can be allocated in all.
using FakeCudaLimit = void(size_t bytes);
/// How many devices there are, and their architecture.
using FakeCudaDevices = void(int count, int sm);
using FakeCudaLiveFn = FakeCudaLive();
/// The start of the last image given to cuModuleLoadData, up to its first NUL.
using FakeCudaImage = const char*();
/// How many times cuMemAlloc_v2 and cuLaunchKernel succeeded.
using FakeCudaCount = long(const char* call);
/// Forgets everything, leaks too.
using FakeCudaReset = void();
}

}  // namespace sinter::sim_cuda
