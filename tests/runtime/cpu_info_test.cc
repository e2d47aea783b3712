#include "sinter/runtime/cpu_info.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sinter/graph/error.h"

namespace sinter {
namespace {

TEST(CpuInfoTest, DescribesTheMachine) {
  const CpuInfo& info = GetCpuInfo();
  EXPECT_FALSE(info.brand.empty());
  EXPECT_GE(info.l1d_bytes, 0);
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_EQ(&GetCpuInfo(), &info);
}

TEST(CpuInfoTest, OverrideChoosesTheLevel) {
  SetIsaOverride(IsaLevel::kV3);
  EXPECT_EQ(ActiveIsa(), IsaLevel::kV3);
  if (GetCpuInfo().isa == IsaLevel::kV4) {
    SetIsaOverride(IsaLevel::kV4);
    EXPECT_EQ(ActiveIsa(), IsaLevel::kV4);
  } else {
    EXPECT_THROW(SetIsaOverride(IsaLevel::kV4), Error);
  }
  SetIsaOverride(std::nullopt);
  EXPECT_LE(ActiveIsa(), GetCpuInfo().isa);
}

TEST(CpuInfoDeathTest, ReadsTheEnvironment) {
  testing::FLAGS_gtest_death_test_style =
      "threadsafe";  // The level is read once: each case needs its own process.
  EXPECT_EXIT(
      {
        setenv("SINTER_ISA", "v3", 1);
        std::exit(ActiveIsa() == IsaLevel::kV3 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("SINTER_ISA", "sse2", 1);
        try {
          ActiveIsa();
        } catch (const Error& e) {
          std::exit(e.code() == ErrorCode::kInvalidArgument ? 0 : 1);
        }
        std::exit(2);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sinter
