#include "sinter/eager/op_kernel.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/lower_op.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::eager {
namespace {

constexpr int kCommonSymbols = 64;

Dim MakeSymbol(int i) { return Dim::Symbol(StrCat("size_", i)); }

int SymbolNumber(const Dim& d, int symbols) {
  for (int i = 0; i < symbols; ++i)
    if (SizeSymbol(i) == d) return i;
  return -1;
}

// Elements, times values combined for each, that are worth a thread of their own.
constexpr int64_t kGrain = 1 << 15;

// A kernel is compiled once it has combined so many values, a call counting as some.
constexpr int64_t kInterpretedWork = 1 << 17;
constexpr int64_t kCallWork = 256;

std::atomic<const codegen::KernelBackend*>& TheBackend() {
  static std::atomic<const codegen::KernelBackend*> backend{
      new codegen::KernelBackend(codegen::CpuBackend())};
  return backend;
}

}  // namespace

Dim SizeSymbol(int i) {
  static const auto* common = [] {
    auto* a = new std::array<Dim, kCommonSymbols>();
    for (int k = 0; k < kCommonSymbols; ++k) (*a)[k] = MakeSymbol(k);
    return a;
  }();
  return i < kCommonSymbols ? (*common)[i] : MakeSymbol(i);
}

void SetKernelBackend(codegen::KernelBackend backend) {
  TheBackend().store(new codegen::KernelBackend(std::move(backend)),
                     std::memory_order_release);  // a running kernel may use the old one
}

OpKernel::OpKernel(const codegen::Kernel& kernel, int symbols)
    : kernel_(kernel),
      interpreted_(codegen::InterpretKernel(kernel)),
      sizes_(kernel.RuntimeSizes()),
      points_(codegen::OuterPoints(kernel)),
      scratch_(codegen::ScratchBytes(kernel)) {
  for (const Dim& d : sizes_) symbol_of_size_.push_back(SymbolNumber(d, symbols));
  work_ = codegen::ReductionSize(kernel.stages[0].stores[0].value);
  points_symbol_ = SymbolNumber(points_, symbols);
  constant_work_ = work_.is_const();
  code_ = interpreted_.get();
}

const CompiledKernel& OpKernel::Code(int64_t work) const {
  const CompiledKernel* code = code_.load(std::memory_order_acquire);
  if (code != interpreted_.get()) return *code;
  if (work_done_.fetch_add(work, std::memory_order_relaxed) < kInterpretedWork) return *code;
  const codegen::KernelBackend* backend = TheBackend().load(std::memory_order_acquire);
  if (backend == nullptr || !*backend) return *code;
  std::call_once(promote_, [&] {
    promoted_ = (*backend)(kernel_);
    code_.store(promoted_.get(), std::memory_order_release);
  });
  return *code_.load(std::memory_order_acquire);
}

int64_t OpKernel::Evaluate(const Dim& d, std::span<const int64_t> values) const {
  if (d.is_const()) return d.value();
  DimEnv env;
  for (const Dim& s : d.Symbols()) {
    const int i = SymbolNumber(s, static_cast<int>(values.size()));
    SINTER_CHECK(i >= 0, "a kernel of one op uses a symbol that is not its own");
    env.Set(s, values[i]);
  }
  return d.Eval(env);
}

void OpKernel::Run(void* const* buffers, std::span<const int64_t> values) const {
  absl::InlinedVector<int64_t, 8> sizes(sizes_.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = symbol_of_size_[i] >= 0 ? values[symbol_of_size_[i]] : Evaluate(sizes_[i], values);
  const int64_t points = points_symbol_ >= 0 ? values[points_symbol_] : Evaluate(points_, values);
  const int64_t work = std::max<int64_t>(1, constant_work_ ? work_.value() : Evaluate(work_, values));
  const int64_t scratch_bytes = Evaluate(scratch_, values);
  const CompiledKernel& code = Code(points * work + kCallWork);
  auto run = [&](int64_t begin, int64_t end) {
    MemoryBlock scratch;
    if (scratch_bytes > 0) scratch = MemoryBlock(static_cast<size_t>(scratch_bytes));
    code.Run(buffers, sizes.data(), begin, end, scratch.data());
  };
  const int64_t grain = std::max<int64_t>(1, kGrain / work);
  if (points <= grain)
    run(0, points);
  else
    ParallelRange(points, grain, run);
}

}  // namespace sinter::eager
