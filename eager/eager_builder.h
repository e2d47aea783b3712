#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "sinter/eager/compute.h"
#include "sinter/eager/tape.h"
#include "sinter/graph/var.h"

namespace sinter::eager {

/// Carries out decompositions and gradient rules on tensors. Ops go through the dispatcher, so they are put
/// on the tape where gradients are enabled, and recorded during a capture.
class EagerBuilder final : public Builder {
 public:
  Var Wrap(ImplPtr value);
  /// A value from the tape. It is checked when an op reads it, so that a rule may look at the type of a value
  /// that was not kept or has been overwritten. `value` may replace the saved cell by one that has its
  /// history.
  enum class Role : uint8_t { kOperand, kResult };
  Var WrapSaved(const SavedTensor& saved, ImplPtr value, const TapeNode& node, Role role, int index);
  static ImplPtr Unwrap(const Var& v);

  std::vector<Var> Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) override;
  const TensorType& Type(const Var& v) override;

 private:
  struct Entry {
    ImplPtr value;
    TensorType type;
    bool typed = false;
    const SavedTensor* saved = nullptr;
    const TapeNode* node = nullptr;
    Role role = Role::kOperand;
    int index = 0;
    std::string What() const;  // "operand 1"
  };
  const ImplPtr& Readable(const Entry& e) const;

  std::deque<Entry> entries_;
};

}  // namespace sinter::eager
