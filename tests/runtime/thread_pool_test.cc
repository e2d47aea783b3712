#include "sinter/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { SetNumThreads(GetParam()); }
};

TEST_P(ThreadPoolTest, RunsEveryTaskOnce) {
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> counts(n);
    ParallelFor(n, [&](int64_t i) { counts[i].fetch_add(1); });
    for (auto& count : counts) EXPECT_EQ(count.load(), 1);
  }
}

TEST_P(ThreadPoolTest, RangesCoverExactly) {
  for (int64_t n : {0, 1, 5, 16, 17, 1000, 4097}) {
    for (int64_t grain : {0, 1, 3, 16, 5000}) {
      std::vector<std::atomic<int>> counts(n);
      std::atomic<int> short_ranges{0};
      ParallelRange(n, grain, [&](int64_t begin, int64_t end) {
        ASSERT_LT(begin, end);
        if (end - begin < grain && end - begin < n) ++short_ranges;
        for (int64_t i = begin; i < end; ++i) counts[i].fetch_add(1);
      });
      for (auto& count : counts) ASSERT_EQ(count.load(), 1) << n << " " << grain;
      EXPECT_EQ(short_ranges.load(), 0);
    }
  }
}

TEST_P(ThreadPoolTest, ManyShortCallsBackToBack) {
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 20000; ++i)
    ParallelFor(3, [&](int64_t j) { sum.fetch_add(j + 1, std::memory_order_relaxed); });
  EXPECT_EQ(sum.load(), 20000 * 6);
}

TEST_P(ThreadPoolTest, WakesWorkersThatSleep) {
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> done{0};
    ParallelFor(GetParam(), [&](int64_t) {
      // All must be present at once: fails (by hanging) if a sleeping worker is not woken.
      done.fetch_add(1);
      while (done.load() < GetParam()) std::this_thread::yield();
    });
    EXPECT_EQ(done.load(), GetParam());
  }
}

TEST_P(ThreadPoolTest, NestedCallsRunInline) {
  EXPECT_FALSE(InParallelRegion());
  std::atomic<int> inner{0};
  ParallelFor(4, [&](int64_t) {
    EXPECT_EQ(InParallelRegion(), GetParam() > 1);
    const auto self = std::this_thread::get_id();
    ParallelFor(4, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner.fetch_add(1);
    });
  });
  EXPECT_EQ(inner.load(), 16);
  EXPECT_FALSE(InParallelRegion());
}

TEST_P(ThreadPoolTest, FirstExceptionReachesTheCaller) {
  for (int round = 0; round < 50; ++round) {
    try {
      ParallelFor(100, [&](int64_t i) {
        if (i >= 10) throw std::runtime_error("task");
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "task");
    }
    EXPECT_FALSE(InParallelRegion());
  }
  std::atomic<int> count{0};
  ParallelFor(10, [&](int64_t) { count.fetch_add(1); });
  EXPECT_EQ(count.load(), 10);
}

TEST_P(ThreadPoolTest, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ParallelRange(1000, 10, [&](int64_t begin, int64_t end) { total.fetch_add(end - begin); });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 6 * 500 * 1000);
}

TEST_P(ThreadPoolTest, ChildOfForkRunsInline) {
  ParallelFor(8, [](int64_t) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::set<std::thread::id> ids;
    ParallelFor(64, [&](int64_t) { ids.insert(std::this_thread::get_id()); });
    bool good = ids.size() == 1 && NumThreads() == 1;
    SetNumThreads(2);
    std::atomic<int> present{0};
    ParallelFor(2, [&](int64_t) {
      present.fetch_add(1);
      while (present.load() < 2) std::this_thread::yield();
    });
    _exit(good && present.load() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

TEST(SetNumThreadsTest, ChecksItsArgumentAndPlace) {
  EXPECT_THROW(SetNumThreads(0), Error);
  EXPECT_THROW(SetNumThreads(1025), Error);
  SetNumThreads(2);
  EXPECT_EQ(NumThreads(), 2);
  EXPECT_THROW(ParallelFor(2, [](int64_t) { SetNumThreads(1); }), Error);
}

TEST(SetNumThreadsTest, WhileOthersCall) {
  std::atomic<bool> stop{false};
  std::atomic<bool> wrong{false};
  std::thread caller([&] {
    while (!stop) {
      std::atomic<int> count{0};
      ParallelFor(16, [&](int64_t) { count.fetch_add(1); });
      if (count != 16) wrong = true;
    }
  });
  for (int i = 0; i < 40; ++i) SetNumThreads(1 + i % 4);
  stop = true;
  caller.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace sinter
