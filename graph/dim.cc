#include "sinter/graph/dim.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "sinter/graph/dim_cond.h"
#include "sinter/graph/dim_internal.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

// Canonical forms: interned nodes, polynomials, and the atoms floordiv, min and max.
namespace sinter {
namespace dim_internal {
namespace {

std::mutex mutex;
std::map<std::string, std::unique_ptr<Node>, std::less<>>& Nodes() {
  static auto* nodes = new std::map<std::string, std::unique_ptr<Node>, std::less<>>();
  return *nodes;
}

const Node* Intern(std::string key, Node node) {
  static std::atomic<uint64_t> next_id{1};
  std::lock_guard lock(mutex);
  auto& slot = Nodes()[std::move(key)];
  if (!slot) {
    node.id = next_id++;
    slot = std::make_unique<Node>(std::move(node));
  }
  return slot.get();
}

std::string Ref(Dim d) { return d.is_const() ? StrCat(d.value()) : StrCat("#", DimAccess::node(d)->id); }

bool AtomLess(const Node* a, const Node* b) { return a->text != b->text ? a->text < b->text : a->id < b->id; }

int Degree(const Monomial& m) {
  return std::accumulate(m.begin(), m.end(), 0, [](int s, const auto& f) { return s + f.second; });
}

bool MonomialLess(const Monomial& a, const Monomial& b) {
  // Higher degree first, then by name.
  if (Degree(a) != Degree(b)) return Degree(a) > Degree(b);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].first != b[i].first) return AtomLess(a[i].first, b[i].first);
    if (a[i].second != b[i].second) return a[i].second > b[i].second;
  }
  return a.size() < b.size();
}

Monomial Times(const Monomial& a, const Monomial& b) {
  Monomial r;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && AtomLess(a[i].first, b[j].first))) r.push_back(a[i++]);
    else if (i == a.size() || AtomLess(b[j].first, a[i].first)) r.push_back(b[j++]);
    else r.emplace_back(a[i].first, a[i].second + b[j].second), ++i, ++j;
  }
  return r;
}

int64_t Checked(__int128 v) {
  if (v > (INT64_MAX >> 1) || v < -(INT64_MAX >> 1)) throw Error(ErrorCode::kInvalidArgument, "a size expression overflows 63 bits");
  return static_cast<int64_t>(v);
}

// Collects equal monomials, drops zeros, sorts.
void Normalize(Poly& p) {
  std::sort(p.terms.begin(), p.terms.end(), [](const Term& a, const Term& b) { return MonomialLess(a.monomial, b.monomial); });
  std::vector<Term> out;
  for (Term& t : p.terms) {
    if (!out.empty() && out.back().monomial == t.monomial) out.back().coefficient = Checked(static_cast<__int128>(out.back().coefficient) + t.coefficient);
    else out.push_back(std::move(t));
  }
  std::erase_if(out, [](const Term& t) { return t.coefficient == 0; });
  p.terms = std::move(out);
  for (const Term& t : p.terms)
    if (Degree(t.monomial) > 64) throw Error(ErrorCode::kResourceExhausted, "a size expression has a power beyond 64");
  if (p.terms.size() > 4096) throw Error(ErrorCode::kResourceExhausted, "a size expression has more than 4096 terms");
}

std::string FactorText(const std::string& name, int power) {
  std::string s = name;
  for (int i = 1; i < power; ++i) StrAppend(&s, "*", name);
  return s;
}

// A symbol that is a multiple of m is kept as m times a hidden quotient; the text shows the symbol wherever m divides out.
std::string TermText(const Term& t, int64_t& coefficient) {
  coefficient = t.coefficient;
  std::vector<std::string> factors;
  for (const auto& [atom, power] : t.monomial) {
    std::string name = atom->text;
    if (atom->kind == Kind::kSymbol && atom->facts.multiple_of > 1) {
      int whole = 0;
      while (whole < power && coefficient % atom->facts.multiple_of == 0) coefficient /= atom->facts.multiple_of, ++whole;
      if (whole > 0) factors.push_back(FactorText(atom->name, whole));
      if (power > whole) factors.push_back(FactorText(atom->text, power - whole));
      continue;
    }
    factors.push_back(FactorText(name, power));
  }
  return Join(factors, "*");
}

std::string PolyText(const Poly& p) {
  std::string s;
  for (const Term& t : p.terms) {
    int64_t c = 0;
    std::string body = TermText(t, c);
    StrAppend(&s, s.empty() ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + "));
    const int64_t a = c < 0 ? -c : c;
    if (a != 1) StrAppend(&s, a, "*");
    StrAppend(&s, body);
  }
  if (p.constant != 0 || s.empty()) {
    if (s.empty()) return StrCat(p.constant);
    StrAppend(&s, p.constant < 0 ? " - " : " + ", p.constant < 0 ? -p.constant : p.constant);
  }
  return s;
}

}  // namespace

Poly ToPoly(Dim d) {
  if (d.is_const()) return {d.value(), {}};
  const Node* n = DimAccess::node(d);
  if (n->kind == Kind::kPoly) return n->poly;
  return {0, {{1, {{n, 1}}}}};
}

Dim FromPoly(Poly p) {
  Normalize(p);
  if (p.terms.empty()) return Dim(p.constant);
  if (p.constant == 0 && p.terms.size() == 1 && p.terms[0].coefficient == 1 && p.terms[0].monomial.size() == 1 &&
      p.terms[0].monomial[0].second == 1)
    return DimAccess::FromNode(p.terms[0].monomial[0].first);
  Checked(p.constant);
  std::string key = StrCat("p", p.constant);
  for (const Term& t : p.terms) {
    StrAppend(&key, "+", t.coefficient);
    for (const auto& [atom, power] : t.monomial) StrAppend(&key, "*", atom->id, "^", power);
  }
  Node n{.kind = Kind::kPoly};
  n.text = PolyText(p);
  n.poly = std::move(p);
  return DimAccess::FromNode(Intern(std::move(key), std::move(n)));
}

Dim MakeAtom(Kind kind, std::vector<Dim> args) {
  static constexpr std::string_view kNames[] = {"", "", "floordiv", "min", "max"};
  const std::string_view name = kNames[static_cast<int>(kind)];
  Node n{.kind = kind};
  n.text = StrCat(name, "(", Join(args, ", ", [](std::string* out, Dim d) { StrAppend(out, d.ToString()); }), ")");
  if (n.text.size() > 1 << 16) throw Error(ErrorCode::kResourceExhausted, "a size expression is too long");
  std::string key = StrCat(name, "(", Join(args, ",", [](std::string* out, Dim d) { StrAppend(out, Ref(d)); }), ")");
  n.args = std::move(args);
  return DimAccess::FromNode(Intern(std::move(key), std::move(n)));
}

}  // namespace dim_internal

using namespace dim_internal;

void Dim::FailOverflow() { throw Error(ErrorCode::kInvalidArgument, "a size leaves the range of 63 bits"); }

int64_t Dim::FailValue() const {
  throw Error(ErrorCode::kFailedPrecondition,
              StrCat("the size ", ToString(), " is not known here: it is symbolic; keep it a Dim, or give the dimension a fixed size in its InputSpec"));
}

Dim Dim::Symbol(std::string_view name, Facts facts) {
  const auto valid = [](char c, bool first) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && ((c >= '0' && c <= '9') || c == '.')); };
  bool ok = !name.empty() && name.size() <= 128;
  for (size_t i = 0; ok && i < name.size(); ++i) ok = valid(name[i], i == 0);
  if (!ok || name == "floordiv" || name == "min" || name == "max" || name == "mod")
    throw Error(ErrorCode::kInvalidArgument, StrCat("'", name.substr(0, 128), "' is not a dimension name: use letters, digits, '_' and '.', not starting with a digit"));
  if (facts.multiple_of < 1 || facts.min > facts.max || facts.min < 0 || facts.max > int64_t{1} << 56 ||
      CeilDiv(facts.min, facts.multiple_of) > FloorDiv(facts.max, facts.multiple_of))
    throw Error(ErrorCode::kInvalidArgument, StrCat("dimension '", name, "': no size satisfies min ", facts.min, ", max ", facts.max, ", multiple_of ", facts.multiple_of));
  Node n{.kind = Kind::kSymbol};
  n.name = std::string(name);
  n.facts = facts;
  n.text = facts.multiple_of == 1 ? n.name : StrCat("floordiv(", name, ", ", facts.multiple_of, ")");
  const Node* atom = Intern(StrCat("s", name, ":", facts.min, ":", facts.max, ":", facts.multiple_of), std::move(n));
  return Dim(facts.multiple_of) * DimAccess::FromNode(atom);
}

Dim Dim::Fresh(std::string_view prefix, Facts facts) {
  static std::atomic<int> next{0};
  return Symbol(StrCat(prefix, ".", next++), facts);
}

std::string Dim::ToString() const { return is_const() ? StrCat(value()) : node()->text; }

Dim Dim::Add(Dim a, Dim b, int64_t sign) {
  Poly p = ToPoly(a), q = ToPoly(b);
  p.constant = Checked(static_cast<__int128>(p.constant) + static_cast<__int128>(sign) * q.constant);
  for (Term& t : q.terms) {
    t.coefficient *= sign;
    p.terms.push_back(std::move(t));
  }
  return FromPoly(std::move(p));
}

Dim Dim::Multiply(Dim a, Dim b) {
  Poly p = ToPoly(a), q = ToPoly(b), r;
  p.terms.push_back({p.constant, {}});
  q.terms.push_back({q.constant, {}});
  if (p.terms.size() * q.terms.size() > 1 << 16) throw Error(ErrorCode::kResourceExhausted, "a size expression has too many terms");
  for (const Term& s : p.terms)
    for (const Term& t : q.terms) {
      const int64_t c = Checked(static_cast<__int128>(s.coefficient) * t.coefficient);
      if (c == 0) continue;
      Monomial m = Times(s.monomial, t.monomial);
      if (m.empty()) r.constant = c;
      else r.terms.push_back({c, std::move(m)});
    }
  return FromPoly(std::move(r));
}

Dim FloorDiv(Dim a, Dim b) {
  if (b == Dim(0)) throw Error(ErrorCode::kInvalidArgument, StrCat("the size ", a.ToString(), " is divided by zero"));
  if (b.is_const() && a.is_const()) return Dim(FloorDiv(a.value(), b.value()));
  if (b == Dim(1) || a == Dim(0)) return a;
  if (b.is_const() && b.value() < 0) return FloorDiv(-a, -b);
  const bool positive = Bounds(b).low >= 1;
  const Poly p = ToPoly(a), q = ToPoly(b);
  // a = b * whole + rest by terms; exact where b divides a term.
  Poly whole, rest;
  if (b.is_const()) {
    const int64_t n = b.value();
    whole.constant = FloorDiv(p.constant, n);
    rest.constant = p.constant - whole.constant * n;
    int64_t g = n;
    for (const Term& t : p.terms) {
      if (t.coefficient % n == 0) whole.terms.push_back({t.coefficient / n, t.monomial});
      else rest.terms.push_back(t), g = std::gcd(g, t.coefficient);
    }
    Dim quotient = FromPoly(std::move(whole));
    if (g > 1) {
      for (Term& t : rest.terms) t.coefficient /= g;
      rest.constant = FloorDiv(rest.constant, g);
    }
    Dim remainder = FromPoly(std::move(rest));
    const Interval r = Bounds(remainder);
    if (r.low >= 0 && r.high < n / g) return quotient;
    if (remainder.is_const()) return quotient + Dim(FloorDiv(remainder.value(), n / g));
    return quotient + MakeAtom(Kind::kFloorDiv, {remainder, Dim(n / g)});
  }
  if (positive && q.constant == 0 && q.terms.size() == 1) {
    const Term& d = q.terms[0];
    for (const Term& t : p.terms) {
      Monomial m = t.monomial;
      bool divides = t.coefficient % d.coefficient == 0;
      for (const auto& [atom, power] : d.monomial) {
        auto it = std::find_if(m.begin(), m.end(), [&](const auto& f) { return f.first == atom; });
        if (it == m.end() || it->second < power) divides = false;
        else it->second -= power;
      }
      std::erase_if(m, [](const auto& f) { return f.second == 0; });
      if (!divides) rest.terms.push_back(t);
      else if (m.empty()) whole.constant += t.coefficient / d.coefficient;
      else whole.terms.push_back({t.coefficient / d.coefficient, std::move(m)});
    }
    rest.constant = p.constant;
  } else {
    rest = p;
    // A constant multiple of a sum.
    if (positive && !p.terms.empty() && p.terms.size() == q.terms.size() && p.terms[0].coefficient % q.terms[0].coefficient == 0) {
      const int64_t k = p.terms[0].coefficient / q.terms[0].coefficient;
      const Dim left = a - Dim(k) * b;
      if (left.is_const() && left.value() >= 0 && left.value() < Bounds(b).low) return Dim(k);
    }
  }
  Dim quotient = FromPoly(std::move(whole)), remainder = FromPoly(std::move(rest));
  if (remainder == Dim(0)) return quotient;
  const Interval r = Bounds(remainder);
  if (positive && r.low >= 0 && r.high < Bounds(b).low) return quotient;
  return quotient + MakeAtom(Kind::kFloorDiv, {remainder, b});
}

Dim CeilDiv(Dim a, Dim b) { return -FloorDiv(-a, b); }
Dim Mod(Dim a, Dim b) { return a - b * FloorDiv(a, b); }

namespace {

bool CanonicalLess(Dim a, Dim b) {
  const std::string x = a.ToString(), y = b.ToString();
  if (x != y) return x < y;
  return !a.is_const() && !b.is_const() && DimAccess::node(a)->id < DimAccess::node(b)->id;
}

// Whether b adds nothing to an extremum that has a: a <= b for a minimum, a >= b for a maximum.
bool Covers(Kind kind, Dim a, Dim b) {
  const bool min = kind == Kind::kMin;
  auto beyond = [&](Dim x) { return (min ? ProvablyLe(a, x) : ProvablyLe(x, a)) == std::optional<bool>(true); };
  if (beyond(b)) return true;
  // min(x, max(x, y)) = x
  if (b.is_const() || DimAccess::node(b)->kind != (min ? Kind::kMax : Kind::kMin)) return false;
  return std::any_of(DimAccess::node(b)->args.begin(), DimAccess::node(b)->args.end(), beyond);
}

// One form whatever the nesting and the order of the operands: flattened, without those that others make redundant, sorted.
Dim Extremum(Kind kind, Dim a, Dim b) {
  if (a == b) return a;
  if (const Dim d = b - a; d.is_const()) return (d.value() > 0) == (kind == Kind::kMin) ? a : b;
  std::vector<Dim> args;
  for (Dim d : {a, b}) {
    if (!d.is_const() && DimAccess::node(d)->kind == kind) args.insert(args.end(), DimAccess::node(d)->args.begin(), DimAccess::node(d)->args.end());
    else args.push_back(d);
  }
  std::sort(args.begin(), args.end(), CanonicalLess);
  args.erase(std::unique(args.begin(), args.end()), args.end());
  std::vector<Dim> kept;
  for (size_t i = 0; i < args.size(); ++i) {
    bool redundant = false;
    // Of two that are always equal the first stays.
    for (size_t j = 0; j < args.size() && !redundant; ++j)
      redundant = i != j && Covers(kind, args[j], args[i]) && (j < i || !Covers(kind, args[i], args[j]));
    if (!redundant) kept.push_back(args[i]);
  }
  return kept.size() == 1 ? kept[0] : MakeAtom(kind, std::move(kept));
}

}  // namespace

Dim Min(Dim a, Dim b) { return Extremum(Kind::kMin, a, b); }
Dim Max(Dim a, Dim b) { return Extremum(Kind::kMax, a, b); }

}  // namespace sinter
