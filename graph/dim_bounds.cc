#include <algorithm>
#include <numeric>

#include "sinter/graph/dim.h"
#include "sinter/graph/dim_cond.h"
#include "sinter/graph/dim_internal.h"

// What is known of every value of a size: bounds from the symbols' facts, and what follows from them.
namespace sinter {
namespace dim_internal {
namespace {

constexpr int64_t kInf = INT64_MAX;

int64_t Saturate(__int128 v) { return v > kInf ? kInf : v < -kInf ? -kInf : static_cast<int64_t>(v); }

Interval operator+(Interval a, Interval b) {
  auto add = [](int64_t x, int64_t y) { return x == kInf || y == kInf ? kInf : x == -kInf || y == -kInf ? -kInf : Saturate(static_cast<__int128>(x) + y); };
  auto low = [](int64_t x, int64_t y) { return x == -kInf || y == -kInf ? -kInf : x == kInf || y == kInf ? kInf : Saturate(static_cast<__int128>(x) + y); };
  return {low(a.low, b.low), add(a.high, b.high)};
}

Interval operator*(Interval a, Interval b) {
  auto mul = [](int64_t x, int64_t y) { return x == 0 || y == 0 ? int64_t{0} : Saturate(static_cast<__int128>(x) * y); };
  const int64_t p[] = {mul(a.low, b.low), mul(a.low, b.high), mul(a.high, b.low), mul(a.high, b.high)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

}  // namespace

Interval Bounds(const Node* n) {
  switch (n->kind) {
    case Kind::kSymbol:
      return {CeilDiv(n->facts.min, n->facts.multiple_of), FloorDiv(n->facts.max, n->facts.multiple_of)};
    case Kind::kFloorDiv: {
      const Interval a = Bounds(n->args[0]), b = Bounds(n->args[1]);
      if (b.low <= 0 && b.high >= 0) return {-kInf, kInf};
      auto div = [](int64_t x, int64_t y) { return x == kInf || x == -kInf ? (y > 0 ? x : -x) : FloorDiv(x, y); };
      const int64_t p[] = {div(a.low, b.low), div(a.low, b.high), div(a.high, b.low), div(a.high, b.high)};
      return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
    }
    case Kind::kMin:
    case Kind::kMax: {
      Interval r = Bounds(n->args[0]);
      for (size_t i = 1; i < n->args.size(); ++i) {
        const Interval b = Bounds(n->args[i]);
        r = n->kind == Kind::kMin ? Interval{std::min(r.low, b.low), std::min(r.high, b.high)}
                                  : Interval{std::max(r.low, b.low), std::max(r.high, b.high)};
      }
      return r;
    }
    case Kind::kPoly: {
      Interval r{n->poly.constant, n->poly.constant};
      for (const Term& t : n->poly.terms) {
        Interval m{t.coefficient, t.coefficient};
        for (const auto& [atom, power] : t.monomial) {
          const Interval a = Bounds(atom);
          for (int i = 0; i < power; ++i) m = m * a;
        }
        r = r + m;
      }
      return r;
    }
  }
  return {-kInf, kInf};
}

Interval Bounds(Dim d) { return d.is_const() ? Interval{d.value(), d.value()} : Bounds(DimAccess::node(d)); }

}  // namespace dim_internal

using namespace dim_internal;

int64_t Dim::lower_bound() const { return Bounds(*this).low; }
int64_t Dim::upper_bound() const { return Bounds(*this).high; }

std::optional<bool> ProvablyEqual(Dim a, Dim b) {
  if (a == b) return true;
  const Dim d = a - b;
  if (d.is_const()) return false;
  const Interval r = Bounds(d);
  if (r.low > 0 || r.high < 0) return false;
  if (r.low == 0 && r.high == 0) return true;
  const Poly p = ToPoly(d);
  int64_t g = 0;
  for (const Term& t : p.terms) g = std::gcd(g, t.coefficient);
  if (g > 1 && p.constant % g != 0) return false;
  return std::nullopt;
}

std::optional<bool> ProvablyLe(Dim a, Dim b) {
  const Interval r = Bounds(b - a);
  if (r.low >= 0) return true;
  if (r.high < 0) return false;
  return std::nullopt;
}

std::optional<bool> ProvablyLt(Dim a, Dim b) { return ProvablyLe(a + Dim(1), b); }

bool ProvablyDivisible(Dim a, Dim b) { return !(b == Dim(0)) && Mod(a, b) == Dim(0); }

std::optional<bool> DimCond::Decide() const {
  switch (op) {
    case kEq: return ProvablyEqual(a, b);
    case kLe: return ProvablyLe(a, b);
    case kLt: return ProvablyLt(a, b);
    case kDivisible:
      if (ProvablyDivisible(a, b)) return true;
      if (a.is_const() && b.is_const()) return false;
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sinter
