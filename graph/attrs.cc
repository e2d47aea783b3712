#include "sinter/graph/attrs.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "sinter/graph/strings.h"
#include "absl/strings/str_format.h"
#include "sinter/graph/error.h"

namespace sinter {
namespace {

size_t HashBytes(const void* p, size_t n) { return std::hash<std::string_view>()({static_cast<const char*>(p), n}); }

// Shortest text that reads back as the same double.
std::string DoubleToString(double v) {
  for (int digits : {6, 9, 17}) {
    std::string s = absl::StrFormat("%.*g", digits, v);
    if (std::strtod(s.c_str(), nullptr) == v || v != v) return s.find_first_of(".einf") == std::string::npos ? s + ".0" : s;
  }
  return absl::StrFormat("%a", v);
}

std::string DimList(const std::vector<Dim>& dims) {
  return Join(dims, ", ", [](std::string* out, Dim d) { StrAppend(out, d.ToString()); });
}

struct ToText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return StrCat(v); }
  std::string operator()(double v) const { return DoubleToString(v); }
  std::string operator()(const std::string& v) const { return StrCat("\"", absl::CEscape({v.data(), v.size()}), "\""); }
  std::string operator()(DType v) const { return std::string(DTypeName(v)); }
  std::string operator()(const std::vector<int64_t>& v) const { return StrCat("[", Join(v, ", "), "]"); }
  std::string operator()(Dim v) const { return StrCat("(", v.ToString(), ")"); }
  std::string operator()(const std::vector<Dim>& v) const { return StrCat("<", DimList(v), ">"); }
  std::string operator()(const TensorLiteral& v) const {
    std::string hex;
    if (v.bytes) hex = absl::BytesToHexString({reinterpret_cast<const char*>(v.bytes->data()), v.bytes->size()});
    return StrCat("tensor(", DTypeName(v.dtype), ShapeToString(v.shape), " 0x", hex, ")");
  }
};

}  // namespace

bool operator==(const TensorLiteral& a, const TensorLiteral& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.bytes == b.bytes || (a.bytes && b.bytes && *a.bytes == *b.bytes));
}

std::string AttrValueToString(const AttrValue& v) { return std::visit(ToText(), v); }

size_t HashAttrValue(const AttrValue& v) {
  size_t h = v.index() * 0x9e3779b97f4a7c15u;
  return h ^ std::visit(
                 [](const auto& x) -> size_t {
                   using T = std::decay_t<decltype(x)>;
                   if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
                     return HashBytes(x.data(), x.size() * sizeof(int64_t));
                   } else if constexpr (std::is_same_v<T, std::vector<Dim>>) {
                     size_t r = x.size();
                     for (Dim d : x) r = r * 31 + std::hash<Dim>()(d);
                     return r;
                   } else if constexpr (std::is_same_v<T, TensorLiteral>) {
                     return x.bytes ? HashBytes(x.bytes->data(), x.bytes->size()) : 0;
                   } else {
                     return std::hash<T>()(x);
                   }
                 },
                 v);
}

bool SameAttrValue(const AttrValue& a, const AttrValue& b) {
  const double *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr) return std::memcmp(x, y, sizeof(double)) == 0;
  return a == b;
}

std::string AttrsToString(const AttrPtr& a) {
  if (!a) return "";
  return Join(a->Fields(), ", ", [](std::string* out, const AttrField& f) {
    StrAppend(out, f.name, " = ", AttrValueToString(f.value));
  });
}

namespace attrs_internal {

void FailCast() { throw InternalError(__FILE__, __LINE__, "attributes of another op"); }

void FailField(std::string_view name, std::string_view problem) {
  throw Error(ErrorCode::kInvalidArgument, StrCat("attribute '", name, "' ", problem));
}

}  // namespace attrs_internal
}  // namespace sinter
