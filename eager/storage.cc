#include "sinter/eager/storage.h"

#include <new>

#include "sinter/runtime/memory.h"

namespace sinter {
namespace {

// Small tensors live in one block with their header; larger ones have a block of their own, so that a size
// that is a power of two does not fall into the next size class.
constexpr size_t kHeader = 64;
constexpr size_t kInlineBytes = 4096;
static_assert(sizeof(Storage) <= kHeader);

// Unique numbers, taken from the shared counter in blocks.
uint64_t NextStamp() {
  static constinit std::atomic<uint64_t> blocks{0};
  static constinit thread_local uint64_t next = 0;
  constexpr uint64_t kBlock = 4096;
  if (next % kBlock == 0) next = blocks.fetch_add(1, std::memory_order_relaxed) * kBlock + 1;
  return next++;
}

}  // namespace

Ref<Storage> Storage::Allocate(size_t bytes) {
  const bool in_one = bytes <= kInlineBytes;
  void* block = AllocateMemory(in_one ? kHeader + bytes : kHeader);
  Storage* s = new (block) Storage();
  s->bytes_ = bytes;
  Ref<Storage> ref(s);
  s->data_ = in_one ? static_cast<std::byte*>(block) + kHeader : AllocateMemory(bytes);
  s->MarkWritten();
  return ref;
}

Ref<Storage> Storage::Borrow(void* data, size_t bytes, std::shared_ptr<void> owner, bool read_only) {
  auto kept = std::make_unique<std::shared_ptr<void>>(std::move(owner));
  Storage* s = new (AllocateMemory(kHeader)) Storage();
  s->data_ = data;
  s->bytes_ = bytes;
  s->owner_ = std::move(kept);
  s->read_only_ = read_only;
  s->MarkWritten();
  return Ref<Storage>(s);
}

void Storage::MarkWritten() { version_.store(NextStamp(), std::memory_order_relaxed); }

void Storage::Destroy() noexcept {
  const size_t bytes = bytes_;
  void* data = data_;
  const bool borrowed = owner_ != nullptr;
  const bool in_one = data == reinterpret_cast<std::byte*>(this) + kHeader;
  this->~Storage();
  if (!borrowed && !in_one && data != nullptr) FreeMemory(data, bytes);
  FreeMemory(this, in_one && !borrowed ? kHeader + bytes : kHeader);
}

}  // namespace sinter
