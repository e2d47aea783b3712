#include "sinter/graph/op_registry.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "sinter/graph/strings.h"
#include "sinter/graph/op.h"
#include "sinter/graph/ops/all_ops.h"

namespace sinter {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, const OpDef*, std::less<>> by_name;
  std::vector<const OpDef*> in_order;

  void Add(const OpDef* def) {
    SINTER_CHECK(by_name.emplace(def->name, def).second, "two ops named " + def->name);
    in_order.push_back(def);
  }
};

Registry& TheRegistry() {
  static Registry* registry = [] {
    auto* r = new Registry();
    for (const OpDef* def : BuiltinOps()) r->Add(def);
    return r;
  }();
  return *registry;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

}  // namespace

const OpDef* FindOp(std::string_view name) {
  Registry& r = TheRegistry();
  {
    std::lock_guard lock(r.mutex);
    if (auto it = r.by_name.find(name); it != r.by_name.end()) return it->second;
  }
  return op_internal::FindDerived(name);
}

const OpDef& GetOp(std::string_view name) {
  if (const OpDef* op = FindOp(name)) return *op;
  std::string_view nearest;
  size_t best = 4;
  const std::string_view probe = name.substr(0, 64);
  for (const OpDef* op : AllOps())
    if (size_t d = EditDistance(probe, op->name); d < best) best = d, nearest = op->name;
  throw Error(ErrorCode::kNotFound,
              StrCat("no op named '", name.substr(0, 128), "'",
                           nearest.empty() ? "; an op of the program that saved this must be registered here too (RegisterOp)"
                                           : StrCat("; did you mean '", nearest, "'?")));
}

std::vector<const OpDef*> AllOps() {
  Registry& r = TheRegistry();
  std::lock_guard lock(r.mutex);
  return r.in_order;
}

const OpDef& RegisterOp(OpDef def) {
  Registry& r = TheRegistry();
  std::lock_guard lock(r.mutex);
  if (r.by_name.contains(def.name))
    throw Error(ErrorCode::kInvalidArgument, StrCat("an op named '", def.name, "' is registered already; choose another name"));
  def.user_defined = true;
  const OpDef* kept = new OpDef(std::move(def));
  r.Add(kept);
  return *kept;
}

}  // namespace sinter
