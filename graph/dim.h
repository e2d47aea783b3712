#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter {

namespace dim_internal {
struct Node;
}  // namespace dim_internal
class DimEnv;

/// A size: an integer, or an integer polynomial over named symbols with floordiv, min and max. Canonical: expressions that are equal
/// as polynomials are the same object, so `==` is identity. One word; constants are unboxed and never lock or allocate. Symbolic
/// nodes are interned and live as long as the process. Thread-safe. A constant that leaves 63 bits is an Error.
class Dim {
 public:
  /// What is known of a symbol. `max` is also what overflow checks and memory bounds rely on.
  struct Facts {
    int64_t min = 0;
    int64_t max = int64_t{1} << 40;
    int64_t multiple_of = 1;
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  constexpr Dim() : word_(1) {}
  Dim(int64_t v) : word_(Encode(v)) {}  // NOLINT: sizes mix freely with integers
  Dim(int v) : Dim(static_cast<int64_t>(v)) {}  // NOLINT
  Dim(size_t v) : Dim(static_cast<int64_t>(v)) {}  // NOLINT

  /// The symbol of this name with these facts: the same arguments give the same symbol. Bad facts are an Error.
  static Dim Symbol(std::string_view name, Facts facts);
  static Dim Symbol(std::string_view name) { return Symbol(name, Facts{}); }
  /// A symbol whose name (prefix and a number) nobody else has.
  static Dim Fresh(std::string_view prefix, Facts facts);
  static Dim Fresh(std::string_view prefix) { return Fresh(prefix, Facts{}); }
  /// Reads the text that ToString writes. `lookup` gives the symbol of a name. Text may be hostile: an Error at worst.
  static Dim Parse(std::string_view text, const std::function<Dim(std::string_view name)>& lookup);

  bool is_const() const { return word_ & 1; }
  /// The constant; an Error that names the expression if it is not one.
  int64_t value() const { return is_const() ? static_cast<int64_t>(word_) >> 1 : FailValue(); }
  bool is_symbol() const;
  /// Of a symbol.
  std::string symbol_name() const;
  Facts facts() const;

  /// "4*n*m + 2*floordiv(n, 2) - 1"; the order of terms depends on names alone.
  std::string ToString() const;
  /// The symbols that occur, by name.
  std::vector<Dim> Symbols() const;
  /// Sound bounds from the symbols' facts; saturating.
  int64_t lower_bound() const;
  int64_t upper_bound() const;
  /// The value under an assignment of every symbol; overflow or a missing symbol is an Error.
  int64_t Eval(const DimEnv& env) const;
  /// With symbols replaced.
  Dim Substitute(std::span<const std::pair<Dim, Dim>> replacements) const;

  Dim operator-() const { return Dim(0) - *this; }
  friend bool operator==(Dim a, Dim b) { return a.word_ == b.word_; }
  friend Dim operator+(Dim a, Dim b) {
    int64_t r;
    if (a.is_const() && b.is_const() && !__builtin_add_overflow(a.value(), b.value(), &r)) return Dim(r);
    return Add(a, b, 1);
  }
  friend Dim operator-(Dim a, Dim b) {
    int64_t r;
    if (a.is_const() && b.is_const() && !__builtin_sub_overflow(a.value(), b.value(), &r)) return Dim(r);
    return Add(a, b, -1);
  }
  friend Dim operator*(Dim a, Dim b) {
    int64_t r;
    if (a.is_const() && b.is_const() && !__builtin_mul_overflow(a.value(), b.value(), &r)) return Dim(r);
    return Multiply(a, b);
  }
  Dim& operator+=(Dim b) { return *this = *this + b; }
  Dim& operator*=(Dim b) { return *this = *this * b; }

  size_t Hash() const { return word_ * 0x9e3779b97f4a7c15u >> 7; }
  template <class H>
  friend H AbslHashValue(H h, Dim d) { return H::combine(std::move(h), d.word_); }

 private:
  friend struct dim_internal::Node;
  friend class DimEnv;
  friend struct DimAccess;
  static uint64_t Encode(int64_t v) {
    const uint64_t word = static_cast<uint64_t>(v) << 1 | 1;
    if (static_cast<int64_t>(word) >> 1 != v) FailOverflow();
    return word;
  }
  [[noreturn]] static void FailOverflow();
  [[noreturn]] int64_t FailValue() const;
  static Dim Add(Dim a, Dim b, int64_t sign);
  static Dim Multiply(Dim a, Dim b);
  explicit Dim(const dim_internal::Node* n) : word_(reinterpret_cast<uint64_t>(n)) {}
  const dim_internal::Node* node() const { return reinterpret_cast<const dim_internal::Node*>(word_); }

  uint64_t word_;
};

/// Rounded to minus infinity; the divisor must not be 0.
Dim FloorDiv(Dim a, Dim b);
Dim CeilDiv(Dim a, Dim b);
/// a - b * FloorDiv(a, b).
Dim Mod(Dim a, Dim b);
Dim Min(Dim a, Dim b);
Dim Max(Dim a, Dim b);

/// True or false where the facts decide, nothing where they don't.
std::optional<bool> ProvablyEqual(Dim a, Dim b);
std::optional<bool> ProvablyLe(Dim a, Dim b);
std::optional<bool> ProvablyLt(Dim a, Dim b);
/// Whether b divides a for sure.
bool ProvablyDivisible(Dim a, Dim b);

/// Values of symbols.
class DimEnv {
 public:
  /// Sets a symbol; breaking its facts is an Error that says so.
  void Set(Dim symbol, int64_t value);
  std::optional<int64_t> Get(Dim symbol) const;

 private:
  friend struct DimAccess;
  std::vector<std::pair<const dim_internal::Node*, int64_t>> values_;
};

/// A condition on sizes, as guards keep it.
struct DimCond {
  enum Op : uint8_t { kEq, kLe, kLt, kDivisible /* b divides a */ } op = kEq;
  Dim a, b;
  std::optional<bool> Decide() const;
  bool Eval(const DimEnv& env) const;
  /// "n == 2*m"
  std::string ToString() const;
  friend bool operator==(const DimCond&, const DimCond&) = default;
};

}  // namespace sinter

template <>
struct std::hash<sinter::Dim> {
  size_t operator()(sinter::Dim d) const { return d.Hash(); }
};
