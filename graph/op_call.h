#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/graph/num.h"
#include "sinter/graph/op_def.h"

/// Calls of ops: on tensors, on values of a graph, and on numbers inside of a body.
namespace sinter {

/// A handle on which ops act: Var, or the eager Tensor. `ApplyOp(def, attrs, span<const H>) -> std::vector<H>` is found by
/// argument-dependent lookup, `ApplyOp1` (one result) where it exists.
/// A class derived from a handle (a module's Parameter) names it as its `Handle` and is taken as one.
template <class H>
struct HandleOfType { using type = H; };
template <class H>
  requires requires { typename H::Handle; }
struct HandleOfType<H> { using type = typename H::Handle; };
template <class H>
using HandleOf = typename HandleOfType<H>::type;
template <class H>
concept TensorHandle = requires(std::span<const HandleOf<H>> s, const OpDef& d, AttrPtr a) { ApplyOp(d, a, s); };

/// Calls of an op: on tensors it computes or records, on numbers inside a body it is the body. The public functions that
/// SINTER_OP declares forward to it:
///
///   Tensor y = softmax(x, {.dim = 1});
template <class T>
struct Op {
  using Attrs = typename op_internal::AttrsOf<T>::type;
  static constexpr int kInputs = T::kInfo.inputs;
  static constexpr int kOutputs = T::kInfo.outputs;

  template <TensorHandle H>
  static auto Run(std::span<const H> in, Attrs attrs) {
    const OpDef& def = DefOf<T>();
    AttrPtr boxed;
    if constexpr (!std::is_same_v<Attrs, NoAttrs>) boxed = MakeAttrs(std::move(attrs));
    if constexpr (kOutputs == 1) {
      if constexpr (requires { ApplyOp1(def, boxed, in); }) return ApplyOp1(def, std::move(boxed), in);
      else return H(std::move(ApplyOp(def, std::move(boxed), in)[0]));
    } else if constexpr (kOutputs < 0) {
      return ApplyOp(def, std::move(boxed), in);
    } else {
      auto r = ApplyOp(def, std::move(boxed), in);
      std::array<H, kOutputs> a;
      for (int i = 0; i < kOutputs; ++i) a[i] = std::move(r[i]);
      return a;
    }
  }

  /// The same without copies of the handles, where `ApplyRefs1(def, attrs, span<const H* const>)` exists.
  template <TensorHandle H, size_t N>
  static auto RunRefs(const std::array<const H*, N>& in, Attrs attrs) {
    if constexpr (kOutputs == 1 && requires(const OpDef& d, AttrPtr a, std::span<const H* const> s) { ApplyRefs1(d, a, s); }) {
      return ApplyRefs1(DefOf<T>(), MakeAttrs(std::move(attrs)), std::span<const H* const>(in));
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        const H copies[] = {*in[I]...};
        return Run<H>(copies, std::move(attrs));
      }(std::make_index_sequence<N>());
    }
  }

  template <TensorHandle H>
    requires(kInputs == 1)
  auto operator()(const H& a, Attrs attrs = {}) const { const H* p = &a; return Run<H>(std::span<const H>(p, 1), std::move(attrs)); }
  template <TensorHandle H>
    requires(kInputs == 2)
  auto operator()(const H& a, const H& b, Attrs attrs = {}) const { return RunRefs<H, 2>({&a, &b}, std::move(attrs)); }
  template <TensorHandle H>
    requires(kInputs == 3)
  auto operator()(const H& a, const H& b, const H& c, Attrs attrs = {}) const { return RunRefs<H, 3>({&a, &b, &c}, std::move(attrs)); }
  /// Any number of operands.
  template <TensorHandle H>
  auto operator()(const std::vector<H>& in, Attrs attrs = {}) const { return Run<H>(std::span<const H>(in), std::move(attrs)); }

  // Numbers: the body. On expressions the call stays whole, so that it is differentiated by its own rule.
  template <Number X, size_t N>
  static X Apply(const std::array<X, N>& x, Attrs attrs) {
    if constexpr (std::same_as<X, Expr>) {
      const OpDef& def = DefOf<T>();
      return MakeCall(def, MakeAttrs(std::move(attrs)), std::vector<Expr>(x.begin(), x.end()));
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        if constexpr (std::is_same_v<Attrs, NoAttrs>) return T::Body(x[I]...);
        else return T::Body(x[I]..., attrs);
      }(std::make_index_sequence<N>());
    }
  }

 private:
  static Expr MakeCall(const OpDef& def, AttrPtr attrs, std::vector<Expr> args);
};

/// A kCall node: the op's result type follows from its dtype rule.
Expr CallExpr(const OpDef& op, AttrPtr attrs, std::vector<Expr> args);

template <class T>
Expr Op<T>::MakeCall(const OpDef& def, AttrPtr attrs, std::vector<Expr> args) {
  return CallExpr(def, std::move(attrs), std::move(args));
}

template <class T>
using OpAttrs = typename Op<T>::Attrs;

}  // namespace sinter

/// Declares the public function `name` of the op struct `sinter::ops::Struct`, at global scope after the struct. Functions on
/// tensors are in `sinter`; those on numbers, for bodies, in `sinter::ops`, so that they never compete with <cmath> in a program.
#define SINTER_OP(Struct, name)                                                                                \
  namespace sinter {                                                                                           \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 1)                                                                   \
  auto name(const H& a, OpAttrs<ops::Struct> attrs = {}) {                                                     \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), std::move(attrs));                            \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 2)                                                                   \
  auto name(const H& a, const HandleOf<H>& b, OpAttrs<ops::Struct> attrs = {}) {                               \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), b, std::move(attrs));                         \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs == 3)                                                                   \
  auto name(const H& a, const HandleOf<H>& b, const HandleOf<H>& c, OpAttrs<ops::Struct> attrs = {}) {          \
    return Op<ops::Struct>{}(static_cast<const HandleOf<H>&>(a), b, c, std::move(attrs));                      \
  }                                                                                                            \
  template <TensorHandle H>                                                                                    \
    requires(ops::Struct::kInfo.inputs < 0 || ops::Struct::kInfo.inputs > 3)                                   \
  auto name(const std::vector<H>& in, OpAttrs<ops::Struct> attrs = {}) {                                       \
    return Op<ops::Struct>{}(in, std::move(attrs));                                                            \
  }                                                                                                            \
  namespace ops {                                                                                              \
  template <Number X, class... Xs>                                                                             \
    requires(Struct::kInfo.kind == OpKind::kPointwise && Struct::kInfo.inputs == 1 + sizeof...(Xs))            \
  auto name(const X& a, const Xs&... rest) {                                                                   \
    return Op<Struct>::template Apply<X, 1 + sizeof...(Xs)>(std::array<X, 1 + sizeof...(Xs)>{a, rest...}, {}); \
  }                                                                                                            \
  }                                                                                                            \
  }
