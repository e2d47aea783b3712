#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sinter/graph/type.h"

/// Attributes of an op: a plain struct with default values whose fields are listed once,
///
///   struct Attrs { int64_t dim = -1; bool keepdim = false; SINTER_FIELDS(dim, keepdim) };
///
/// From the list follow equality, hash, printing, parsing and serialization.
namespace sinter {

/// A tensor written into a graph: row-major bytes. Shared, immutable.
struct TensorLiteral {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  friend bool operator==(const TensorLiteral& a, const TensorLiteral& b);
};

/// Every type that a field may have. The order is part of the file format: append only.
using AttrValue = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, Dim, std::vector<Dim>,
                               TensorLiteral>;

std::string AttrValueToString(const AttrValue& v);
size_t HashAttrValue(const AttrValue& v);
/// Equality of content: doubles by their bits, so that NaN equals itself and -0 is not 0.
bool SameAttrValue(const AttrValue& a, const AttrValue& b);

struct AttrField {
  std::string name;
  AttrValue value;
};

/// A type-erased, immutable attribute struct.
class AttrBox {
 public:
  virtual ~AttrBox() = default;
  virtual bool Equals(const AttrBox& other) const = 0;
  virtual size_t Hash() const = 0;
  virtual std::vector<AttrField> Fields() const = 0;
  virtual const void* Raw(const void* type_tag) const = 0;

  /// The struct itself; asking for another type is an InternalError.
  template <class A>
  const A& As() const;
};
using AttrPtr = std::shared_ptr<const AttrBox>;

inline bool AttrsEqual(const AttrPtr& a, const AttrPtr& b) { return a == b || (a && b && a->Equals(*b)); }
/// "dim = -1, keepdim = true"; empty for no attributes.
std::string AttrsToString(const AttrPtr& a);

/// Attributes of an op that has none.
struct NoAttrs {
  template <class Self, class V>
  static void VisitFields(Self&, V&&) {}
};

namespace attrs_internal {

template <class A>
inline constexpr char kTypeTag = 0;

[[noreturn]] void FailCast();
[[noreturn]] void FailField(std::string_view name, std::string_view problem);

template <class T>
AttrValue ToValue(const T& v) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> || std::is_same_v<T, DType> || std::is_same_v<T, Dim> ||
                std::is_same_v<T, TensorLiteral> || std::is_same_v<T, std::string>) {
    return AttrValue(v);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return AttrValue(static_cast<int64_t>(v));
  } else if constexpr (std::is_same_v<typename T::value_type, Dim>) {
    return AttrValue(std::vector<Dim>(v.begin(), v.end()));
  } else {
    return AttrValue(std::vector<int64_t>(v.begin(), v.end()));
  }
}

template <class T>
void FromValue(std::string_view name, const AttrValue& from, T& to) {
  auto get = [&]<class S>(std::type_identity<S>) -> const S& {
    const S* p = std::get_if<S>(&from);
    if (p == nullptr) FailField(name, "has a value of another type");
    return *p;
  };
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> || std::is_same_v<T, DType> || std::is_same_v<T, Dim> ||
                std::is_same_v<T, TensorLiteral> || std::is_same_v<T, std::string>) {
    to = get(std::type_identity<T>());
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    to = static_cast<T>(get(std::type_identity<int64_t>()));
  } else if constexpr (std::is_same_v<typename T::value_type, Dim>) {
    const auto& v = get(std::type_identity<std::vector<Dim>>());
    to = T(v.begin(), v.end());
  } else {
    const auto& v = get(std::type_identity<std::vector<int64_t>>());
    to = T(v.begin(), v.end());
  }
}

template <class A>
class Box final : public AttrBox {
 public:
  explicit Box(A a) : value_(std::move(a)) {}
  bool Equals(const AttrBox& other) const override {
    const void* p = other.Raw(&kTypeTag<A>);
    if (p == nullptr) return false;
    bool equal = true;
    std::vector<AttrValue> mine;
    A::VisitFields(value_, [&](std::string_view, const auto& f) { mine.push_back(ToValue(f)); });
    size_t i = 0;
    A::VisitFields(*static_cast<const A*>(p), [&](std::string_view, const auto& f) { equal = equal && SameAttrValue(mine[i++], ToValue(f)); });
    return equal;
  }
  size_t Hash() const override {
    size_t h = 0;
    A::VisitFields(value_, [&](std::string_view, const auto& f) { h = h * 0x9e3779b97f4a7c15u + HashAttrValue(ToValue(f)); });
    return h;
  }
  std::vector<AttrField> Fields() const override {
    std::vector<AttrField> fields;
    A::VisitFields(value_, [&](std::string_view name, const auto& f) { fields.push_back({std::string(name), ToValue(f)}); });
    return fields;
  }
  const void* Raw(const void* tag) const override { return tag == &kTypeTag<A> ? &value_ : nullptr; }

 private:
  A value_;
};

}  // namespace attrs_internal

template <class A>
const A& AttrBox::As() const {
  const void* p = Raw(&attrs_internal::kTypeTag<A>);
  if (p == nullptr) attrs_internal::FailCast();
  return *static_cast<const A*>(p);
}

/// Attributes for a call; none for NoAttrs.
template <class A>
AttrPtr MakeAttrs(A a) {
  if constexpr (std::is_same_v<A, NoAttrs>) {
    return nullptr;
  } else {
    return std::make_shared<attrs_internal::Box<A>>(std::move(a));
  }
}

/// Attributes from named fields, as a file or a text has them. Fields that are missing keep their default; an unknown
/// name or another type is an Error.
template <class A>
AttrPtr AttrsFromFields(std::span<const AttrField> fields) {
  A a{};
  std::vector<bool> used(fields.size());
  A::VisitFields(a, [&](std::string_view name, auto& f) {
    for (size_t i = 0; i < fields.size(); ++i)
      if (fields[i].name == name) {
        attrs_internal::FromValue(name, fields[i].value, f);
        used[i] = true;
      }
  });
  for (size_t i = 0; i < fields.size(); ++i)
    if (!used[i]) attrs_internal::FailField(fields[i].name, "is not known");
  return MakeAttrs(std::move(a));
}

// SINTER_FIELDS(a, b, ...) ---------------------------------------------------------------------------------------
#define SINTER_PARENS ()
#define SINTER_EXPAND(...) SINTER_EXPAND3(SINTER_EXPAND3(SINTER_EXPAND3(__VA_ARGS__)))
#define SINTER_EXPAND3(...) SINTER_EXPAND2(SINTER_EXPAND2(SINTER_EXPAND2(__VA_ARGS__)))
#define SINTER_EXPAND2(...) SINTER_EXPAND1(SINTER_EXPAND1(SINTER_EXPAND1(__VA_ARGS__)))
#define SINTER_EXPAND1(...) __VA_ARGS__
#define SINTER_FOR_EACH(macro, ...) __VA_OPT__(SINTER_EXPAND(SINTER_FOR_EACH_NEXT(macro, __VA_ARGS__)))
#define SINTER_FOR_EACH_NEXT(macro, first, ...) \
  macro(first) __VA_OPT__(SINTER_FOR_EACH_AGAIN SINTER_PARENS(macro, __VA_ARGS__))
#define SINTER_FOR_EACH_AGAIN() SINTER_FOR_EACH_NEXT
#define SINTER_VISIT_FIELD(f) visit_fn(::std::string_view(#f), self.f);

#define SINTER_FIELDS(...)                                      \
  template <class Self, class V>                                \
  static void VisitFields(Self& self, V&& visit_fn) {           \
    SINTER_FOR_EACH(SINTER_VISIT_FIELD, __VA_ARGS__)            \
  }

}  // namespace sinter
