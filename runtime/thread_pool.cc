#include "sinter/runtime/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sinter/graph/error.h"
#include "sinter/runtime/cpu_info.h"

namespace sinter {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxTasksPerJob = int64_t{1} << 30;
constexpr std::chrono::microseconds kSpinTime{50};

using Task = FunctionRef<void(int64_t)>;

thread_local bool in_task = false;

/// Polls `done` for a bounded time; says whether it came true.
template <class Done>
bool SpinUntil(Done done, bool may_spin) {
  if (done()) return true;
  if (!may_spin) return false;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      _mm_pause();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// Workers that share one job at a time. A job's unclaimed tasks are counted in the low half of `state_`, and
/// the high half numbers the job: a thread that claims a task by compare-exchange knows that the job is alive
/// (its caller waits for `pending_`), so a late worker can neither run a task twice nor touch a job that has
/// gone.
class Pool {
 public:
  explicit Pool(int threads) : threads_(threads), may_spin_(threads <= AvailableCores()) {
    workers_.reserve(threads - 1);
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  }

  /// Waits until no job runs, keeps further ones out for good, and ends the workers.
  void Retire() {
    while (busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    {
      std::lock_guard lock(mutex_);
      stop_.store(true, std::memory_order_relaxed);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  int threads() const { return threads_; }

  /// False when another thread has the pool; the tasks are then still to be run.
  bool TryRun(int64_t n, Task task) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    Run(n, task);  // Does not throw: faults of tasks are collected.
    std::exception_ptr fault = std::move(fault_);
    fault_ = nullptr;
    busy_.store(false, std::memory_order_release);
    if (fault) std::rethrow_exception(fault);
    return true;
  }

 private:
  static uint64_t Remaining(uint64_t state) { return state & 0xffffffffu; }

  void Run(int64_t n, Task task) {
    task_ = &task;
    num_tasks_ = n;
    failed_.store(false, std::memory_order_relaxed);
    pending_.store(n, std::memory_order_relaxed);
    const uint64_t job = (state_.load(std::memory_order_relaxed) >> 32) + 1;
    // Sequentially consistent, as is the count of sleepers: either this thread sees a worker go to sleep or
    // that worker sees the job.
    state_.store(job << 32 | static_cast<uint64_t>(n), std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }
    in_task = true;
    RunTasks();
    in_task = false;
    auto done = [this] { return pending_.load(std::memory_order_seq_cst) == 0; };
    if (SpinUntil(done, may_spin_)) return;
    std::unique_lock lock(mutex_);
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    finished_.wait(lock, done);
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }

  /// Claims and runs tasks until none is left.
  void RunTasks() {
    uint64_t state = state_.load(std::memory_order_acquire);
    while (Remaining(state) > 0) {
      if (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      RunTask(num_tasks_ - static_cast<int64_t>(Remaining(state)));
      state = state_.load(std::memory_order_acquire);
    }
  }

  void RunTask(int64_t index) {
    if (!failed_.load(std::memory_order_relaxed)) {
      try {
        (*task_)(index);
      } catch (...) {
        // The first to set the flag owns the fault; the caller reads it after `pending_` has reached 0.
        if (!failed_.exchange(true, std::memory_order_relaxed)) fault_ = std::current_exception();
      }
    }
    if (pending_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        caller_sleeps_.load(std::memory_order_seq_cst)) {
      { std::lock_guard lock(mutex_); }
      finished_.notify_one();
    }
  }

  void Work() {
    in_task = true;
    auto has_work = [this] {
      return Remaining(state_.load(std::memory_order_seq_cst)) > 0 || stop_.load(std::memory_order_relaxed);
    };
    while (true) {
      if (!SpinUntil(has_work, may_spin_)) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, has_work);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
      }
      if (stop_.load(std::memory_order_relaxed)) return;
      RunTasks();
    }
  }

  const int threads_;
  const bool may_spin_;  // With more threads than cores, spinning takes the time of those that work.
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<uint64_t> state_{0};
  const Task* task_ = nullptr;
  int64_t num_tasks_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr fault_;
  alignas(64) std::atomic<int64_t> pending_{0};
  std::atomic<bool> caller_sleeps_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
};

int InitialThreads() {
  if (const char* text = std::getenv("SINTER_NUM_THREADS")) {
    char* end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > kMaxThreads) {
      throw Error(ErrorCode::kInvalidArgument, std::string("SINTER_NUM_THREADS must be a number from 1 to ") +
                                                   std::to_string(kMaxThreads) + ", not \"" + text + "\"");
    }
    return static_cast<int>(n);
  }
  return std::min(AvailableCores(), kMaxThreads);
}

/// The pool and its size. A replaced pool is kept: a caller may still hold its address, and it is small. At
/// exit nothing is torn down: sleeping workers end with the process.
struct Registry {
  std::atomic<int> threads{0};  // 0: not yet read from the environment.
  std::atomic<Pool*> pool{nullptr};
  std::vector<Pool*> replaced;
  std::mutex mutex;
};

Registry& TheRegistry() {
  static Registry* registry = [] {
    auto* made = new Registry;
    pthread_atfork([] { TheRegistry().mutex.lock(); }, [] { TheRegistry().mutex.unlock(); },
                   [] {
                     // The workers exist in the parent only. The old pool's locks may be held by them:
                     // abandon it.
                     Registry& registry = TheRegistry();
                     registry.pool.store(nullptr, std::memory_order_relaxed);
                     registry.threads.store(1, std::memory_order_relaxed);
                     registry.mutex.unlock();
                   });
    return made;
  }();
  return *registry;
}

Pool* GetPool() {
  Registry& registry = TheRegistry();
  if (Pool* pool = registry.pool.load(std::memory_order_acquire)) return pool;
  const int threads = NumThreads();
  if (threads == 1) return nullptr;
  std::lock_guard lock(registry.mutex);
  Pool* pool = registry.pool.load(std::memory_order_relaxed);
  if (pool == nullptr) {
    pool = new Pool(threads);
    registry.pool.store(pool, std::memory_order_release);
  }
  return pool;
}

void RunInline(int64_t n, Task task) {
  for (int64_t i = 0; i < n; ++i) task(i);
}

}  // namespace

int NumThreads() {
  Registry& registry = TheRegistry();
  int threads = registry.threads.load(std::memory_order_relaxed);
  if (threads == 0) {
    int initial = InitialThreads();
    if (registry.threads.compare_exchange_strong(threads, initial, std::memory_order_relaxed)) return initial;
  }
  return threads;
}

void SetNumThreads(int n) {
  if (n < 1 || n > kMaxThreads) {
    throw Error(ErrorCode::kInvalidArgument, "the number of threads must be from 1 to " +
                                                 std::to_string(kMaxThreads) + ", not " + std::to_string(n));
  }
  if (in_task) throw Error(ErrorCode::kFailedPrecondition, "SetNumThreads was called inside a parallel task");
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  Pool* old = registry.pool.load(std::memory_order_relaxed);
  if (old != nullptr && old->threads() == n) return;
  registry.pool.store(nullptr, std::memory_order_release);
  registry.threads.store(n, std::memory_order_relaxed);
  if (old != nullptr) {
    old->Retire();
    registry.replaced.push_back(old);
  }
}

bool InParallelRegion() { return in_task; }

void ParallelFor(int64_t n, FunctionRef<void(int64_t)> task) {
  if (n <= 1 || in_task) return RunInline(n, task);
  Pool* pool = GetPool();
  if (pool == nullptr) return RunInline(n, task);
  for (int64_t first = 0; first < n; first += kMaxTasksPerJob) {
    const int64_t count = std::min(n - first, kMaxTasksPerJob);
    auto shifted = [&](int64_t i) { task(first + i); };
    if (!pool->TryRun(count, shifted)) RunInline(count, shifted);
  }
}

void ParallelRange(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> task) {
  if (n <= 0) return;
  const int64_t pieces = n / std::max<int64_t>(grain, 1);
  const int64_t threads = pieces <= 1 || in_task ? 1 : NumThreads();
  if (pieces <= 1 || threads == 1) return task(0, n);
  // Up to four ranges a thread, so that a thread that was held up costs little.
  const int64_t parts = pieces <= threads ? pieces : threads * std::min<int64_t>(4, pieces / threads);
  const int64_t size = n / parts, extra = n % parts;
  ParallelFor(parts, [&](int64_t i) {
    const int64_t begin = i * size + std::min(i, extra);
    task(begin, begin + size + (i < extra ? 1 : 0));
  });
}

}  // namespace sinter
