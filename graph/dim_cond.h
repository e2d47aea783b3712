#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "sinter/graph/dim.h"

namespace sinter {

/// A condition on sizes: what a shape rule requires of int64_t (decided at once) or of Dim (perhaps a guard).
template <class D>
using CondOf = std::conditional_t<std::is_same_v<D, Dim>, DimCond, bool>;

inline std::optional<bool> Decide(bool c) { return c; }
inline std::optional<bool> Decide(const DimCond& c) { return c.Decide(); }

inline bool EqCond(int64_t a, int64_t b) { return a == b; }
inline bool LeCond(int64_t a, int64_t b) { return a <= b; }
inline bool DivisibleCond(int64_t a, int64_t b) { return b != 0 && a % b == 0; }
inline DimCond EqCond(Dim a, Dim b) { return {DimCond::kEq, a, b}; }
inline DimCond LeCond(Dim a, Dim b) { return {DimCond::kLe, a, b}; }
inline DimCond DivisibleCond(Dim a, Dim b) { return {DimCond::kDivisible, a, b}; }

/// Floor division and remainder as Dim has them, for plain sizes.
inline int64_t FloorDiv(int64_t a, int64_t b) { int64_t q = a / b; return q - (a % b != 0 && (a % b < 0) != (b < 0)); }
inline int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }
inline int64_t Mod(int64_t a, int64_t b) { return a - FloorDiv(a, b) * b; }
inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
/// Whether a size is the constant 1 (a broadcast size).
inline bool IsOne(int64_t d) { return d == 1; }
inline bool IsOne(Dim d) { return d.is_const() && d.value() == 1; }

}  // namespace sinter
