#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/tracer/static_core.h"

/// to_static: a function on tensors becomes a compiled program with the same signature.
namespace sinter {

namespace tracer {

/// How a result is made of tensors.
template <class R>
struct ResultOf;
template <>
struct ResultOf<void> {
  static constexpr bool kVoid = true;
};
template <>
struct ResultOf<Tensor> {
  static std::vector<Tensor> Flatten(Tensor t) { return {std::move(t)}; }
  static Tensor Unflatten(std::vector<Tensor> v) { return std::move(v[0]); }
};
template <>
struct ResultOf<std::vector<Tensor>> {
  static std::vector<Tensor> Flatten(std::vector<Tensor> v) { return v; }
  static std::vector<Tensor> Unflatten(std::vector<Tensor> v) { return v; }
};
template <size_t N>
struct ResultOf<std::array<Tensor, N>> {
  static std::vector<Tensor> Flatten(std::array<Tensor, N> a) { return {a.begin(), a.end()}; }
  static std::array<Tensor, N> Unflatten(std::vector<Tensor> v) {
    std::array<Tensor, N> a;
    for (size_t i = 0; i < N; ++i) a[i] = std::move(v[i]);
    return a;
  }
};
template <class A, class B>
struct ResultOf<std::pair<A, B>> {
  static std::vector<Tensor> Flatten(std::pair<A, B> p) { return {p.first, p.second}; }
  static std::pair<A, B> Unflatten(std::vector<Tensor> v) { return {v[0], v[1]}; }
};
template <class... T>
struct ResultOf<std::tuple<T...>> {
  static std::vector<Tensor> Flatten(std::tuple<T...> t) {
    return std::apply([](auto&... x) { return std::vector<Tensor>{x...}; }, t);
  }
  static std::tuple<T...> Unflatten(std::vector<Tensor> v) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return std::tuple<T...>{v[I]...}; }(std::index_sequence_for<T...>());
  }
};

/// The shortest decimal form that reads back as the same value; NaNs by their bits.
std::string HostNumberKey(double v);

template <class T>
inline constexpr bool kIsTensor = std::is_base_of_v<Tensor, std::remove_cvref_t<T>>;

/// Host arguments are part of what a program is compiled for: equal keys mean equal values, bit for bit.
template <class T>
std::string HostKey(const T& v) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<std::underlying_type_t<T>>(v));
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return HostNumberKey(v);
  } else if constexpr (std::is_arithmetic_v<T>) {
    static_assert(!std::is_same_v<T, long double>, "long double arguments are not supported; use double");
    return std::to_string(v);
  } else {
    static_assert(std::is_convertible_v<const T&, std::string_view>, "an argument of a captured function is a Tensor, a number, a bool, an enum or a string");
    const std::string_view text(v);
    return std::to_string(text.size()) + ":" + std::string(text);  // the length first, so that no two lists of arguments read the same
  }
}

template <class F>
struct Signature : Signature<decltype(&std::remove_cvref_t<F>::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Function = R(A...);
};
template <class R, class... A>
struct Signature<R(A...)> {
  using Function = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> {
  using Function = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Function = R(A...);
};

template <class F>
concept HasSignature = std::is_pointer_v<F> || requires { &F::operator(); };

}  // namespace tracer

/// A compiled function, typed like the one it was made of. Copies share what is compiled. The first call with new host arguments, flags
/// or (without InputSpecs) sizes captures and compiles; explain() tells why. A call that throws leaves all state as it was.
template <class Function>
class StaticFunction;

template <class R, class... A>
class StaticFunction<R(A...)> {
  static_assert(((!std::is_lvalue_reference_v<A> || std::is_const_v<std::remove_reference_t<A>>) && ...),
                "a captured function takes its arguments by value or const reference: what it wrote to a reference would be lost; return it instead");

 public:
  StaticFunction(std::function<R(A...)> f, std::vector<InputSpec> specs, StaticOptions options, std::optional<tracer::CellNames> names)
      : function_(std::move(f)), core_(std::make_shared<tracer::StaticCore>(std::move(specs), std::move(options), std::move(names))) {}

  R operator()(const std::remove_cvref_t<A>&... args) const {
    constexpr size_t kTensors = (size_t{tracer::kIsTensor<A>} + ... + 0);
    std::array<const Tensor*, kTensors> tensors{};
    size_t next = 0;
    std::string key;
    (Sort(args, tensors.data(), next, key), ...);
    std::vector<Tensor> results = core_->Call(tensors, key, [&] { return Flat(args...); });
    if constexpr (!std::is_void_v<R>) return tracer::ResultOf<R>::Unflatten(std::move(results));
  }

  /// Captures and compiles for the InputSpecs now (every argument must be a tensor), so that the first call doesn't.
  const StaticFunction& compile() const {
    core_->PrepareFromSpecs(sizeof...(A), Flat(std::remove_cvref_t<A>()...));
    return *this;
  }
  /// What was compiled and why, guards, pinned sizes, state, and what was not fused.
  std::string explain() const { return core_->Explain(); }
  int num_entries() const { return static_cast<int>(core_->entries().size()); }
  /// Drops everything compiled.
  void clear() const { core_->Clear(); }
  /// The program for the state as it is now (train or eval, what is frozen): compiled from the InputSpecs if it is not there yet. Throws
  /// Error if there are several.
  std::shared_ptr<tracer::Entry> program() const {
    std::shared_ptr<tracer::Entry> e = core_->Present();
    if (e) return e;
    compile();
    return core_->Present();
  }
  /// The captured graph of program(), before optimisation.
  const Graph& graph() const { return *program()->graph; }
  /// What was compiled, for tools.
  tracer::StaticCore& core() const { return *core_; }

 private:
  template <class T>
  static void Sort(const T& arg, const Tensor** tensors, size_t& next, std::string& key) {
    if constexpr (tracer::kIsTensor<T>) tensors[next++] = &arg;
    else key += tracer::HostKey(arg) + ";";
  }

  // The function on its tensor arguments, with the host arguments bound.
  tracer::FlatFunction Flat(const std::remove_cvref_t<A>&... args) const {
    return [f = function_, bound = std::tuple<std::remove_cvref_t<A>...>(args...)](const std::vector<Tensor>& tensors) {
      // On the stack of the captured function, so that handles are where they always are.
      auto all = bound;
      size_t next = 0;
      std::apply([&](auto&... x) { (Put(x, tensors, next), ...); }, all);
      tracer::BeginUserCode();
      if constexpr (std::is_void_v<R>) {
        std::apply(f, all);
        return std::vector<Tensor>();
      } else {
        return tracer::ResultOf<R>::Flatten(std::apply(f, all));
      }
    };
  }
  template <class T>
  static void Put(T& arg, const std::vector<Tensor>& tensors, size_t& next) {
    if constexpr (tracer::kIsTensor<T>) arg = tensors[next++];
  }

  std::function<R(A...)> function_;
  std::shared_ptr<tracer::StaticCore> core_;
};

/// A module: has forward(), named_parameters() and named_buffers().
template <class M>
concept ModuleLike = requires(M& m) { m.named_parameters(); m.named_buffers(); &M::forward; };

/// Compiles a function, lambda or functor. `specs` describe its tensor arguments in order; without them each set of sizes is compiled on
/// its own.
template <class F>
  requires(!ModuleLike<std::remove_cvref_t<F>>)
auto to_static(F&& f, std::vector<InputSpec> specs = {}, StaticOptions options = {}) {
  static_assert(tracer::HasSignature<std::decay_t<F>>,
                "to_static needs a function with one signature: a function, or an object with one operator() that is no template; name the types of a generic lambda's parameters");
  using Function = typename tracer::Signature<std::decay_t<F>>::Function;
  return StaticFunction<Function>(std::function<Function>(std::forward<F>(f)), std::move(specs), std::move(options), std::nullopt);
}

/// Compiles a module's forward(). The module must outlive the result; its parameters keep their names.
template <ModuleLike M>
auto to_static(M& module, std::vector<InputSpec> specs = {}, StaticOptions options = {}) {
  using Function = typename tracer::Signature<decltype(&M::forward)>::Function;
  tracer::CellNames names;
  for (auto& [name, t] : module.named_parameters()) names.emplace_back(name, t);
  for (auto& [name, t] : module.named_buffers()) names.emplace_back(name, t);
  auto call = [&module](auto&&... args) { return module.forward(std::forward<decltype(args)>(args)...); };
  return StaticFunction<Function>(std::function<Function>(call), std::move(specs), std::move(options), std::move(names));
}

}  // namespace sinter
