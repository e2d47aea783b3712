#pragma once

#include <cstddef>
#include <vector>

/// Where the modules, parameters and buffers of the process lie in memory: how a member that its module does not list is found.
namespace sinter {

enum class MemberKind : unsigned char { kModule, kParameter, kBuffer };

/// "a child module", "a Parameter", "a Buffer".
const char* ToString(MemberKind kind);

/// A part of an object that is to be found by its address. Copies and moved-to objects are members of their own.
class LiveMember {
 public:
  explicit LiveMember(MemberKind kind);
  LiveMember(const LiveMember& o) : LiveMember(o.kind_) {}
  LiveMember& operator=(const LiveMember&) { return *this; }
  ~LiveMember();
  MemberKind kind() const { return kind_; }

 private:
  MemberKind kind_;
};

struct FoundMember {
  const void* address;
  MemberKind kind;
};

/// The live members in [begin, begin + bytes), by address.
std::vector<FoundMember> LiveMembersIn(const void* begin, size_t bytes);

}  // namespace sinter
