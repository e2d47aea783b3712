#include "sinter/eager/nn/module.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "sinter/eager/grad_mode.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/strings.h"

namespace sinter::nn {
namespace {

// Addresses of all live modules: how a member that was not listed is found.
struct LiveModules {
  std::mutex mutex;
  std::set<const Module*> addresses;
};
LiveModules& Live() {
  static auto* live = new LiveModules();
  return *live;
}

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

class Children final : public MemberVisitor {
 public:
  void Child(const std::string&, Module& m) override { list.push_back(&m); }
  void Param(const std::string&, Parameter&) override {}
  void State(const std::string&, Buffer&) override {}
  std::vector<Module*> list;
};

}  // namespace

Module::Module() : training_(std::make_shared<bool>(true)) {
  LiveModules& live = Live();
  std::lock_guard lock(live.mutex);
  live.addresses.insert(this);
}
Module::Module(Module&& other) noexcept : training_(other.training_) {
  LiveModules& live = Live();
  std::lock_guard lock(live.mutex);
  live.addresses.insert(this);
}
Module& Module::operator=(Module&& other) noexcept {
  training_ = other.training_;
  return *this;
}
Module::~Module() {
  LiveModules& live = Live();
  std::lock_guard lock(live.mutex);
  live.addresses.erase(this);
}

void Module::CheckListed() {
  Children children;
  VisitMembers(children);
  const char *begin = reinterpret_cast<const char*>(this), *end = begin + ObjectSize();
  auto inside = [](const char* p, const char* from, const char* to) { return p >= from && p < to; };
  LiveModules& live = Live();
  std::lock_guard lock(live.mutex);
  for (const Module* m : live.addresses) {
    const char* p = reinterpret_cast<const char*>(m);
    if (m == this || !inside(p, begin, end)) continue;
    const bool listed = std::any_of(children.list.begin(), children.list.end(), [&](const Module* c) {
      return inside(p, reinterpret_cast<const char*>(c), reinterpret_cast<const char*>(c) + c->ObjectSize());
    });
    if (!listed)
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat("a module has a member module, ", p - begin, " bytes into it, that SINTER_MODULE does not list: its parameters would be lost; add it to the list"));
  }
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() {
  CheckListed();
  std::vector<std::pair<std::string, Tensor>> r;
  ForEachCell(*this, [&](const std::string& name, Tensor& t, bool parameter) {
    if (parameter && t.defined()) r.emplace_back(name, t);
  });
  return r;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() {
  CheckListed();
  std::vector<std::pair<std::string, Tensor>> r;
  ForEachCell(*this, [&](const std::string& name, Tensor& t, bool parameter) {
    if (!parameter && t.defined()) r.emplace_back(name, t);
  });
  return r;
}

std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> r;
  for (auto& [name, t] : named_parameters()) r.push_back(t);
  return r;
}

void Module::train(bool on) {
  *training_ = on;
  Children children;
  VisitMembers(children);
  for (Module* c : children.list) c->train(on);
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
