#include "sinter/runtime/memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <string>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

constexpr size_t kSmallest = kMemoryAlignment;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLargestRequest = size_t{1} << 47;
constexpr int kNumClasses = 4 * (48 - 6) + 1;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

/// Four classes per power of two, multiples of 64 below 256.
int ClassOf(size_t bytes) {
  if (bytes <= 4 * kSmallest) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kSmallest);
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log <= bytes - 1 < 2^(log + 1)
  const int quarter = static_cast<int>((bytes - 1) >> (log - 2) & 3);
  return 4 + (log - 8) * 4 + quarter;
}

size_t ClassSize(int index) {
  if (index < 4) return (static_cast<size_t>(index) + 1) * kSmallest;
  const int log = 8 + (index - 4) / 4;
  return (size_t{1} << log) + (static_cast<size_t>((index - 4) % 4) + 1) * (size_t{1} << (log - 2));
}

struct FreeBlock {
  FreeBlock* next;
};

struct alignas(64) FreeList {
  std::mutex mutex;
  FreeBlock* head = nullptr;
};

struct State {
  FreeList lists[kNumClasses];
  std::atomic<int64_t> current{0}, peak{0}, cached{0}, allocations{0}, hits{0};
  std::atomic<int64_t> cache_limit{int64_t{1} << 30};
  std::atomic<int64_t> limit{std::numeric_limits<int64_t>::max()};
};

State& TheState() {
  static State* state = [] {
    auto* made = new State;
    if (const char* text = std::getenv("SINTER_MEMORY_CACHE_MB")) {
      char* end = nullptr;
      const long long megabytes = std::strtoll(text, &end, 10);
      if (end == text || *end != '\0' || megabytes < 0 || megabytes > (1 << 24)) {
        delete made;
        throw Error(
            ErrorCode::kInvalidArgument,
            std::string("SINTER_MEMORY_CACHE_MB must be a number from 0 to 16777216, not \"") + text + "\"");
      }
      made->cache_limit = static_cast<int64_t>(megabytes) << 20;
    }
    // A lock held by another thread at fork() would stay locked in the child.
    pthread_atfork(
        [] {
          for (FreeList& list : TheState().lists) list.mutex.lock();
        },
        [] {
          for (FreeList& list : TheState().lists) list.mutex.unlock();
        },
        [] {
          for (FreeList& list : TheState().lists) list.mutex.unlock();
        });
    return made;
  }();
  return *state;
}

/// nullptr where the system refuses.
void* SystemAllocate(size_t size) {
  if (size < 2 * kHugePage) return std::aligned_alloc(kMemoryAlignment, size);
  // Large blocks are mostly streamed through: huge pages save most of the page faults and address
  // translations.
  const size_t rounded = (size + kHugePage - 1) / kHugePage * kHugePage;
  void* block = std::aligned_alloc(kHugePage, rounded);
  if (block != nullptr) madvise(block, rounded, MADV_HUGEPAGE);  // Only advice: failure changes nothing.
  return block;
}

void* TakeCached(State& state, int index) {
  FreeList& list = state.lists[index];
  std::lock_guard lock(list.mutex);
  FreeBlock* block = list.head;
  if (block == nullptr) return nullptr;
  list.head = block->next;
  state.cached.fetch_sub(static_cast<int64_t>(ClassSize(index)), std::memory_order_relaxed);
  return block;
}

[[noreturn]] void ThrowExhausted(size_t bytes, const std::string& why) {
  throw Error(ErrorCode::kResourceExhausted,
              "out of memory: cannot allocate " + std::to_string(bytes) + " bytes (" + why + "; " +
                  std::to_string(GetMemoryStats().current_bytes) + " bytes are in use)");
}

/// Counts `bytes` as handed out, or throws when the limit forbids it.
void Account(State& state, int64_t bytes) {
  const int64_t now = state.current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > state.limit.load(std::memory_order_relaxed)) {
    state.current.fetch_sub(bytes, std::memory_order_relaxed);
    ThrowExhausted(static_cast<size_t>(bytes),
                   "the limit is " + std::to_string(state.limit.load(std::memory_order_relaxed)) + " bytes");
  }
  int64_t peak = state.peak.load(std::memory_order_relaxed);
  while (now > peak && !state.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

/// Frees cached blocks, the largest first, until at most `keep` bytes are cached.
void TrimCache(State& state, int64_t keep) noexcept {
  for (int index = kNumClasses - 1; index >= 0; --index) {
    while (state.cached.load(std::memory_order_relaxed) > keep) {
      void* block = TakeCached(state, index);
      if (block == nullptr) break;
      std::free(block);
    }
  }
}

}  // namespace

void* AllocateMemory(size_t bytes) {
  State& state = TheState();
  if (bytes > kLargestRequest) ThrowExhausted(bytes, "more than any machine has");
  state.allocations.fetch_add(1, std::memory_order_relaxed);
  Account(state, static_cast<int64_t>(bytes));
  const int index = ClassOf(bytes);
  if (void* block = TakeCached(state, index)) {
    state.hits.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
  void* block = SystemAllocate(ClassSize(index));
  if (block == nullptr) {
    TrimCache(state, 0);
    block = SystemAllocate(ClassSize(index));
  }
  if (block == nullptr) {
    state.current.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    ThrowExhausted(bytes, "the system refused");
  }
  return block;
}

void FreeMemory(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  State& state = TheState();
  state.current.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  const int index = ClassOf(bytes);
  const int64_t size = static_cast<int64_t>(ClassSize(index));
  const int64_t cached = state.cached.fetch_add(size, std::memory_order_relaxed) + size;
  if (!kCaching || cached > state.cache_limit.load(std::memory_order_relaxed)) {
    state.cached.fetch_sub(size, std::memory_order_relaxed);
    std::free(block);
    return;
  }
  FreeList& list = state.lists[index];
  std::lock_guard lock(list.mutex);
  list.head = new (block) FreeBlock{list.head};
}

MemoryStats GetMemoryStats() {
  const State& state = TheState();
  return {state.current.load(std::memory_order_relaxed), state.peak.load(std::memory_order_relaxed),
          state.cached.load(std::memory_order_relaxed), state.allocations.load(std::memory_order_relaxed),
          state.hits.load(std::memory_order_relaxed)};
}

void ResetPeakMemory() {
  State& state = TheState();
  state.peak.store(state.current.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void ReleaseCachedMemory() noexcept { TrimCache(TheState(), 0); }

void SetMemoryCacheLimit(size_t bytes) {
  State& state = TheState();
  state.cache_limit.store(static_cast<int64_t>(std::min(bytes, kLargestRequest)), std::memory_order_relaxed);
  TrimCache(state, state.cache_limit.load(std::memory_order_relaxed));
}

void SetMemoryLimit(size_t bytes) {
  TheState().limit.store(static_cast<int64_t>(std::min<size_t>(bytes, std::numeric_limits<int64_t>::max())),
                         std::memory_order_relaxed);
}

size_t ByteCount(int64_t count, size_t item_size) {
  size_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(static_cast<size_t>(count), item_size, &bytes) ||
      bytes > kLargestRequest) {
    throw Error(ErrorCode::kResourceExhausted, "out of memory: " + std::to_string(count) + " elements of " +
                                                   std::to_string(item_size) +
                                                   " bytes are more than any machine has");
  }
  return bytes;
}

}  // namespace sinter
