#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/codegen/cpu/compile_kernel.h"
#include "sinter/codegen/cpu/jit.h"
#include "sinter/codegen/cpu/kernel_cache.h"
#include "sinter/graph/error.h"

namespace sinter::codegen::testing {
namespace {

namespace fs = std::filesystem;

constexpr CpuTarget kTarget{8, false};

class KernelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("kernel_cache_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    ::setenv("SINTER_CACHE_DIR", folder_.c_str(), 1);
    ClearKernelCache();
  }
  void TearDown() override {
    ::unsetenv("SINTER_CACHE_DIR");
    fs::remove_all(folder_);
  }

  static Kernel Chain() { return AllKernelCases()[0].make(Dim::Symbol("cache_n")); }
  static std::vector<std::string> Run(const CompiledKernel& compiled) {
    DimEnv env;
    env.Set(Dim::Symbol("cache_n"), 100);
    return RunKernel(Chain(), compiled, env);
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    if (fs::exists(folder_ / "kernels"))
      for (const auto& f : fs::directory_iterator(folder_ / "kernels")) files.push_back(f.path());
    return files;
  }

  fs::path folder_;
};

TEST_F(KernelCacheTest, FindsKernelsInMemoryAndOnDisk) {
  auto first = CompileCpuKernel(Chain(), kTarget);
  EXPECT_EQ(GetKernelCacheStats().compiles, 1);
  EXPECT_GT(GetKernelCacheStats().compile_seconds, 0);
  // The same content under other loop variables.
  EXPECT_EQ(CompileCpuKernel(Chain(), kTarget), first);
  EXPECT_EQ(GetKernelCacheStats().memory_hits, 1);
  ASSERT_EQ(Files().size(), 1u);

  ClearKernelCache();
  auto second = CompileCpuKernel(Chain(), kTarget);
  EXPECT_EQ(GetKernelCacheStats().disk_hits, 1);
  EXPECT_EQ(GetKernelCacheStats().compiles, 0);
  EXPECT_NE(second, first);
  EXPECT_EQ(Run(*first), Run(*second));
  EXPECT_EQ(Run(*first), Run(*InterpretKernel(Chain())));
}

TEST_F(KernelCacheTest, TargetsHaveTheirOwnCode) {
  CompileCpuKernel(Chain(), kTarget);
  CompileCpuKernel(Chain(), {16, false});
  EXPECT_EQ(GetKernelCacheStats().compiles, 2);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(KernelCacheTest, RebuildsDamagedEntries) {
  const auto want = Run(*CompileCpuKernel(Chain(), kTarget));
  ASSERT_EQ(Files().size(), 1u);
  const fs::path file = Files()[0];
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  for (std::streamoff at : {std::streamoff{0}, std::streamoff{9}, std::streamoff{30}, size / 2, size - 1}) {
    {
      std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(at);
      const char c = static_cast<char>(f.get());
      f.seekp(at);
      f.put(static_cast<char>(c ^ 0x10));
    }
    ClearKernelCache();
    EXPECT_EQ(Run(*CompileCpuKernel(Chain(), kTarget)), want);
    EXPECT_EQ(GetKernelCacheStats().damaged, 1) << "byte " << at;
    EXPECT_EQ(GetKernelCacheStats().compiles, 1) << "byte " << at;
  }
  fs::resize_file(file, static_cast<uintmax_t>(size / 3));
  ClearKernelCache();
  EXPECT_EQ(Run(*CompileCpuKernel(Chain(), kTarget)), want);
  EXPECT_EQ(GetKernelCacheStats().damaged, 1);
  // The rebuilt entry is whole again.
  ClearKernelCache();
  CompileCpuKernel(Chain(), kTarget);
  EXPECT_EQ(GetKernelCacheStats().disk_hits, 1);
}

TEST_F(KernelCacheTest, ConcurrentCallsCompileOnce) {
  std::vector<std::shared_ptr<const CompiledKernel>> results(8);
  std::vector<std::thread> threads;
  for (auto& r : results) threads.emplace_back([&r] { r = CompileCpuKernel(Chain(), kTarget); });
  for (auto& t : threads) t.join();
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
  EXPECT_EQ(GetKernelCacheStats().compiles, 1);
  EXPECT_EQ(GetKernelCacheStats().memory_hits, 7);
}

TEST_F(KernelCacheTest, UnwritableFolderIsNoError) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  ClearKernelCache();
  EXPECT_EQ(Run(*CompileCpuKernel(Chain(), kTarget)), Run(*InterpretKernel(Chain())));
  fs::remove(folder_);
}

TEST_F(KernelCacheTest, EmptyFolderNameKeepsNothing) {
  ::setenv("SINTER_CACHE_DIR", "", 1);
  ClearKernelCache();
  CompileCpuKernel(Chain(), kTarget);
  EXPECT_TRUE(Files().empty());
}

TEST_F(KernelCacheTest, KeepsBelowItsBound) {
  cpu::DiskCache cache((folder_ / "bounded").string(), 10000);
  bool damaged;
  for (int i = 0; i < 40; ++i) {
    cache.Save("key" + std::to_string(i), std::string(1000, 'x'));
    EXPECT_TRUE(cache.Load("key" + std::to_string(i), damaged).has_value());
  }
  uintmax_t total = 0;
  for (const auto& f : fs::directory_iterator(folder_ / "bounded")) total += f.file_size();
  EXPECT_LE(total, 10000u);
  EXPECT_GT(total, 4000u);
  EXPECT_FALSE(cache.Load("key0", damaged).has_value());
  EXPECT_FALSE(damaged);
}

TEST(Jit, BrokenObjectsFailLoudly) {
  EXPECT_THROW(cpu::LoadObject("not an object"), InternalError);
}

TEST(Target, WidthFromTheEnvironment) {
  ::setenv("SINTER_VECTOR_WIDTH", "16", 1);
  EXPECT_EQ(HostTarget().width, 16);
  ::setenv("SINTER_VECTOR_WIDTH", "8", 1);
  EXPECT_EQ(HostTarget().width, 8);
  ::setenv("SINTER_VECTOR_WIDTH", "12", 1);
  EXPECT_THROW(HostTarget(), Error);
  ::unsetenv("SINTER_VECTOR_WIDTH");
}

}  // namespace
}  // namespace sinter::codegen::testing
