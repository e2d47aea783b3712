#pragma once

#include <string>
#include <vector>

#include "sinter/codegen/cuda/emit_cuda.h"

/// Emitted kernels as machine code of NVIDIA devices. NVRTC is opened at run time: a program that uses this file also starts where
/// there is none.
namespace sinter::codegen::cuda {

/// Whether NVRTC can be used; if not, `why` (may be null) says what is missing.
bool NvrtcAvailable(std::string* why);

/// "13.0" and the file it was loaded from. Throws kUnavailable without NVRTC.
std::string NvrtcVersion();

/// The compute capabilities that the NVRTC found can compile for, ascending: 80 is sm_80. Empty without NVRTC.
std::vector<int> NvrtcArchs();

struct CompiledCuda {
  std::string cubin;  ///< ELF, for exactly the architecture asked for
  std::string ptx;    ///< for devices newer than NVRTC: the driver compiles it
  std::string log;    ///< warnings
};

/// Compiles for sm_`sm`, without contraction and with exact division and roots. Throws kUnavailable without NVRTC and
/// kInvalidArgument with NVRTC's log where the source is at fault.
CompiledCuda CompileCubin(const CudaSource& source, int sm);

}  // namespace sinter::codegen::cuda
