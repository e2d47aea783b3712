#include "sinter/runtime/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

TEST(MemoryTest, AlignedAndWritableAtEverySize) {
  for (size_t bytes = 0; bytes < 5000; bytes += 7) {
    MemoryBlock block(bytes);
    ASSERT_NE(block.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % kMemoryAlignment, 0u);
    std::memset(block.data(), 1, bytes);
  }
  for (size_t bytes : {size_t{1} << 20, (size_t{1} << 22) + 1, (size_t{1} << 24) - 1}) {
    MemoryBlock block(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % kMemoryAlignment, 0u);
    std::memset(block.data(), 1, bytes);
  }
}

TEST(MemoryTest, LiveBlocksDoNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int i = 0; i < 400; ++i) {
    const size_t bytes = static_cast<size_t>(i) * 37 % 3000;
    auto* block = static_cast<unsigned char*>(AllocateMemory(bytes));
    std::memset(block, i & 255, bytes);
    blocks.push_back({block, bytes});
    if (i % 3 == 2) {
      FreeMemory(blocks[0].first, blocks[0].second);
      blocks.erase(blocks.begin());
    }
  }
  for (auto [block, bytes] : blocks) {
    for (size_t j = 1; j < bytes; ++j) ASSERT_EQ(block[j], block[0]);
    FreeMemory(block, bytes);
  }
}

TEST(MemoryTest, CountsCurrentAndPeak) {
  const int64_t before = GetMemoryStats().current_bytes;
  ResetPeakMemory();
  {
    MemoryBlock a(1000);
    {
      MemoryBlock b(5000);
      EXPECT_EQ(GetMemoryStats().current_bytes, before + 6000);
    }
    EXPECT_EQ(GetMemoryStats().current_bytes, before + 1000);
    EXPECT_EQ(GetMemoryStats().peak_bytes, before + 6000);
    ResetPeakMemory();
    EXPECT_EQ(GetMemoryStats().peak_bytes, before + 1000);
    MemoryBlock moved(std::move(a));
    EXPECT_EQ(GetMemoryStats().current_bytes, before + 1000);
  }
  EXPECT_EQ(GetMemoryStats().current_bytes, before);
}

TEST(MemoryTest, ReusesFreedBlocks) {
  if (!kCaching) GTEST_SKIP() << "the cache is off under AddressSanitizer";
  ReleaseCachedMemory();
  EXPECT_EQ(GetMemoryStats().cached_bytes, 0);
  void* first = AllocateMemory(1000);
  FreeMemory(first, 1000);
  EXPECT_GE(GetMemoryStats().cached_bytes, 1000);
  const int64_t hits = GetMemoryStats().cache_hits;
  void* second = AllocateMemory(900);  // The same class.
  EXPECT_EQ(second, first);
  EXPECT_EQ(GetMemoryStats().cache_hits, hits + 1);
  FreeMemory(second, 900);
  ReleaseCachedMemory();
  EXPECT_EQ(GetMemoryStats().cached_bytes, 0);
}

TEST(MemoryTest, CacheStaysWithinItsLimit) {
  SetMemoryCacheLimit(1 << 16);
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(AllocateMemory(4096));
  for (void* block : blocks) FreeMemory(block, 4096);
  EXPECT_LE(GetMemoryStats().cached_bytes, 1 << 16);
  SetMemoryCacheLimit(0);
  EXPECT_EQ(GetMemoryStats().cached_bytes, 0);
  SetMemoryCacheLimit(size_t{1} << 30);
}

TEST(MemoryTest, RefusesWhatCannotBe) {
  std::vector<size_t> sizes{std::numeric_limits<size_t>::max(), size_t{1} << 48};
  if (kCaching)
    sizes.push_back(size_t{1} << 46);  // The system's own refusal; AddressSanitizer ends the program there.
  for (size_t bytes : sizes) {
    const MemoryStats before = GetMemoryStats();
    try {
      FreeMemory(AllocateMemory(bytes), bytes);
      FAIL() << bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
      EXPECT_NE(e.message().find(std::to_string(bytes)), std::string::npos);
    }
    EXPECT_EQ(GetMemoryStats().current_bytes, before.current_bytes);
  }
}

TEST(MemoryTest, LimitIsEnforced) {
  SetMemoryLimit(GetMemoryStats().current_bytes + 10000);
  { MemoryBlock fits(10000); }
  EXPECT_THROW(MemoryBlock(10001), Error);
  SetMemoryLimit(std::numeric_limits<size_t>::max());
  { MemoryBlock fits(10001); }
}

TEST(MemoryTest, ByteCountChecksOverflow) {
  EXPECT_EQ(ByteCount(0, 4), 0u);
  EXPECT_EQ(ByteCount(10, 4), 40u);
  EXPECT_THROW(ByteCount(-1, 4), Error);
  EXPECT_THROW(ByteCount(int64_t{1} << 62, 8), Error);
  EXPECT_THROW(ByteCount(int64_t{1} << 46, 8), Error);
}

TEST(MemoryTest, ManyThreads) {
  const int64_t before = GetMemoryStats().current_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = static_cast<size_t>(i * 31 + t) % 9000;
        MemoryBlock block(bytes);
        std::memset(block.data(), t, bytes);
        for (size_t j = 0; j < bytes; ++j) ASSERT_EQ(block.as<unsigned char>()[j], t);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(GetMemoryStats().current_bytes, before);
}

}  // namespace
}  // namespace sinter
