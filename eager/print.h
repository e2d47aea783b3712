#pragma once

#include <iosfwd>
#include <string>

#include "sinter/eager/tensor.h"

namespace sinter {

struct PrintOptions {
  int precision = 4;         ///< digits behind the point
  int64_t threshold = 1000;  ///< tensors with more elements are printed by their edges
  int64_t edge = 3;          ///< elements shown at each end of a summarized dimension
  int line_width = 80;
};

/// Values as NumPy prints them, then the type where it isn't plain from the text:
///
///   [[1.0000, 2.5000],
///    [0.0000, 4.0000]]  float32[2, 2]
///
/// A tensor of a capture prints as its type.
std::string ToString(const Tensor& t, const PrintOptions& options = {});

std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace sinter
