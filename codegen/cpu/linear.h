#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sinter/codegen/kernel.h"

/// How memory positions depend on loop variables, and loops that are one loop in disguise.
namespace sinter::codegen::cpu {

/// The size that an expression stands for, if it is made of constants and kSize alone.
std::optional<Dim> AsSize(const Expr& e);

/// Whether loop variable `var` occurs free in `e`. Shared nodes are visited once.
bool Mentions(const Expr& e, int var);

/// c such that e = c * var + (terms without var); nothing if e isn't of that form.
std::optional<Dim> Coefficient(const Expr& e, int var);

/// Elements between neighbours along each dimension of a buffer.
std::vector<Dim> Strides(const KernelBuffer& buffer);

/// Sizes that are products of other sizes: what neither is a constant nor a run-time size of the kernel is found here.
using Products = std::unordered_map<Dim, std::pair<Dim, Dim>>;

/// Merges adjacent loops (outer, inner and of reductions) that walk all memory like one loop, for instance the rows and columns of an
/// addition of dense matrices: the outer variable becomes 0 and the inner one runs over the product. Offsets stay the same; positions
/// then leave the range of their dimension. The extents of merged loops are added to `products`.
Kernel MergeLoops(const Kernel& kernel, Products& products);

}  // namespace sinter::codegen::cpu
