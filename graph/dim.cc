#include "sinter/graph/dim.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "sinter/graph/strings.h"
#include "sinter/graph/dim_internal.h"
#include "sinter/graph/error.h"

namespace sinter {

using dim_internal::Interval;
using dim_internal::Kind;
using dim_internal::Monomial;
using dim_internal::Node;
using dim_internal::Poly;
using dim_internal::Term;

struct DimAccess {
  static const Node* node(Dim d) { return d.node(); }
  static Dim FromNode(const Node* n) { return Dim(n); }
  static const auto& values(const DimEnv& env) { return env.values_; }
};

namespace dim_internal {

namespace {

constexpr int64_t kInf = INT64_MAX;

int64_t Saturate(__int128 v) { return v > kInf ? kInf : v < -kInf ? -kInf : static_cast<int64_t>(v); }

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

bool MonomialLess(const Monomial& a, const Monomial& b) {
  // Higher degree first, then by name.
  auto degree = [](const Monomial& m) { return std::accumulate(m.begin(), m.end(), 0, [](int s, const auto& f) { return s + f.second; }); };
  if (degree(a) != degree(b)) return degree(a) > degree(b);
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

}  // namespace

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

int64_t CeilOf(int64_t a, int64_t b) { return -FloorDivInt(-a, b); }

int64_t FloorDivInt(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - (a % b != 0 && (a % b < 0) != (b < 0));
}

Interval Bounds(const Node* n) {
  switch (n->kind) {
    case Kind::kSymbol:
      return {CeilOf(n->facts.min, n->facts.multiple_of), FloorDivInt(n->facts.max, n->facts.multiple_of)};
    case Kind::kFloorDiv: {
      const Interval a = Bounds(n->args[0]), b = Bounds(n->args[1]);
      if (b.low <= 0 && b.high >= 0) return {-kInf, kInf};
      auto div = [](int64_t x, int64_t y) { return x == kInf || x == -kInf ? (y > 0 ? x : -x) : FloorDivInt(x, y); };
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
      CeilOf(facts.min, facts.multiple_of) > FloorDivInt(facts.max, facts.multiple_of))
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
      return FloorDivInt(arg(n->args[0]), b);
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

std::string Dim::ToString() const { return is_const() ? StrCat(value()) : node()->text; }

std::vector<Dim> Dim::Symbols() const {
  std::vector<const Node*> nodes;
  if (!is_const()) CollectSymbols(node(), nodes);
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->name != b->name ? a->name < b->name : a->id < b->id; });
  std::vector<Dim> out;
  for (const Node* n : nodes) out.push_back(Dim(n->facts.multiple_of) * Dim(n));
  return out;
}

int64_t Dim::lower_bound() const { return Bounds(*this).low; }
int64_t Dim::upper_bound() const { return Bounds(*this).high; }

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
  if (b.is_const() && a.is_const()) return Dim(FloorDivInt(a.value(), b.value()));
  if (b == Dim(1) || a == Dim(0)) return a;
  if (b.is_const() && b.value() < 0) return FloorDiv(-a, -b);
  const bool positive = Bounds(b).low >= 1;
  const Poly p = ToPoly(a), q = ToPoly(b);
  // a = b * whole + rest by terms; exact where b divides a term.
  Poly whole, rest;
  if (b.is_const()) {
    const int64_t n = b.value();
    whole.constant = FloorDivInt(p.constant, n);
    rest.constant = p.constant - whole.constant * n;
    int64_t g = n;
    for (const Term& t : p.terms) {
      if (t.coefficient % n == 0) whole.terms.push_back({t.coefficient / n, t.monomial});
      else rest.terms.push_back(t), g = std::gcd(g, t.coefficient);
    }
    Dim quotient = FromPoly(std::move(whole));
    if (g > 1) {
      for (Term& t : rest.terms) t.coefficient /= g;
      rest.constant = FloorDivInt(rest.constant, g);
    }
    Dim remainder = FromPoly(std::move(rest));
    const Interval r = Bounds(remainder);
    if (r.low >= 0 && r.high < n / g) return quotient;
    if (remainder.is_const()) return quotient + Dim(FloorDivInt(remainder.value(), n / g));
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

Dim Extremum(Kind kind, Dim a, Dim b) {
  if (a == b) return a;
  const bool min = kind == Kind::kMin;
  if (std::optional<bool> le = ProvablyLe(a, b); le.has_value()) return *le == min ? a : b;
  if (ProvablyLe(b, a) == std::optional<bool>(true)) return min ? b : a;
  std::vector<Dim> args;
  for (Dim d : {a, b}) {
    if (!d.is_const() && DimAccess::node(d)->kind == kind) args.insert(args.end(), DimAccess::node(d)->args.begin(), DimAccess::node(d)->args.end());
    else args.push_back(d);
  }
  // Drop what another operand makes redundant.
  std::vector<Dim> kept;
  for (size_t i = 0; i < args.size(); ++i) {
    bool redundant = false;
    for (size_t j = 0; j < args.size() && !redundant; ++j) {
      if (i == j) continue;
      if (args[i] == args[j]) redundant = j < i;
      else redundant = (min ? ProvablyLe(args[j], args[i]) : ProvablyLe(args[i], args[j])) == std::optional<bool>(true) &&
                       (j < i || (min ? ProvablyLe(args[i], args[j]) : ProvablyLe(args[j], args[i])) != std::optional<bool>(true));
    }
    if (!redundant) kept.push_back(args[i]);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](Dim x, Dim y) { return x.ToString() < y.ToString(); });
  return MakeAtom(kind, std::move(kept));
}

}  // namespace

Dim Min(Dim a, Dim b) { return Extremum(Kind::kMin, a, b); }
Dim Max(Dim a, Dim b) { return Extremum(Kind::kMax, a, b); }

std::optional<bool> ProvablyEqual(Dim a, Dim b) {
  if (a == b) return true;
  const Dim d = a - b;
  if (d.is_const()) return false;
  const Interval r = Bounds(d);
  if (r.low > 0 || r.high < 0) return false;
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
