#pragma once

#include "sinter/graph/graph.h"
#include "sinter/runtime/kernels/registry.h"

/// Claims: a library does an op in place of Sinter's own kernel, where the numerics contract allows other roundings, the library supports
/// the case, and it measured faster. Never under kExact.
namespace sinter::codegen {

struct Claim {
  const OpDef* op = nullptr;
  const char* library = "";
  /// Whether the types of a node are ones that it may do. What depends on sizes is decided in each call.
  bool (*supports)(const Node& node) = nullptr;
  kernels::StructuredFn run = nullptr;
};

/// The claim on a node; null if there is none here.
const Claim* FindClaim(const Node& node, Numerics numerics);

/// Claims of oneDNN.
std::vector<Claim> OneDnnClaims();

}  // namespace sinter::codegen
