#pragma once

#include <span>
#include <string>
#include <vector>

#include "sinter/graph/type.h"

namespace sinter::format {

/// An array of a .npy file, row-major.
struct NpyArray {
  DType dtype = kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;
};

/// Reads NumPy's format, versions 1 to 3, little-endian; Fortran order is converted. A bad file is an Error(kDataLoss).
NpyArray ReadNpy(const std::string& path);
/// Writes version 1, atomically. bfloat16 has no NumPy type and is an Error.
void WriteNpy(const std::string& path, DType dtype, const Shape& shape, std::span<const std::byte> bytes);

}  // namespace sinter::format
