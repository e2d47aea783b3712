#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sinter {

/// The instruction set levels that the CPU kernels are built for (x86-64 psABI names). kV3: AVX2, FMA, F16C.
/// kV4: AVX-512 F, BW, CD, DQ, VL. Results don't depend on the level.
enum class IsaLevel : uint8_t { kV3 = 3, kV4 = 4 };

/// "v3" or "v4".
std::string_view IsaLevelName(IsaLevel level);

/// What the machine is. Sizes are in bytes, of one instance of the cache; 0 where unknown.
struct CpuInfo {
  std::string brand;  // "Intel(R) Xeon(R) Processor", as the CPU says it.
  IsaLevel isa = IsaLevel::kV3;
  int64_t l1d_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
};

/// Detected once. Throws Error(kUnavailable) on a CPU below x86-64-v3.
const CpuInfo& GetCpuInfo();

/// The number of cores this process may use: its affinity mask, cut by the CPU quota of its control group. At
/// least 1.
int AvailableCores();

/// The level that kernels use: the machine's, unless SINTER_ISA=v3|v4 or SetIsaOverride says otherwise.
/// Throws Error(kInvalidArgument) when SINTER_ISA is another word or a level that the machine lacks.
IsaLevel ActiveIsa();

/// Makes ActiveIsa() return `level` (nullopt: as before), so that one process can compare levels. Throws
/// Error(kInvalidArgument) for a level that the machine lacks.
void SetIsaOverride(std::optional<IsaLevel> level);

}  // namespace sinter
