#include "sinter/eager/eager_builder.h"

#include "sinter/eager/dispatch.h"
#include "sinter/graph/call_stack.h"
#include "sinter/graph/strings.h"

namespace sinter::eager {

Var EagerBuilder::Wrap(ImplPtr value) {
  if (!value) return Var();
  entries_.emplace_back().value = std::move(value);
  return Var(this, entries_.size() - 1);
}

std::string EagerBuilder::Entry::What() const {
  return StrCat(role == Role::kOperand ? "operand " : "result ", index);
}

Var EagerBuilder::WrapSaved(const SavedTensor& saved, ImplPtr value, const TapeNode& node, Role role,
                            int index) {
  Entry& e = entries_.emplace_back();
  e.value = std::move(value);
  e.saved = &saved;
  e.node = &node;
  e.role = role;
  e.index = index;
  return Var(this, entries_.size() - 1);
}

ImplPtr EagerBuilder::Unwrap(const Var& v) {
  if (!v) return nullptr;
  auto& self = static_cast<EagerBuilder&>(v.builder());
  return self.Readable(self.entries_[v.id()]);
}

const TensorType& EagerBuilder::Type(const Var& v) {
  Entry& e = entries_[v.id()];
  if (!e.typed) {
    if (e.value) {
      e.type = SymbolicTypeOf(*e.value);
    } else {
      const ConcreteType& t = e.saved->type;
      e.type = {t.dtype, SymShape(t.shape.begin(), t.shape.end())};
    }
    e.typed = true;
  }
  return e.type;
}

const ImplPtr& EagerBuilder::Readable(const Entry& e) const {
  if (e.saved == nullptr) return e.value;
  SINTER_CHECK(e.value,
               StrCat("the gradient of ", e.node->name(), " reads ", e.What(), ", which was not saved"));
  if (e.value->storage->version() != e.saved->version) {
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat("backward: the gradient of ", e.node->name(), " needs ", e.What(), " (",
                       TypeToString(e.value->type()),
                       "), which was overwritten after the forward; write to a clone(), or use the op that "
                       "makes a new tensor",
                       e.node->stack.empty() ? "" : StrCat(". The op ran at ", UserLocation(e.node->stack))));
  }
  return e.value;
}

std::vector<Var> EagerBuilder::Apply(const OpDef& op, AttrPtr attrs, std::span<const Var> inputs) {
  absl::InlinedVector<TensorImpl*, 4> in;
  for (const Var& v : inputs) {
    SINTER_CHECK(v, StrCat("an empty operand of ", op.name));
    in.push_back(Readable(entries_[v.id()]).get());
  }
  Results out;
  Dispatch(op, attrs, in, out);
  std::vector<Var> vars;
  for (ImplPtr& t : out) vars.push_back(Wrap(std::move(t)));
  return vars;
}

}  // namespace sinter::eager
