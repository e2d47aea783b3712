#pragma once

#include <cstdint>

namespace sinter::benchmarks {

/// Runs independent f32 fma chains in registers, `rounds` times; returns the floating-point operations done.
/// The bound that contractions are measured against.
int64_t FmaRoundsV3(int64_t rounds);
/// The same with 512-bit registers; only on a CPU that has them.
int64_t FmaRoundsV4(int64_t rounds);

}  // namespace sinter::benchmarks
