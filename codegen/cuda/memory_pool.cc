#include "sinter/codegen/cuda/memory_pool.h"

#include <algorithm>
#include <bit>
#include <exception>

namespace sinter::codegen::cuda {

size_t MemoryPool::BlockSize(size_t bytes) const {
  bytes = std::max<size_t>(bytes, 1);
  if (keep_bytes_ == 0 || bytes > SIZE_MAX / 2) return bytes;
  const size_t step = std::max<size_t>(512, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

uint64_t MemoryPool::Take(size_t size) {
  std::lock_guard lock(mutex_);
  auto it = waiting_.find(size);
  if (it == waiting_.end() || it->second.empty()) return 0;
  const uint64_t address = it->second.back();
  used_.emplace(address, size);
  it->second.pop_back();
  used_bytes_ += size;
  waiting_bytes_ -= size;
  return address;
}

void MemoryPool::Add(uint64_t address, size_t size) {
  std::lock_guard lock(mutex_);
  used_.emplace(address, size);
  used_bytes_ += size;
}

bool MemoryPool::Release(uint64_t address) noexcept {
  std::lock_guard lock(mutex_);
  auto it = used_.find(address);
  if (it == used_.end()) return false;  // none of ours, or released before
  const size_t size = it->second;
  used_.erase(it);
  used_bytes_ -= size;
  if (size > keep_bytes_ - waiting_bytes_) return true;
  try {
    waiting_[size].push_back(address);
  } catch (const std::exception&) {
    return true;
  }
  waiting_bytes_ += size;
  return false;
}

std::vector<uint64_t> MemoryPool::Drain() {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> all;
  for (const auto& [size, addresses] : waiting_) all.insert(all.end(), addresses.begin(), addresses.end());
  waiting_.clear();
  waiting_bytes_ = 0;
  return all;
}

size_t MemoryPool::bytes_in_use() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

}  // namespace sinter::codegen::cuda
