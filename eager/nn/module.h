#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinter/eager/tensor.h"
#include "sinter/graph/attrs.h"

/// Modules: objects with parameters, buffers and child modules.
///
///   struct Mlp : nn::Module {
///     nn::Linear fc1{784, 256}, fc2{256, 10};
///     SINTER_MODULE(fc1, fc2)
///     Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
///   };
namespace sinter::nn {

class Module;

/// Called for every listed member.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void Child(const std::string& name, Module& module) = 0;
  virtual void Param(const std::string& name, Parameter& parameter) = 0;
  virtual void State(const std::string& name, Buffer& buffer) = 0;
};

namespace module_internal {
inline void Visit(MemberVisitor& v, const std::string& name, Module& m) { v.Child(name, m); }
inline void Visit(MemberVisitor& v, const std::string& name, Parameter& p) { v.Param(name, p); }
inline void Visit(MemberVisitor& v, const std::string& name, Buffer& b) { v.State(name, b); }
template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::vector<T>& members);
template <class T, size_t N>
void Visit(MemberVisitor& v, const std::string& name, std::array<T, N>& members);
template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::unique_ptr<T>& member);
template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::shared_ptr<T>& member);
template <class T>
void Visit(MemberVisitor& v, const std::string& name, T*& member);

template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::vector<T>& members) {
  for (size_t i = 0; i < members.size(); ++i) Visit(v, name + "." + std::to_string(i), members[i]);
}
template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::unique_ptr<T>& member) {
  if (member) Visit(v, name, *member);
}
template <class T>
void Visit(MemberVisitor& v, const std::string& name, std::shared_ptr<T>& member) {
  if (member) Visit(v, name, *member);
}
template <class T, size_t N>
void Visit(MemberVisitor& v, const std::string& name, std::array<T, N>& members) {
  for (size_t i = 0; i < N; ++i) Visit(v, name + "." + std::to_string(i), members[i]);
}
template <class T>
void Visit(MemberVisitor& v, const std::string& name, T*& member) {
  if (member) Visit(v, name, *member);
}
}  // namespace module_internal

/// Base of all modules. May be moved, not copied (`copy_from` copies values). Members are looked up when asked for, so moving is safe.
class Module {
 public:
  Module();
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  virtual ~Module() = default;

  /// Handles of the cells, named "fc1.weight". A child module, Parameter or Buffer that is a member but not listed in SINTER_MODULE is
  /// an Error. Members on the heap (in a vector or unique_ptr) are seen only through the list. A cell that is shared by several
  /// members is named once, after the first.
  std::vector<std::pair<std::string, Tensor>> named_parameters();
  std::vector<std::pair<std::string, Tensor>> named_buffers();
  std::vector<Tensor> parameters();
  /// Switches this module and its children between training and evaluation.
  void train(bool on = true);
  void eval() { train(false); }
  /// Whether training. While a function is captured this is part of what the program is for.
  bool training() const;
  /// Copies the values of all parameters and buffers; names and types must agree.
  void copy_from(Module& other);

  /// Throws Error if a member of this module or of one of its children is not listed.
  void CheckListed();

  // Written by SINTER_MODULE.
  virtual void VisitMembers(MemberVisitor& visitor) = 0;
  virtual size_t ObjectSize() const = 0;

 private:
  std::vector<std::pair<std::string, Tensor>> NamedCells(bool parameters);

  std::shared_ptr<bool> training_;
  LiveMember live_{MemberKind::kModule};
};

}  // namespace sinter::nn

#define SINTER_VISIT_MEMBER(member) ::sinter::nn::module_internal::Visit(visitor, #member, member);

/// Lists the members of a module and makes it callable. Without members: SINTER_MODULE().
#define SINTER_MODULE(...)                                                        \
  void VisitMembers(::sinter::nn::MemberVisitor& visitor) override {              \
    (void)visitor;                                                                \
    SINTER_FOR_EACH(SINTER_VISIT_MEMBER, __VA_ARGS__)                             \
  }                                                                               \
  size_t ObjectSize() const override { return sizeof(*this); }                    \
  template <class... SinterArgs>                                                  \
  auto operator()(SinterArgs&&... args) {                                         \
    return this->forward(::std::forward<SinterArgs>(args)...);                    \
  }
