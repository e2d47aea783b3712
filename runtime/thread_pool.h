#pragma once

#include <cstdint>

#include "sinter/runtime/function_ref.h"

namespace sinter {

/// The process-wide CPU pool. Its workers start at the first parallel call, spin for about 50 us after each
/// piece of work and then sleep. All functions here may be called from any thread at any time:
///  - a parallel call made inside a task runs inline, and so does one made while another thread uses the
///  pool;
///  - the first exception that a task throws reaches the caller, after all tasks that had begun have ended;
///  tasks
///    that had not begun are skipped;
///  - after fork() the child has no workers: it runs everything inline until it calls SetNumThreads.
///    fork() from inside a task is not supported.
/// No call allocates.

/// The number of threads that parallel calls use, the caller included. Initially SINTER_NUM_THREADS where
/// that is set, otherwise the number of cores this process may use.
int NumThreads();

/// Replaces the pool by one of `n` threads, the caller included (1 <= n <= 1024). Waits for a running
/// parallel call. Throws Error(kInvalidArgument) for another n, Error(kFailedPrecondition) inside a task.
void SetNumThreads(int n);

/// True inside a task of a parallel call (where another parallel call would run inline).
bool InParallelRegion();

/// Calls task(i) for every 0 <= i < n once, in any order and on any thread; returns when all are done.
void ParallelFor(int64_t n, FunctionRef<void(int64_t)> task);

/// Covers [0, n) with ranges of at least `grain` (the last one may be shorter) and calls task(begin, end) for
/// each; one range where n <= grain. Where the ranges are cut depends on the number of threads.
void ParallelRange(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> task);

}  // namespace sinter
