#pragma once

namespace sinter::sim_cuda {

/// What CUDA C++ needs in order to compile for the host: goes in front of the text of a kernel.
extern const char kShim[];

/// The built-in indices, one set per host thread; kernels see them through `sinter_sim_state`. As in the shim.
struct SimIndex {
  unsigned x = 0, y = 0, z = 0;
};
struct SimState {
  SimIndex thread, block, block_dim, grid_dim;
  /// Waits for the block (`mask` 0) or for the lanes of the warp in `mask`.
  void (*wait)(unsigned mask) = nullptr;
  /// 8 bytes for every lane of the warp, for exchanges.
  unsigned long long* (*exchange)() = nullptr;
};

}  // namespace sinter::sim_cuda
