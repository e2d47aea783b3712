#include "sinter/codegen/cuda/cuda_text.h"

#include "sinter/graph/strings.h"

namespace sinter::codegen::cuda {

const char* TypeName(DType t) {
  switch (t) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "i64";
    case DType::kBool:
      return "bool";
    case DType::kInt8:
      return "signed char";
    case DType::kUInt8:
      return "unsigned char";
    default:
      return "u16";
  }
}

std::string ConstantText(DType t, uint64_t bits) {
  switch (t) {
    case DType::kFloat32:
      return StrCat("__int_as_float(", static_cast<int32_t>(bits) == INT32_MIN ? std::string("(int)0x80000000") : StrCat(static_cast<int32_t>(bits)),
                    ")");
    case DType::kFloat64:
      return StrCat("__longlong_as_double((i64)", bits, "ull)");
    case DType::kInt32:
      return StrCat("(int)", static_cast<uint32_t>(bits), "u");
    case DType::kInt64:
      return StrCat("(i64)", bits, "ull");
    default:
      return bits ? "true" : "false";
  }
}

std::string ConvertText(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (from == kFloat16) return ConvertText(kFloat32, to, StrCat("s_h2f(", x, ")"));
  if (from == kBFloat16) return ConvertText(kFloat32, to, StrCat("s_bf2f(", x, ")"));
  const bool floating = IsFloating(from);
  switch (to) {
    case DType::kFloat32:
      return StrCat("(float)(", x, ")");
    case DType::kFloat64:
      return StrCat("(double)(", x, ")");
    case DType::kFloat16:
      return StrCat("s_f2h(", from == kFloat64 ? StrCat("s_odd(", x, ")") : StrCat("(float)(", x, ")"), ")");
    case DType::kBFloat16:
      return StrCat("s_f2bf(", from == kFloat64 ? StrCat("s_odd(", x, ")") : StrCat("(float)(", x, ")"), ")");
    case DType::kInt32:
      return floating ? StrCat("s_f2i(", x, ")") : StrCat("(int)(", x, ")");
    case DType::kInt64:
      return floating ? StrCat("s_f2l(", x, ")") : StrCat("(i64)(", x, ")");
    case DType::kInt8:
      return StrCat("(signed char)(", floating ? StrCat("s_clamp(s_f2i(", x, "), -128, 127)") : x, ")");
    case DType::kUInt8:
      return StrCat("(unsigned char)(", floating ? StrCat("s_clamp(s_f2i(", x, "), 0, 255)") : x, ")");
    case DType::kBool:
      return StrCat("(", x, ") != 0");
  }
  return x;
}

std::string CombineText(ReduceKind kind, DType t, const std::string& a, const std::string& b) {
  const bool floating = IsFloating(t);
  switch (kind) {
    case ReduceKind::kSum:
      return floating ? StrCat(a, " + ", b) : StrCat("s_add(", a, ", ", b, ")");
    case ReduceKind::kProd:
      return floating ? StrCat(a, " * ", b) : t == kBool ? StrCat(a, " && ", b) : StrCat("s_mul(", a, ", ", b, ")");
    case ReduceKind::kMax:
      return t == kBool ? StrCat(a, " || ", b) : StrCat("s_max(", a, ", ", b, ")");
    case ReduceKind::kMin:
      return t == kBool ? StrCat(a, " && ", b) : StrCat("s_min(", a, ", ", b, ")");
    case ReduceKind::kAny:
      return StrCat(a, " || ", b);
    case ReduceKind::kAll:
      return StrCat(a, " && ", b);
    case ReduceKind::kContract:
      break;
  }
  return a;
}

}  // namespace sinter::codegen::cuda
