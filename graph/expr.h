#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sinter/graph/dim.h"
#include "sinter/graph/dtype.h"

/// Scalar expressions: what one element of a result is. One op definition produces them; the interpreter evaluates
/// them, and the LLVM and CUDA emitters print them.
///
/// Semantics
/// - Types: f32, f64, i32, i64 and bool compute. f16, bf16, i8, u8 appear only as the type of a kLoad and as source or
///   target of kConvert. Operands of a binary node have one type; nothing converts implicitly.
/// - Floating arithmetic is IEEE 754, round to nearest even, never contracted or reassociated; kFma is the only fused
///   operation. Subnormals are kept. Which NaN a node gives (sign, payload) is unspecified inside an expression: what
///   stores a floating value stores every NaN as the canonical quiet one (CanonicalNan).
/// - kMin and kMax propagate NaN; of zeros of both signs kMax gives +0 and kMin gives -0.
/// - Integer arithmetic wraps. kDiv and kRem truncate; division by zero gives 0, remainder by zero the dividend, and
///   INT_MIN / -1 wraps. kFloorDiv, kFloorMod round to minus infinity, by zero as kDiv and kRem. Shift amounts are taken modulo the width.
/// - kConvert from floating to integer truncates and saturates, NaN gives 0; to bool is `x != 0`; f64 to f16 or bf16 rounds once.
/// - Comparisons with NaN are false, but kNe is true.
/// - kSelect and kLoad's predicate never read memory of the branch not taken. Everything else may be evaluated
///   speculatively and duplicated: nodes have no effects.
namespace sinter {

struct OpDef;
class AttrBox;

enum class ExprKind : uint8_t {
  // leaves
  kConst,   ///< bits of a constant
  kInput,   ///< operand number `index` of a pointwise body
  kIndex,   ///< i64 loop variable number `index`
  kSize,    ///< i64 value of `dim`
  // unary
  kNeg, kAbs, kNot /* bool: logical; integer: bitwise */, kFloor, kCeil, kTrunc, kRound /* half to even */, kSqrt,
  kBitcast /* f32<->i32, f64<->i64 */, kConvert, kIsNan,
  // binary
  kAdd, kSub, kMul, kDiv, kRem, kFloorDiv, kFloorMod, kMin, kMax,
  kAnd, kOr, kXor, kShl, kShr /* arithmetic */, kShrLogical,
  kLt, kLe, kEq, kNe,
  // ternary
  kFma,     ///< a * b + c, rounded once
  kSelect,  ///< a ? b : c, a is bool
  // others
  kLoad,    ///< element of buffer `index` at the logical position args[0..rank); with `predicated` a last bool arg: 0 where false
  kCall,    ///< a pointwise op applied to args: stands for the op's body
  kReduce,  ///< reduction of args[0] (and args[1] for kContract) over loop variables; see ReduceKind
};

/// What a kReduce does with the values of its body, taken in row-major order of its loop variables.
/// The tree is fixed by the number of values R alone (graph/numerics.h): value r goes to lane r % 16 of block r / 1024;
/// a lane starts at the identity and takes its values in order; lanes l and l + 8 are combined, then 4, 2, 1; block results are
/// combined pairwise in the order of a binary counter. kContract: see kContractionBlock. All combine (left, right) in this order.
enum class ReduceKind : uint8_t {
  kSum,       ///< identity -0.0 (so that -0 stays -0); an empty sum is +0
  kProd,      ///< identity 1
  kMax,       ///< identity: the least value (-inf)
  kMin,       ///< identity: the greatest value (+inf)
  kAny,       ///< bool, identity false
  kAll,       ///< bool, identity true
  kContract,  ///< chain acc = fma(args[0], args[1], acc) from +0 over blocks of kContractionBlock, block results added in order
};

class Expr;

/// Loop variable of a reduction: its number, and how often it runs.
struct LoopVar {
  int id = 0;
  Dim extent;
};

struct ExprNode {
  ExprKind kind;
  DType dtype;
  bool predicated = false;              // kLoad
  ReduceKind reduce = ReduceKind::kSum;  // kReduce
  int index = 0;                        // kInput, kIndex, kLoad
  uint64_t bits = 0;                    // kConst: IEEE bits or two's complement of dtype
  Dim dim;                              // kSize
  const OpDef* op = nullptr;            // kCall
  std::shared_ptr<const AttrBox> attrs;  // kCall
  std::vector<Expr> args;
  std::vector<LoopVar> loops;           // kReduce
  size_t hash = 0;                      // structural
};

/// A shared, immutable expression. Arithmetic on expressions builds nodes, folding constants and the identities that
/// hold for every value bit for bit (x * 1, select on a constant, integer identities).
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

  static Expr Const(DType t, double value);
  static Expr ConstInt(DType t, int64_t value);
  static Expr ConstBits(DType t, uint64_t bits);
  static Expr Bool(bool value) { return ConstBits(kBool, value); }
  static Expr Input(int i, DType t);
  static Expr Index(int id);
  /// The value of a symbolic size, i64; a constant when it is one.
  static Expr Size(Dim d);
  static Expr Unary(ExprKind kind, Expr a);
  static Expr Binary(ExprKind kind, Expr a, Expr b);
  static Expr Fma(Expr a, Expr b, Expr c);
  static Expr Select(Expr condition, Expr a, Expr b);
  static Expr Convert(Expr a, DType t);
  static Expr Bitcast(Expr a, DType t);
  static Expr Load(int buffer, DType t, std::vector<Expr> position);
  static Expr LoadIf(int buffer, DType t, std::vector<Expr> position, Expr predicate);
  static Expr Call(const OpDef& op, std::shared_ptr<const AttrBox> attrs, DType t, std::vector<Expr> args);
  static Expr Reduce(ReduceKind kind, std::vector<LoopVar> loops, std::vector<Expr> body);

  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode* get() const { return node_.get(); }
  DType dtype() const { return node_->dtype; }
  ExprKind kind() const { return node_->kind; }
  bool is_const() const { return node_ && node_->kind == ExprKind::kConst; }
  /// The constant's value as double; i64 beyond 2^53 loses bits.
  double const_value() const;
  int64_t const_int() const;

  /// Structural equality.
  friend bool operator==(const Expr& a, const Expr& b);
  /// One line; shared subexpressions are printed once as `%k = ...`.
  std::string ToString() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprHash {
  size_t operator()(const Expr& e) const { return e ? e->hash : 0; }
};

/// The one NaN that is ever stored: positive, quiet, payload zero.
constexpr uint64_t CanonicalNan(DType t) {
  return t == kFloat64 ? 0x7ff8000000000000u : t == kFloat32 ? 0x7fc00000u : t == kFloat16 ? 0x7e00u : 0x7fc0u;
}

/// Rebuilds `e`, with `replace` asked first for every node: what it returns (unless empty) stands for that node.
/// Shared nodes are visited once.
template <class Fn>
Expr Rewrite(const Expr& e, Fn&& replace);

/// Calls fn(const Expr&) for every node of `e` once, operands first. With one `seen` for several calls, nodes that they share are visited once.
template <class Fn>
void ForEachExpr(const Expr& e, std::unordered_set<const ExprNode*>& seen, Fn&& fn) {
  if (!seen.insert(e.get()).second) return;
  for (const Expr& a : e->args) ForEachExpr(a, seen, fn);
  fn(e);
}
template <class Fn>
void ForEachExpr(const Expr& e, Fn&& fn) {
  std::unordered_set<const ExprNode*> seen;
  ForEachExpr(e, seen, fn);
}
/// Whether a node of `e` satisfies `test`.
bool AnyExpr(const Expr& e, const std::function<bool(const Expr&)>& test);

/// Replaces every kCall by the body of its op, recursively: what the emitters and the interpreter get.
Expr ExpandCalls(const Expr& e);
/// Replaces kInput i by inputs[i].
Expr SubstituteInputs(const Expr& e, std::span<const Expr> inputs);
/// Replaces kIndex `ids[k]` by values[k]; loop variables of reductions inside are left alone.
Expr SubstituteIndices(const Expr& e, std::span<const int> ids, std::span<const Expr> values);
/// d e / d input(i), for expressions of kInput leaves and kCall. Comparisons, integers, floor and their kind have derivative 0.
/// An empty result means identically zero. Max and min give the derivative to the operand taken, halves at a tie.
Expr Differentiate(const Expr& e, int input);
/// The numbers of the kInput leaves that occur.
std::vector<int> UsedInputs(const Expr& e);
/// A number for a loop variable that no other expression of this process has. Emitters and caches renumber by position.
int FreshIndex();

// Arithmetic ------------------------------------------------------------------------------------------------------

inline Expr operator+(Expr a, Expr b) { return Expr::Binary(ExprKind::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return Expr::Binary(ExprKind::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return Expr::Binary(ExprKind::kMul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return Expr::Binary(ExprKind::kDiv, std::move(a), std::move(b)); }
inline Expr operator-(Expr a) { return Expr::Unary(ExprKind::kNeg, std::move(a)); }
inline Expr operator<(Expr a, Expr b) { return Expr::Binary(ExprKind::kLt, std::move(a), std::move(b)); }
inline Expr operator<=(Expr a, Expr b) { return Expr::Binary(ExprKind::kLe, std::move(a), std::move(b)); }
inline Expr operator>(Expr a, Expr b) { return Expr::Binary(ExprKind::kLt, std::move(b), std::move(a)); }
inline Expr operator>=(Expr a, Expr b) { return Expr::Binary(ExprKind::kLe, std::move(b), std::move(a)); }
inline Expr operator&(Expr a, Expr b) { return Expr::Binary(ExprKind::kAnd, std::move(a), std::move(b)); }
inline Expr operator|(Expr a, Expr b) { return Expr::Binary(ExprKind::kOr, std::move(a), std::move(b)); }
inline Expr operator^(Expr a, Expr b) { return Expr::Binary(ExprKind::kXor, std::move(a), std::move(b)); }
// No operator!: on a handle it asks whether it is empty. Negation is num::Not.

// Numbers in a body are double literals and take the type of the other operand.
inline Expr Literal(const Expr& like, double value) { return Expr::Const(like.dtype(), value); }
#define SINTER_EXPR_LITERAL_OPERATOR(op)                                       \
  inline Expr operator op(Expr a, double b) {                                  \
    Expr l = Literal(a, b);                                                    \
    return std::move(a) op std::move(l);                                       \
  }                                                                            \
  inline Expr operator op(double a, Expr b) {                                  \
    Expr l = Literal(b, a);                                                    \
    return std::move(l) op std::move(b);                                       \
  }
SINTER_EXPR_LITERAL_OPERATOR(+)
SINTER_EXPR_LITERAL_OPERATOR(-)
SINTER_EXPR_LITERAL_OPERATOR(*)
SINTER_EXPR_LITERAL_OPERATOR(/)
SINTER_EXPR_LITERAL_OPERATOR(<)
SINTER_EXPR_LITERAL_OPERATOR(<=)
SINTER_EXPR_LITERAL_OPERATOR(>)
SINTER_EXPR_LITERAL_OPERATOR(>=)
#undef SINTER_EXPR_LITERAL_OPERATOR

/// `e` with other operands, folded anew.
Expr WithArgs(const Expr& e, std::vector<Expr> args);

template <class Fn>
Expr Rewrite(const Expr& e, Fn&& replace) {
  std::unordered_map<const ExprNode*, Expr> done;
  auto visit = [&](auto& self, const Expr& x) -> Expr {
    if (auto it = done.find(x.get()); it != done.end()) return it->second;
    Expr r = replace(x);
    if (!r) {
      bool changed = false;
      std::vector<Expr> args;
      args.reserve(x->args.size());
      for (const Expr& a : x->args) {
        args.push_back(self(self, a));
        changed |= args.back().get() != a.get();
      }
      r = changed ? WithArgs(x, std::move(args)) : x;
    }
    return done.emplace(x.get(), std::move(r)).first->second;
  };
  return visit(visit, e);
}

}  // namespace sinter
