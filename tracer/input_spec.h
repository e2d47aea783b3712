#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sinter/eager/tensor.h"
#include "sinter/graph/type.h"

namespace sinter {

/// One size of an InputSpec: a number, a name (a symbol; the same name means the same size), a Dim, or kDynamic.
class SpecDim {
 public:
  SpecDim(int size) : dim_(size) {}                  // NOLINT(google-explicit-constructor)
  SpecDim(int64_t size) : dim_(size) {}              // NOLINT(google-explicit-constructor)
  SpecDim(const char* name) : dim_(Dim::Symbol(name)) {}         // NOLINT(google-explicit-constructor)
  SpecDim(const std::string& name) : dim_(Dim::Symbol(name)) {}  // NOLINT(google-explicit-constructor)
  SpecDim(Dim dim) : dim_(dim) {}                    // NOLINT(google-explicit-constructor)
  static constexpr struct Dynamic {} kAny{};
  SpecDim(Dynamic) : dynamic_(true) {}               // NOLINT(google-explicit-constructor)
  bool dynamic() const { return dynamic_; }
  Dim dim() const { return dim_; }

 private:
  Dim dim_;
  bool dynamic_ = false;
};

/// A size that may be anything, unrelated to every other.
inline constexpr SpecDim::Dynamic kDynamic{};

/// A named size with facts: `dim("s", {.min = 1, .max = 512, .multiple_of = 8})`.
inline Dim dim(std::string_view name, Dim::Facts facts = {}) { return Dim::Symbol(name, facts); }

struct InputSpecOptions {
  /// true: asking for a symbolic size of this call as a number (shape(), numel()) is an Error at the line that does it. false: it is a
  /// guard, listed by explain(), and calls with other sizes get a program of their own.
  bool strict = false;
};

/// What one tensor argument of a captured function looks like.
///
///   InputSpec({kDynamic, 784}, kFloat32, "image")
class InputSpec {
 public:
  InputSpec(std::initializer_list<SpecDim> shape, DType dtype = kFloat32, std::string name = {}, InputSpecOptions options = {});
  /// Every size fixed to that of `example`.
  static InputSpec Of(const Tensor& example, std::string name = {});

  const TensorType& type() const { return type_; }
  const std::string& name() const { return name_; }
  bool strict() const { return options_.strict; }

 private:
  InputSpec(TensorType type, std::string name) : type_(std::move(type)), name_(std::move(name)) {}
  TensorType type_;
  std::string name_;
  InputSpecOptions options_;
};

}  // namespace sinter
