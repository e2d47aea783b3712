#include "sinter/graph/dtype.h"

namespace sinter {
namespace {

constexpr std::string_view kNames[kNumDTypes] = {"float32", "float64", "float16", "bfloat16", "int8",
                                                 "uint8",   "int32",   "int64",   "bool"};

}  // namespace

std::string_view DTypeName(DType t) { return kNames[static_cast<int>(t)]; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  if (IsFloating(a) != IsFloating(b)) return IsFloating(a) ? a : b;
  if (IsFloating(a)) {
    if (a == kFloat64 || b == kFloat64) return kFloat64;
    return kFloat32;  // f32 with a half, or the two halves
  }
  if (a == kBool) return b;
  if (b == kBool) return a;
  if (a == kInt64 || b == kInt64) return kInt64;
  return kInt32;  // i32 with a byte, or the two bytes
}

}  // namespace sinter
