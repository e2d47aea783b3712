#include "sinter/tests/sim_cuda/sim_device.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::sim_cuda {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

// Stacks of a host thread's fibers; pages that no kernel touches cost nothing.
class Stacks {
 public:
  ~Stacks() {
    for (void* s : stacks_) munmap(s, kStackBytes);
  }
  void* At(size_t i) {
    while (stacks_.size() <= i) {
      void* s = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (s == MAP_FAILED) throw Error(ErrorCode::kResourceExhausted, "the simulator has no memory for stacks");
      stacks_.push_back(s);
    }
    return stacks_[i];
  }

 private:
  std::vector<void*> stacks_;
};

enum class Wait : uint8_t { kNone, kBlock, kWarp, kDone };

struct Fiber {
  ucontext_t context;
  Wait wait = Wait::kNone;
  unsigned mask = 0;
};

struct Arguments {
  void* const* buffers;
  const long long* sizes;
  long long begin, end;
  char* scratch;
  long long scratch_stride;
};

// The block that runs on this host thread. Throwing across fibers is not possible: faults are collected and thrown by Run.
class Block {
 public:
  Block(const HostKernel& kernel, const Arguments& arguments, int threads, std::mt19937& rng)
      : kernel_(kernel),
        arguments_(arguments),
        rng_(rng),
        fibers_(static_cast<size_t>(threads)),
        order_(fibers_.size()),
        slots_(fibers_.size() + 32) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }

  void Run() {
    static thread_local Stacks stacks;
    SimState& state = *kernel_.state();
    state.wait = [](unsigned mask) { current->WaitHere(mask); };
    state.exchange = [] { return current->slots_.data() + current->running_ / 32 * 32; };
    current = this;
    for (size_t i = 0; i < fibers_.size(); ++i) Prepare(fibers_[i], stacks.At(i));
    for (;;) {
      RunToNextWait(state);
      if (AllDone()) return;
      Release();
    }
  }

 private:
  static void Prepare(Fiber& f, void* stack) {
    getcontext(&f.context);
    f.context.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kStackBytes};
    f.context.uc_link = nullptr;
    makecontext(&f.context, &Block::Entry, 0);
  }
  // Every fiber that can run does, in a new order, until it waits or ends.
  void RunToNextWait(SimState& state) {
    std::shuffle(order_.begin(), order_.end(), rng_);
    for (size_t i : order_) {
      if (fibers_[i].wait != Wait::kNone) continue;
      running_ = i;
      state.thread = {static_cast<unsigned>(i), 0, 0};
      swapcontext(&scheduler_, &fibers_[i].context);
    }
  }
  static void Entry() {
    Block* b = current;
    const Arguments& a = b->arguments_;
    b->kernel_.function(a.buffers, a.sizes, a.begin, a.end, a.scratch, a.scratch_stride);
    Fiber& me = current->fibers_[current->running_];
    me.wait = Wait::kDone;
    swapcontext(&me.context, &current->scheduler_);
  }
  void WaitHere(unsigned mask) {
    Fiber& me = fibers_[running_];
    me.wait = mask == 0 ? Wait::kBlock : Wait::kWarp;
    me.mask = mask;
    swapcontext(&me.context, &scheduler_);
  }
  bool AllDone() const {
    return std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) { return f.wait == Wait::kDone; });
  }
  // Every fiber waits or is done. A warp's lanes go on together once every lane that the mask names has come; the block's threads
  // once all have.
  void Release() {
    bool any = false;
    for (size_t i = 0; i < fibers_.size(); ++i) {
      if (fibers_[i].wait != Wait::kWarp) continue;
      const unsigned mask = fibers_[i].mask;
      const size_t warp = i / 32 * 32;
      bool all = true;
      for (size_t l = 0; l < 32 && warp + l < fibers_.size(); ++l)
        if (mask >> l & 1) all &= fibers_[warp + l].wait == Wait::kWarp && fibers_[warp + l].mask == mask;
      if (!all) continue;
      for (size_t l = 0; l < 32 && warp + l < fibers_.size(); ++l)
        if (mask >> l & 1) fibers_[warp + l].wait = Wait::kNone;
      any = true;
    }
    if (any) return;
    for (Fiber& f : fibers_) {
      if (f.wait != Wait::kBlock)
        throw Error(ErrorCode::kFailedPrecondition, f.wait == Wait::kDone
                                                        ? "simulated kernel: a thread ended while others of its block wait at __syncthreads"
                                                        : "simulated kernel: lanes wait for lanes of their warp that don't come");
      f.wait = Wait::kNone;
    }
  }

  static thread_local Block* current;
  const HostKernel& kernel_;
  const Arguments& arguments_;
  std::mt19937& rng_;
  std::vector<Fiber> fibers_;
  std::vector<size_t> order_;
  std::vector<unsigned long long> slots_;
  ucontext_t scheduler_;
  size_t running_ = 0;
};

thread_local Block* Block::current = nullptr;

}  // namespace

void Launch(const HostKernel& kernel, const Grid& grid, void* const* buffers, const long long* sizes, long long begin, long long end, char* scratch,
            long long scratch_stride) {
  SINTER_CHECK(grid.threads > 0 && grid.threads <= 1024 && grid.blocks > 0);
  std::mt19937 rng(grid.seed);
  SimState& state = *kernel.state();
  state.block_dim = {static_cast<unsigned>(grid.threads), 1, 1};
  state.grid_dim = {static_cast<unsigned>(grid.blocks), 1, 1};
  const Arguments arguments{buffers, sizes, begin, end, scratch, scratch_stride};
  std::vector<unsigned> blocks(static_cast<size_t>(grid.blocks)), threads(static_cast<size_t>(grid.threads));
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::shuffle(blocks.begin(), blocks.end(), rng);
  std::iota(threads.begin(), threads.end(), 0u);
  for (unsigned b : blocks) {
    state.block = {b, 0, 0};
    if (kernel.waits) {
      Block(kernel, arguments, grid.threads, rng).Run();
      continue;
    }
    std::shuffle(threads.begin(), threads.end(), rng);
    for (unsigned t : threads) {
      state.thread = {t, 0, 0};
      kernel.function(buffers, sizes, begin, end, scratch, scratch_stride);
    }
  }
}

}  // namespace sinter::sim_cuda
