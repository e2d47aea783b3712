#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sinter/graph/attrs.h"

namespace sinter {

struct OpDef;
class Builder;

/// A value inside a decomposition or a gradient, whoever carries it out: a graph under construction or the eager
/// runtime. A handle without ownership, valid while its Builder is.
class Var {
 public:
  Var() = default;
  Var(Builder* builder, uintptr_t id) : builder_(builder), id_(id) {}
  explicit operator bool() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  uintptr_t id() const { return id_; }
  /// Element type and sizes; constants when eager.
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const SymShape& shape() const { return type().shape; }
  int rank() const { return type().rank(); }

 private:
  Builder* builder_ = nullptr;
  uintptr_t id_ = 0;
};

/// Carries out ops.
class Builder {
 public:
  virtual ~Builder() = default;
  virtual std::vector<Var> Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) = 0;
  virtual const TensorType& Type(const Var& v) = 0;
};

inline const TensorType& Var::type() const { return builder_->Type(*this); }

/// How an op object carries out an op on Vars.
std::vector<Var> ApplyOp(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs);

}  // namespace sinter
