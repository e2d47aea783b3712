#include "sinter/eager/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <typeinfo>

#include "sinter/eager/grad_mode.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/strings.h"

namespace sinter::nn {
namespace {

template <class F>
class Walk final : public MemberVisitor {
 public:
  Walk(std::string prefix, F f) : prefix_(std::move(prefix)), f_(std::move(f)) {}
  void Child(const std::string& name, Module& m) override {
    Walk inner(prefix_ + name + ".", f_);
    m.VisitMembers(inner);
  }
  void Param(const std::string& name, Parameter& p) override { f_(prefix_ + name, p, true); }
  void State(const std::string& name, Buffer& b) override { f_(prefix_ + name, b, false); }

 private:
  std::string prefix_;
  F f_;
};

template <class F>
void ForEachCell(Module& m, F f) {
  Walk<F> walk("", f);
  m.VisitMembers(walk);
}

// The listed members of one module, and where they lie.
class Members final : public MemberVisitor {
 public:
  void Child(const std::string&, Module& m) override {
    children.push_back(&m);
    Add(&m, m.ObjectSize());
  }
  void Param(const std::string&, Parameter& p) override { Add(&p, sizeof p); }
  void State(const std::string&, Buffer& b) override { Add(&b, sizeof b); }
  bool Listed(const void* address) const {
    const char* p = static_cast<const char*>(address);
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& r) { return p >= r.first && p < r.second; });
  }
  std::vector<Module*> children;

 private:
  void Add(const void* begin, size_t bytes) {
    const char* p = static_cast<const char*>(begin);
    ranges_.emplace_back(p, p + bytes);
  }
  std::vector<std::pair<const char*, const char*>> ranges_;
};

std::string TypeName(const Module& m) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(typeid(m).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(m).name();
}

}  // namespace

Module::Module() : training_(std::make_shared<bool>(true)) {}
Module::Module(Module&& other) noexcept : training_(other.training_) {}
Module& Module::operator=(Module&& other) noexcept {
  training_ = other.training_;
  return *this;
}

void Module::CheckListed() {
  Members members;
  VisitMembers(members);
  for (const FoundMember& m : LiveMembersIn(this, ObjectSize())) {
    if (m.address == &live_ || members.Listed(m.address)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                StrCat(TypeName(*this), " has ", ToString(m.kind), " (", static_cast<const char*>(m.address) - reinterpret_cast<const char*>(this),
                       " bytes into it) that its SINTER_MODULE does not list: it would be neither trained nor saved; add it to the list"));
  }
  for (Module* child : members.children) child->CheckListed();
}

std::vector<std::pair<std::string, Tensor>> Module::NamedCells(bool parameters) {
  CheckListed();
  std::vector<std::pair<std::string, Tensor>> r;
  std::set<const TensorImpl*> known;
  ForEachCell(*this, [&](const std::string& name, Tensor& t, bool parameter) {
    if (parameter == parameters && t.defined() && known.insert(&t.impl()).second) r.emplace_back(name, t);
  });
  return r;
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() { return NamedCells(true); }

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() { return NamedCells(false); }

std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> r;
  for (auto& [name, t] : named_parameters()) r.push_back(t);
  return r;
}

void Module::train(bool on) {
  *training_ = on;
  Members members;
  VisitMembers(members);
  for (Module* child : members.children) child->train(on);
}

bool Module::training() const {
  if (Recorder* r = Recorder::Current()) r->NoteFlag(training_);
  return *training_;
}

void Module::copy_from(Module& other) {
  NoGradGuard no_grad;
  auto copy = [](auto mine, auto theirs) {
    if (mine.size() != theirs.size()) throw Error(ErrorCode::kInvalidArgument, "copy_from: the modules have different members");
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].first != theirs[i].first) throw Error(ErrorCode::kInvalidArgument, StrCat("copy_from: '", mine[i].first, "' against '", theirs[i].first, "'"));
      mine[i].second.set_data(theirs[i].second.clone());
    }
  };
  copy(named_parameters(), other.named_parameters());
  copy(named_buffers(), other.named_buffers());
}

}  // namespace sinter::nn
