#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sinter/graph/dim.h"

/// The representation behind Dim. Only graph/dim*.cc include this.
namespace sinter {

struct DimAccess {
  static const dim_internal::Node* node(Dim d) { return d.node(); }
  static Dim FromNode(const dim_internal::Node* n) { return Dim(n); }
  static const auto& values(const DimEnv& env) { return env.values_; }
};

namespace dim_internal {

enum class Kind : uint8_t { kSymbol, kPoly, kFloorDiv, kMin, kMax };

struct Node;
/// Product of powers of atoms (symbols, floordiv, min, max), sorted by name.
using Monomial = std::vector<std::pair<const Node*, int>>;
struct Term {
  int64_t coefficient = 1;
  Monomial monomial;
};
struct Poly {
  int64_t constant = 0;
  std::vector<Term> terms;  ///< sorted, distinct, without zeros
};

struct Node {
  Kind kind = Kind::kSymbol;
  uint64_t id = 0;
  std::string text;
  std::string name;          // kSymbol
  Dim::Facts facts;          // kSymbol; the node is the symbol divided by multiple_of
  Poly poly;                 // kPoly
  std::vector<Dim> args;     // the others
};

struct Interval {
  int64_t low, high;  ///< +-INT64_MAX: unbounded
};

Poly ToPoly(Dim d);
Dim FromPoly(Poly p);
Dim MakeAtom(Kind kind, std::vector<Dim> args);
Interval Bounds(const Node* n);
Interval Bounds(Dim d);

}  // namespace dim_internal
}  // namespace sinter
