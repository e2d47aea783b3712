#include "sinter/tracer/live_handles.h"

#include <algorithm>

#include "sinter/graph/strings.h"

namespace sinter::tracer {

LiveHandles::~LiveHandles() {
  for (auto& [handle, held] : outer_) handle->slot() = held;
}

void LiveHandles::Destroyed(Tensor* handle) noexcept {
  live_.erase(handle);
  outer_.erase(handle);
}

bool LiveHandles::Assigned(Tensor* handle) noexcept {
  if (live_.contains(handle)) return true;
  outer_.emplace(handle, handle->impl_ptr());
  return false;
}

std::vector<LiveHandles::Place> LiveHandles::InOrder() const {
  std::vector<Place> places;
  std::vector<std::pair<uint64_t, Tensor*>> heap;
  for (const auto& [handle, order] : live_) {  // by address
    if (fiber_.OnStack(handle)) places.push_back({handle, true, static_cast<size_t>(fiber_.top() - reinterpret_cast<char*>(handle))});
    else heap.emplace_back(order, handle);
  }
  std::sort(heap.begin(), heap.end());
  for (size_t i = 0; i < heap.size(); ++i) places.push_back({heap[i].second, false, i});
  return places;
}

std::string LiveHandles::Place::ToString() const { return StrCat(on_stack ? "s" : "h", number); }

}  // namespace sinter::tracer
