#include "sinter/tracer/entry.h"

#include "sinter/graph/strings.h"

namespace sinter::tracer {

std::string TypesText(const std::vector<TensorType>& types) {
  return Join(types, ", ", [](std::string* out, const TensorType& t) { StrAppend(out, TypeToString(t)); });
}

bool Serves(const Entry& e, const std::vector<TensorType>& types, const DimEnv* sizes) {
  if (e.types.size() != types.size()) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType &have = e.types[i], &want = types[i];
    if (have.dtype != want.dtype || have.rank() != want.rank()) return false;
    for (int d = 0; d < have.rank(); ++d) {
      if (have.shape[d] == want.shape[d]) continue;
      if (sizes == nullptr || !have.shape[d].is_const() || want.shape[d].Eval(*sizes) != have.shape[d].value()) return false;
    }
  }
  return true;
}

const GuardedCond* FindBroken(const Entry& e, const DimEnv& sizes) {
  for (const GuardedCond& g : e.graph->guards)
    if (!g.condition.Eval(sizes)) return &g;
  return nullptr;
}

bool SameState(const Entry& e) {
  for (const auto& [flag, value] : e.flags)
    if (*flag != value) return false;
  for (const auto& [cell, had] : e.had_grad)
    if (static_cast<bool>(cell->grad) != had) return false;
  for (size_t i = 0; i < e.externals.size(); ++i) {
    const TensorImpl& cell = e.externals[i].Current();
    const TensorType& t = e.graph->body.params[static_cast<size_t>(e.graph->states[i].param)]->type;
    if (cell.symbolic || cell.dtype != t.dtype || cell.requires_grad != e.graph->states[i].trainable || cell.rank() != t.rank()) return false;
    for (int d = 0; d < t.rank(); ++d)
      if (!(t.shape[d] == Dim(cell.shape[d]))) return false;
  }
  return true;
}

std::string DescribeEntry(const Entry& e, size_t number) {
  std::string s;
  StrAppend(&s, "entry ", number, ": ", TypesText(e.types), e.host_key.empty() ? "" : StrCat(" host ", e.host_key), "\n  captured in ", e.runs, " run(s), ",
            static_cast<int64_t>(e.capture_seconds * 1e6), " us; compiled in ", static_cast<int64_t>(e.compile_seconds * 1e6), " us\n  ", e.report.nodes,
            " nodes in ", e.report.kernels, " fused kernels and ", e.report.structured, " library kernels\n");
  for (const StateSlot& st : e.graph->states) StrAppend(&s, "  state '", st.name, "'", st.result >= 0 ? " (written)" : "", "\n");
  for (const GuardedCond& g : e.graph->guards) StrAppend(&s, "  guard ", g.condition.ToString(), ": ", g.message, g.location.empty() ? "" : StrCat(" at ", g.location), "\n");
  for (const std::string& p : e.pinned) StrAppend(&s, "  pinned size ", p, "\n");
  for (const std::string& c : e.report.claims) StrAppend(&s, "  claimed: ", c, "\n");
  for (const auto& r : e.report.refusals) StrAppend(&s, "  not fused: ", r.value, ": ", r.reason, "\n");
  return s;
}

}  // namespace sinter::tracer
