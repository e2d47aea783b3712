#include "sinter/runtime/kernels/registry.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace sinter::kernels {
namespace {

using Table = std::unordered_map<const OpDef*, const StructuredKernel*>;

// Published tables and kernels live as long as the process, so that readers take no lock.
std::atomic<const Table*> published{nullptr};
std::mutex writer;

const Table& LockedTable() {
  const Table* t = published.load(std::memory_order_relaxed);
  if (t != nullptr) return *t;
  auto* made = new Table();
  for (const KernelRow& row : BuiltinKernels()) made->emplace(row.op, new StructuredKernel(row.kernel));
  published.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

const StructuredKernel* FindKernel(const OpDef& op) {
  const Table* t = published.load(std::memory_order_acquire);
  if (t == nullptr) [[unlikely]] {
    std::lock_guard lock(writer);
    t = &LockedTable();
  }
  auto it = t->find(&op);
  return it == t->end() ? nullptr : it->second;
}

void RegisterKernel(const OpDef& op, StructuredKernel kernel) {
  std::lock_guard lock(writer);
  auto* next = new Table(LockedTable());
  (*next)[&op] = new StructuredKernel(kernel);
  published.store(next, std::memory_order_release);
}

}  // namespace sinter::kernels
