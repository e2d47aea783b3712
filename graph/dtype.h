#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinter {

/// The type of a tensor's elements. The values are part of the file format: append only.
enum class DType : uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,
  kUInt8 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 8,
};
inline constexpr int kNumDTypes = 9;

inline constexpr DType kFloat32 = DType::kFloat32;
inline constexpr DType kFloat64 = DType::kFloat64;
inline constexpr DType kFloat16 = DType::kFloat16;
inline constexpr DType kBFloat16 = DType::kBFloat16;
inline constexpr DType kInt8 = DType::kInt8;
inline constexpr DType kUInt8 = DType::kUInt8;
inline constexpr DType kInt32 = DType::kInt32;
inline constexpr DType kInt64 = DType::kInt64;
inline constexpr DType kBool = DType::kBool;

/// Bytes of one element. A bool is one byte, 0 or 1.
constexpr int ItemSize(DType t) {
  constexpr int kSizes[kNumDTypes] = {4, 8, 2, 2, 1, 1, 4, 8, 1};
  return kSizes[static_cast<int>(t)];
}

/// "float32", "bfloat16", "bool", ...
std::string_view DTypeName(DType t);
std::optional<DType> DTypeFromName(std::string_view name);

constexpr bool IsFloating(DType t) { return t <= DType::kBFloat16; }
constexpr bool IsInteger(DType t) { return t >= DType::kInt8 && t <= DType::kInt64; }

/// The type in which a value of type `t` is computed: f16 and bf16 compute in f32, i8 and u8 in i32, others as they are.
constexpr DType ComputeType(DType t) {
  switch (t) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return DType::kFloat32;
    case DType::kInt8:
    case DType::kUInt8:
      return DType::kInt32;
    default:
      return t;
  }
}

/// The type of the result of arithmetic on both: the wider of one class; floating over integer over bool;
/// float16 with bfloat16 gives float32, int8 with uint8 gives int32.
DType PromoteTypes(DType a, DType b);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <>
struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <>
struct DTypeOf<int8_t> { static constexpr DType value = DType::kInt8; };
template <>
struct DTypeOf<uint8_t> { static constexpr DType value = DType::kUInt8; };
template <>
struct DTypeOf<int32_t> { static constexpr DType value = DType::kInt32; };
template <>
struct DTypeOf<int64_t> { static constexpr DType value = DType::kInt64; };
template <>
struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };

}  // namespace sinter
