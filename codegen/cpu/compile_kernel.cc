#include "sinter/codegen/cpu/compile_kernel.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <mutex>
#include <unordered_map>

#include "sinter/codegen/cpu/emit_llvm.h"
#include "sinter/codegen/cpu/jit.h"
#include "sinter/codegen/cpu/kernel_cache.h"
#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/cpu_info.h"

namespace sinter::codegen {
namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

class NativeKernel final : public CompiledKernel {
 public:
  explicit NativeKernel(std::shared_ptr<const cpu::LoadedObject> object) : object_(std::move(object)), function_(object_->function) {}
  void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) const override {
    function_(buffers, sizes, begin, end, scratch);
  }

 private:
  std::shared_ptr<const cpu::LoadedObject> object_;
  KernelFn function_;
};

class KernelCache {
 public:
  static KernelCache& Get() {
    static KernelCache* cache = new KernelCache;
    return *cache;
  }

  KernelPtr Find(const Kernel& kernel, const CpuTarget& target) {
    std::string key = StrCat("sinter ", cpu::kEmitterVersion, " ", cpu::TargetName(target), " width ", target.width, "\n", kernel.ToString());
    std::promise<KernelPtr> promise;
    {
      std::unique_lock lock(mutex_);
      auto [it, fresh] = kernels_.try_emplace(key);
      if (!fresh) {
        ++stats_.memory_hits;
        std::shared_future<KernelPtr> known = it->second;
        lock.unlock();
        return known.get();
      }
      it->second = promise.get_future().share();
    }
    try {
      KernelPtr made = Make(kernel, target, key);
      promise.set_value(made);
      return made;
    } catch (...) {
      // Those who wait get the fault; the next caller tries anew.
      promise.set_exception(std::current_exception());
      std::lock_guard lock(mutex_);
      kernels_.erase(key);
      throw;
    }
  }

  KernelCacheStats Stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void Clear(bool disk) {
    std::lock_guard lock(mutex_);
    kernels_.clear();
    stats_ = {};
    if (disk) disk_.Clear();
    disk_ = cpu::DiskCache(cpu::KernelCacheFolder());
  }

 private:
  KernelPtr Make(const Kernel& kernel, const CpuTarget& target, const std::string& key) {
    bool damaged = false;
    std::optional<std::string> object;
    {
      std::lock_guard lock(mutex_);
      object = disk_.Load(key, damaged);
      stats_.damaged += damaged;
      stats_.disk_hits += object.has_value();
    }
    if (object) return std::make_shared<NativeKernel>(cpu::LoadObject(*object));
    const auto start = std::chrono::steady_clock::now();
    object = cpu::CompileToObject(kernel, target);
    KernelPtr made = std::make_shared<NativeKernel>(cpu::LoadObject(*object));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::lock_guard lock(mutex_);
    ++stats_.compiles;
    stats_.compile_seconds += seconds.count();
    disk_.Save(key, *object);
    return made;
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_future<KernelPtr>> kernels_;
  cpu::DiskCache disk_{cpu::KernelCacheFolder()};
  KernelCacheStats stats_;
};

}  // namespace

CpuTarget HostTarget() {
  CpuTarget target;
  target.avx512 = ActiveIsa() == IsaLevel::kV4;
  target.width = target.avx512 ? 16 : 8;
  if (const char* width = std::getenv("SINTER_VECTOR_WIDTH")) {
    const std::string_view text = width;
    if (text != "8" && text != "16") throw Error(ErrorCode::kInvalidArgument, StrCat("SINTER_VECTOR_WIDTH must be 8 or 16, not '", text, "'"));
    target.width = text == "8" ? 8 : 16;
  }
  return target;
}

KernelPtr CompileCpuKernel(const Kernel& kernel, const CpuTarget& target) {
  SINTER_CHECK(target.width == 8 || target.width == 16);
  return KernelCache::Get().Find(kernel, target);
}

KernelCacheStats GetKernelCacheStats() { return KernelCache::Get().Stats(); }
void ClearKernelCache(bool disk) { KernelCache::Get().Clear(disk); }

}  // namespace sinter::codegen
