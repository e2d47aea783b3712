#include "sinter/tracer/verify.h"

#include <set>

#include "sinter/graph/strings.h"
#include "sinter/tracer/difference.h"

namespace sinter::tracer {
namespace {

// The state cells of a program on copies of their memory, until this ends.
class BorrowedState {
 public:
  explicit BorrowedState(const std::vector<External>& externals) {
    std::set<TensorImpl*> cells;
    for (const External& e : externals) cells.insert(e.owner ? e.owner.get() : e.cell.get());
    for (TensorImpl* c : cells) {
      TensorImpl& cell = *c;
      saved_.push_back({ImplPtr(c), cell.storage, cell.offset, cell.strides, cell.grad});
      const ImplPtr copy = CopyOf(cell);
      cell.storage = copy->storage;
      cell.offset = copy->offset;
      cell.strides = copy->strides;
      if (cell.grad) cell.grad = CopyOf(*cell.grad);
    }
  }
  ~BorrowedState() {
    for (Saved& s : saved_) {
      s.cell->storage = std::move(s.storage);
      s.cell->offset = s.offset;
      s.cell->strides = std::move(s.strides);
      s.cell->grad = std::move(s.grad);
    }
  }
  BorrowedState(const BorrowedState&) = delete;
  BorrowedState& operator=(const BorrowedState&) = delete;

 private:
  struct Saved {
    ImplPtr cell;
    sinter::Ref<Storage> storage;
    int64_t offset;
    Shape strides;
    ImplPtr grad;
  };
  static ImplPtr CopyOf(const TensorImpl& t) {
    ImplPtr copy = NewTensor(t.dtype, t.shape);
    CopyValues(t, *copy);
    return copy;
  }
  std::vector<Saved> saved_;
};

}  // namespace

void VerifyAgainstEager(const Entry& entry, const FlatFunction& function, const std::vector<Tensor>& arguments, const std::vector<ImplPtr>& outputs) {
  const std::string name = entry.graph->name;
  auto fail = [&](const std::string& what, const std::string& why) {
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(name, ": verify: ", what, " of the compiled program differs from the function run eagerly: ", why,
                       ". A host value that the function reads may have changed since the capture (pass it as an argument, or keep it in a Buffer), or a "
                       "host variable acts on a path that the capture did not see (declare it as Int)"));
  };
  auto compare = [&](const std::string& what, const Tensor& want, const ImplPtr& got) {
    if (std::string why = DifferenceOf(want, Tensor(got), entry.graph->numerics); !why.empty()) fail(what, why);
  };
  BorrowedState borrowed(entry.externals);
  const std::vector<Tensor> results = function(arguments);
  if (static_cast<int>(results.size()) != entry.num_results) fail("the number of results", StrCat("it gives ", entry.num_results, ", eager gives ", results.size()));
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) fail(StrCat("result ", i), "eager gives an undefined tensor");
    compare(StrCat("result ", i), results[i], outputs[next++]);
  }
  for (size_t s = 0; s < entry.graph->states.size(); ++s)
    if (const StateSlot& slot = entry.graph->states[s]; slot.result >= 0)
      compare(StrCat("state '", slot.name, "'"), Tensor(ImplPtr(&entry.externals[s].Current())), outputs[static_cast<size_t>(slot.result)]);
  for (const FinalGrad& g : entry.final_grads) {
    const std::string what = StrCat("the gradient of '", entry.graph->states[static_cast<size_t>(g.external)].name, "'");
    const ImplPtr grad = entry.externals[static_cast<size_t>(g.external)].cell->grad;
    if (g.cleared != !grad) fail(what, grad ? "it is cleared, eager leaves one" : "eager leaves none");
    if (!g.cleared) compare(what, Tensor(grad), outputs[next++]);
  }
}

}  // namespace sinter::tracer
