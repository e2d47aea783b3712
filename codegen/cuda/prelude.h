#pragma once

namespace sinter::codegen::cuda {

/// The device functions that emitted kernels call; no header is included, so compilation is quick.
extern const char kPrelude[];

}  // namespace sinter::codegen::cuda
