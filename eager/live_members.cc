#include "sinter/eager/live_members.h"

#include <map>
#include <mutex>

namespace sinter {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<const char*, MemberKind> members;
};
Registry& Live() {
  static auto* registry = new Registry();  // never destroyed: objects of static lifetime are members too
  return *registry;
}

}  // namespace

const char* ToString(MemberKind kind) {
  switch (kind) {
    case MemberKind::kModule: return "a child module";
    case MemberKind::kParameter: return "a Parameter";
    case MemberKind::kBuffer: return "a Buffer";
  }
  return "a member";
}

LiveMember::LiveMember(MemberKind kind) : kind_(kind) {
  Registry& live = Live();
  std::lock_guard lock(live.mutex);
  live.members.emplace(reinterpret_cast<const char*>(this), kind);
}

LiveMember::~LiveMember() {
  Registry& live = Live();
  std::lock_guard lock(live.mutex);
  live.members.erase(reinterpret_cast<const char*>(this));
}

std::vector<FoundMember> LiveMembersIn(const void* begin, size_t bytes) {
  Registry& live = Live();
  const char* from = static_cast<const char*>(begin);
  std::vector<FoundMember> found;
  std::lock_guard lock(live.mutex);
  for (auto it = live.members.lower_bound(from); it != live.members.end() && it->first < from + bytes; ++it) found.push_back({it->first, it->second});
  return found;
}

}  // namespace sinter
