#include <algorithm>

#include "sinter/graph/dim.h"
#include "sinter/graph/dim_cond.h"
#include "sinter/graph/dim_internal.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

// Symbols and their values: which occur, evaluation, substitution.
namespace sinter {

using namespace dim_internal;

namespace {

// The symbol node behind a Dim that is one: the atom itself, or its multiple.
const Node* SymbolNode(Dim d) {
  if (d.is_const()) return nullptr;
  const Node* n = DimAccess::node(d);
  if (n->kind == Kind::kSymbol) return n->facts.multiple_of == 1 ? n : nullptr;
  if (n->kind != Kind::kPoly || n->poly.constant != 0 || n->poly.terms.size() != 1) return nullptr;
  const Term& t = n->poly.terms[0];
  if (t.monomial.size() != 1 || t.monomial[0].second != 1) return nullptr;
  const Node* atom = t.monomial[0].first;
  return atom->kind == Kind::kSymbol && atom->facts.multiple_of == t.coefficient ? atom : nullptr;
}

void CollectSymbols(const Node* n, std::vector<const Node*>& out) {
  if (n->kind == Kind::kSymbol) {
    if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  } else if (n->kind == Kind::kPoly) {
    for (const Term& t : n->poly.terms)
      for (const auto& f : t.monomial) CollectSymbols(f.first, out);
  } else {
    for (Dim a : n->args)
      if (!a.is_const()) CollectSymbols(DimAccess::node(a), out);
  }
}

int64_t EvalNode(const Node* n, const DimEnv& env) {
  auto arg = [&](Dim d) { return d.Eval(env); };
  switch (n->kind) {
    case Kind::kSymbol:
      for (const auto& [symbol, value] : DimAccess::values(env))
        if (symbol == n) return value;
      throw Error(ErrorCode::kFailedPrecondition, StrCat("the size of dimension '", n->name, "' is not known"));
    case Kind::kFloorDiv: {
      const int64_t b = arg(n->args[1]);
      if (b == 0) throw Error(ErrorCode::kInvalidArgument, StrCat("division by zero in the size ", n->text));
      const int64_t a = arg(n->args[0]);
      if (b == -1 && a == INT64_MIN) throw Error(ErrorCode::kInvalidArgument, StrCat("the size ", n->text, " overflows"));
      return FloorDiv(a, b);
    }
    case Kind::kMin:
    case Kind::kMax: {
      int64_t r = arg(n->args[0]);
      for (size_t i = 1; i < n->args.size(); ++i) r = n->kind == Kind::kMin ? std::min(r, arg(n->args[i])) : std::max(r, arg(n->args[i]));
      return r;
    }
    case Kind::kPoly: {
      __int128 sum = n->poly.constant;
      for (const Term& t : n->poly.terms) {
        __int128 m = t.coefficient;
        for (const auto& [atom, power] : t.monomial) {
          const int64_t v = EvalNode(atom, env);
          for (int i = 0; i < power; ++i) {
            m *= v;
            if (m > INT64_MAX || m < INT64_MIN) throw Error(ErrorCode::kInvalidArgument, StrCat("the size ", n->text, " overflows"));
          }
        }
        sum += m;
        if (sum > INT64_MAX || sum < INT64_MIN) throw Error(ErrorCode::kInvalidArgument, StrCat("the size ", n->text, " overflows"));
      }
      return static_cast<int64_t>(sum);
    }
  }
  return 0;
}

}  // namespace

bool Dim::is_symbol() const { return SymbolNode(*this) != nullptr; }

std::string Dim::symbol_name() const {
  const Node* n = SymbolNode(*this);
  SINTER_CHECK(n != nullptr, "not a symbol: " + ToString());
  return n->name;
}

Dim::Facts Dim::facts() const {
  const Node* n = SymbolNode(*this);
  SINTER_CHECK(n != nullptr, "not a symbol: " + ToString());
  return n->facts;
}

std::vector<Dim> Dim::Symbols() const {
  std::vector<const Node*> nodes;
  if (!is_const()) CollectSymbols(node(), nodes);
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->name != b->name ? a->name < b->name : a->id < b->id; });
  std::vector<Dim> out;
  for (const Node* n : nodes) out.push_back(Dim(n->facts.multiple_of) * Dim(n));
  return out;
}

int64_t Dim::Eval(const DimEnv& env) const { return is_const() ? value() : EvalNode(node(), env); }

Dim Dim::Substitute(std::span<const std::pair<Dim, Dim>> replacements) const {
  if (is_const()) return *this;
  const Node* n = node();
  switch (n->kind) {
    case Kind::kSymbol:
      for (const auto& [from, to] : replacements)
        if (SymbolNode(from) == n) return n->facts.multiple_of == 1 ? to : FloorDiv(to, Dim(n->facts.multiple_of));
      return *this;
    case Kind::kPoly: {
      Dim sum = Dim(n->poly.constant);
      for (const Term& t : n->poly.terms) {
        Dim m = Dim(t.coefficient);
        for (const auto& [atom, power] : t.monomial) {
          const Dim v = Dim(atom).Substitute(replacements);
          for (int i = 0; i < power; ++i) m = m * v;
        }
        sum = sum + m;
      }
      return sum;
    }
    default: {
      Dim r = n->args[0].Substitute(replacements);
      for (size_t i = 1; i < n->args.size(); ++i) {
        const Dim b = n->args[i].Substitute(replacements);
        r = n->kind == Kind::kFloorDiv ? FloorDiv(r, b) : n->kind == Kind::kMin ? Min(r, b) : Max(r, b);
      }
      return r;
    }
  }
}

void DimEnv::Set(Dim symbol, int64_t value) {
  const Node* n = SymbolNode(symbol);
  SINTER_CHECK(n != nullptr, "only symbols have values: " + symbol.ToString());
  const Dim::Facts& f = n->facts;
  if (value < f.min || value > f.max || value % f.multiple_of != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("dimension '", n->name, "' is ", value, ", but it was declared ", value < f.min   ? StrCat("to be at least ", f.min)
                             : value > f.max ? StrCat("to be at most ", f.max)
                                             : StrCat("to be a multiple of ", f.multiple_of)));
  }
  value /= f.multiple_of;
  for (auto& [known, old] : values_)
    if (known == n) {
      old = value;
      return;
    }
  values_.emplace_back(n, value);
}

std::optional<int64_t> DimEnv::Get(Dim symbol) const {
  const Node* n = SymbolNode(symbol);
  for (const auto& [known, value] : values_)
    if (known == n) return value * n->facts.multiple_of;
  return std::nullopt;
}

bool DimCond::Eval(const DimEnv& env) const {
  const int64_t x = a.Eval(env), y = b.Eval(env);
  switch (op) {
    case kEq: return x == y;
    case kLe: return x <= y;
    case kLt: return x < y;
    case kDivisible: return y != 0 && x % y == 0;
  }
  return false;
}

std::string DimCond::ToString() const {
  static constexpr std::string_view kOps[] = {" == ", " <= ", " < ", " is a multiple of "};
  return StrCat(a.ToString(), kOps[op], b.ToString());
}

}  // namespace sinter
