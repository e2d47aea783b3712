#pragma once

#include <cstdint>
#include <string>

#include "sinter/graph/expr.h"

/// Pieces of CUDA C++ text; what they call is in the prelude.
namespace sinter::codegen::cuda {

/// The type of an element in memory; half types are u16.
const char* TypeName(DType t);
/// A constant of a compute type, by its bits.
std::string ConstantText(DType t, uint64_t bits);
/// `x` of type `from` as `to`; semantics as kConvert.
std::string ConvertText(DType from, DType to, const std::string& x);
/// One combination of a reduction (not kContract).
std::string CombineText(ReduceKind kind, DType t, const std::string& a, const std::string& b);

}  // namespace sinter::codegen::cuda
