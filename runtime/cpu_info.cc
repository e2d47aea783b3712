#include "sinter/runtime/cpu_info.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

std::string Brand() {
  unsigned int words[12] = {};
  if (__get_cpuid_max(0x80000000u, nullptr) < 0x80000004u) return "unknown";
  for (unsigned int i = 0; i < 3; ++i) {
    __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  }
  char text[sizeof(words) + 1] = {};
  std::memcpy(text, words, sizeof(words));
  std::string brand(text);
  const size_t first = brand.find_first_not_of(' ');
  return first == std::string::npos ? "unknown"
                                    : brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}

int64_t CacheSize(int name) { return std::max<int64_t>(sysconf(name), 0); }

CpuInfo Detect() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    throw Error(ErrorCode::kUnavailable, "this CPU (" + Brand() + ") lacks AVX2, FMA or F16C (x86-64-v3)");
  }
  CpuInfo info;
  info.brand = Brand();
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  info.isa = v4 ? IsaLevel::kV4 : IsaLevel::kV3;
  info.l1d_bytes = CacheSize(_SC_LEVEL1_DCACHE_SIZE);
  info.l2_bytes = CacheSize(_SC_LEVEL2_CACHE_SIZE);
  info.l3_bytes = CacheSize(_SC_LEVEL3_CACHE_SIZE);
  return info;
}

/// Cores that the quota of the control group (version 2) amounts to, rounded up; a large number where there
/// is none.
int QuotaCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  const int64_t allowed = std::strtoll(quota.c_str(), nullptr, 10);
  return static_cast<int>(std::clamp<int64_t>((allowed + period - 1) / period, 1, 1 << 20));
}

int AffinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  // More CPUs than the fixed mask holds.
  return std::max<int>(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

IsaLevel CheckedLevel(IsaLevel level, const char* origin) {
  if (level > GetCpuInfo().isa) {
    throw Error(ErrorCode::kInvalidArgument, std::string(origin) + " asks for ISA level " +
                                                 std::string(IsaLevelName(level)) + ", but this CPU (" +
                                                 GetCpuInfo().brand + ") has " +
                                                 std::string(IsaLevelName(GetCpuInfo().isa)));
  }
  return level;
}

IsaLevel InitialLevel() {
  const char* text = std::getenv("SINTER_ISA");
  if (text == nullptr || *text == '\0') return GetCpuInfo().isa;
  if (std::strcmp(text, "v3") == 0) return CheckedLevel(IsaLevel::kV3, "SINTER_ISA");
  if (std::strcmp(text, "v4") == 0) return CheckedLevel(IsaLevel::kV4, "SINTER_ISA");
  throw Error(ErrorCode::kInvalidArgument, std::string("SINTER_ISA must be v3 or v4, not \"") + text + "\"");
}

std::atomic<uint8_t> isa_override{0};  // 0: none.

}  // namespace

std::string_view IsaLevelName(IsaLevel level) { return level == IsaLevel::kV4 ? "v4" : "v3"; }

const CpuInfo& GetCpuInfo() {
  static const CpuInfo* info = new CpuInfo(Detect());
  return *info;
}

int AvailableCores() {
  static const int cores = std::min(AffinityCores(), QuotaCores());
  return cores;
}

IsaLevel ActiveIsa() {
  const uint8_t forced = isa_override.load(std::memory_order_relaxed);
  if (forced != 0) return static_cast<IsaLevel>(forced);
  static const IsaLevel level = InitialLevel();
  return level;
}

void SetIsaOverride(std::optional<IsaLevel> level) {
  isa_override.store(level ? static_cast<uint8_t>(CheckedLevel(*level, "SetIsaOverride")) : 0,
                     std::memory_order_relaxed);
}

}  // namespace sinter
