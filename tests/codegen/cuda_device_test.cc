// The code that talks to the CUDA driver: on a stand-in for the driver everywhere, on a GPU where there is one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>
#include <type_traits>

#include "sinter/codegen/cuda/device_backend.h"
#include "sinter/codegen/cuda/driver.h"
#include "sinter/codegen/cuda/memory_pool.h"
#include "sinter/codegen/cuda/nvrtc.h"
#include "sinter/graph/error.h"
#include "sinter/runtime/thread_pool.h"
#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/tests/codegen/op_runner.h"
#include "sinter/tests/sim_cuda/fake_driver.h"

#if SINTER_HAVE_NVRTC
#include <cuda.h>
#endif

namespace sinter::codegen::testing {
namespace {

using cuda::CudaSource;
using cuda::Device;
using cuda::DeviceOptions;

constexpr char kFake[] = "tests/sim_cuda/libfakecuda.so";
const Dim kN = Dim::Symbol("kernel_case_n");

template <class F>
F* Control(const char* name) {
  static void* library = dlopen(kFake, RTLD_NOW | RTLD_LOCAL);
  F* f = library == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(library, name));
  if (f == nullptr) throw Error(ErrorCode::kUnavailable, std::string(name) + " of " + kFake + " can't be opened");
  return f;
}

// The fake driver takes the text itself as the image.
DeviceOptions FakeOptions(size_t keep_bytes = size_t{1} << 30) {
  return {.library = kFake, .compile = [](const CudaSource& s, int) { return s.text; }, .keep_bytes = keep_bytes};
}

// The stand-in, as new for each test, which must leave nothing behind.
class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override { Control<sim_cuda::FakeCudaReset>("fake_cuda_reset")(); }
  void TearDown() override { ExpectNothingLeft(); }

  static std::shared_ptr<Device> Open(size_t keep_bytes = size_t{1} << 30) {
    std::string why;
    std::shared_ptr<Device> d = Device::Open(0, &why, FakeOptions(keep_bytes));
    if (!d) throw Error(ErrorCode::kUnavailable, why);
    return d;
  }
  static std::string WhyNot(DeviceOptions options, int ordinal = 0) {
    std::string why;
    EXPECT_EQ(Device::Open(ordinal, &why, std::move(options)), nullptr);
    return why;
  }
  static sim_cuda::FakeCudaLive Live() { return Control<sim_cuda::FakeCudaLiveFn>("fake_cuda_live")(); }
  static void ExpectNothingLeft() {
    EXPECT_EQ(Live().blocks, 0);
    EXPECT_EQ(Live().modules, 0);
    EXPECT_EQ(Live().contexts, 0);
  }
  // Returns whether the fault that was asked for before is still to come.
  static bool Fail(const char* call, int result, int skip = 0, bool sticky = false) { return Control<sim_cuda::FakeCudaFail>("fake_cuda_fail")(call, skip, result, sticky); }
  static void Limit(size_t bytes) { Control<sim_cuda::FakeCudaLimit>("fake_cuda_limit")(bytes); }
  static void Devices(int count, int sm) { Control<sim_cuda::FakeCudaDevices>("fake_cuda_devices")(count, sm); }
  static long Count(const char* call) { return Control<sim_cuda::FakeCudaCount>("fake_cuda_count")(call); }
};

// `pieces`: the outer points as so many launches, which must leave alone what the others wrote.
void ExpectKernelsEqualInterpreted(const std::shared_ptr<Device>& device, std::initializer_list<int64_t> sizes, int pieces = 1) {
  const KernelBackend backend = cuda::DeviceBackend(device);
  std::vector<std::pair<KernelCase, Kernel>> cases;
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  for (const KernelCase& c : AllKernelCases()) {
    cases.emplace_back(c, c.make(kN));
    kernels.push_back(backend(cases.back().second));
  }
  ASSERT_GE(cases.size(), 30u);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [c, kernel] = cases[i];
    const auto oracle = InterpretKernel(kernel);
    for (int64_t size : sizes) {
      DimEnv env;
      env.Set(kN, size);
      EXPECT_TRUE(RunKernel(kernel, *kernels[i], env, pieces) == RunKernel(kernel, *oracle, env)) << c.name << " n=" << size << " pieces " << pieces;
    }
  }
  EXPECT_EQ(device->bytes_in_use(), 0u);
}

void ExpectOpsEqualInterpreted(const std::shared_ptr<Device>& device) {
  struct Case {
    std::string name;
    std::vector<Operand> operands;
    std::shared_ptr<const Executable> on_device, interpreted;
  };
  std::vector<Case> cases;
  for (const OpDef* op : AllOps()) {
    if (!op->samples || op->kind == OpKind::kControlFlow) continue;
    int number = 0;
    for (const Sample& s : SamplesOf(*op)) {
      Case c{StrCat(op->name, " sample ", number++, " {", AttrsToString(s.attrs), "}"), MakeOperands(s), nullptr, nullptr};
      c.on_device = CompileOp(*op, s.attrs, c.operands, cuda::DeviceBackend(device), true);
      c.interpreted = CompileOp(*op, s.attrs, c.operands, InterpretKernel, false);
      cases.push_back(std::move(c));
    }
  }
  ASSERT_GT(cases.size(), 150u);
  for (const Case& c : cases) EXPECT_TRUE(RunOp(*c.on_device, c.operands) == RunOp(*c.interpreted, c.operands)) << c.name;
  EXPECT_EQ(device->bytes_in_use(), 0u);
}

TEST_F(FakeDriver, KernelsEqualInterpreted) {
  // Blocks of just the size asked for, so that what is beyond faults.
  const auto device = Open(0);
  EXPECT_EQ(device->name(), "simulated, sm_90");
  EXPECT_EQ(device->driver(), "CUDA 13.0");
  ExpectKernelsEqualInterpreted(device, {0, 1, 7, 16, 17, 1000, 3001});
  ExpectKernelsEqualInterpreted(device, {17, 300}, 3);
  EXPECT_EQ(Live().blocks, 0);
  EXPECT_GT(Live().modules, 30);
  EXPECT_GT(Count("cuLaunchKernel"), 200);
}

TEST_F(FakeDriver, OpsEqualInterpreted) {
  ExpectOpsEqualInterpreted(Open(0));
  EXPECT_GT(Count("cuLaunchKernel"), 150);
}

TEST_F(FakeDriver, KernelsEqualInterpretedInMemoryThatIsUsedAgain) {
  const auto device = Open();
  ExpectKernelsEqualInterpreted(device, {300, 17, 0, 300}, 2);
  EXPECT_GT(Live().blocks, 0);
  EXPECT_LT(Count("cuMemAlloc_v2"), Count("cuLaunchKernel"));
}

// The points before and after those asked for stay as they were.
TEST_F(FakeDriver, APartOfTheKernelLeavesTheRestAlone) {
  struct MiddleThird : CompiledKernel {
    std::shared_ptr<const CompiledKernel> kernel;
    mutable int turn = 0;
    void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) const override {
      if (turn++ % 3 == 1) kernel->Run(buffers, sizes, begin, end, scratch);
    }
  };
  const auto device = Open(0);
  const KernelBackend backend = cuda::DeviceBackend(device);
  DimEnv env;
  env.Set(kN, 50);
  std::vector<Kernel> kernels;
  std::vector<MiddleThird> on_device;
  for (const KernelCase& c : AllKernelCases()) {
    kernels.push_back(c.make(kN));
    on_device.emplace_back().kernel = backend(kernels.back());
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    MiddleThird oracle;
    oracle.kernel = InterpretKernel(kernels[i]);
    EXPECT_TRUE(RunKernel(kernels[i], on_device[i], env, 3) == RunKernel(kernels[i], oracle, env, 3)) << kernels[i].name;
  }
}

TEST_F(FakeDriver, ThreadsShareADevice) {
  const auto device = Open();
  std::vector<Kernel> kernels;
  std::vector<std::vector<std::string>> want;
  DimEnv env;
  env.Set(kN, 65);
  for (const KernelCase& c : AllKernelCases()) {
    kernels.push_back(c.make(kN));
    want.push_back(RunKernel(kernels.back(), *InterpretKernel(kernels.back()), env));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      // All at once first, so that the simulator compiles them together.
      std::vector<std::shared_ptr<const CompiledKernel>> mine;
      for (const Kernel& k : kernels) mine.push_back(cuda::DeviceBackend(device)(k));
      for (int turn = 0; turn < 3; ++turn)
        for (size_t i = 0; i < kernels.size(); ++i) wrong += !(RunKernel(kernels[i], *mine[i], env) == want[i]);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device->bytes_in_use(), 0u);
  // Four threads asked for each.
  std::set<std::string> texts;
  for (const Kernel& k : kernels) texts.insert(cuda::EmitCuda(k).text);
  EXPECT_EQ(Live().modules, static_cast<int>(texts.size()));
}

// Copying back all of an output would undo what another thread's part of it did.
TEST_F(FakeDriver, OneThreadRunsAKernelWhateverTheWork) {
  struct Watched : CompiledKernel {
    std::shared_ptr<const CompiledKernel> kernel;
    mutable std::atomic<int> runs{0};
    bool Splits() const override { return kernel->Splits(); }
    void Run(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) const override {
      ++runs;
      kernel->Run(buffers, sizes, begin, end, scratch);
    }
  };
  const int threads = NumThreads();
  SetNumThreads(4);
  Operand x = MakeOperand({Shape{300000}, -3, 3}, *std::make_unique<std::mt19937>(1));
  const auto runs = [&](const KernelBackend& backend, std::vector<std::string>& result) {
    std::shared_ptr<Watched> watched;
    const auto program = CompileOp(
        *FindOp("exp"), nullptr, {x},
        [&](const Kernel& k) {
          watched = std::make_shared<Watched>();
          watched->kernel = backend(k);
          return watched;
        },
        true);
    result = RunOp(*program, {x});
    return watched->runs.load();
  };
  std::vector<std::string> got, want;
  EXPECT_EQ(runs(cuda::DeviceBackend(Open()), got), 1);
  EXPECT_GT(runs(InterpretKernel, want), 1);
  EXPECT_TRUE(got == want);
  SetNumThreads(threads);
}

TEST_F(FakeDriver, DevicesShareTheContext) {
  auto one = Open(), two = Open();
  EXPECT_EQ(Live().contexts, 2);
  one.reset();
  ExpectKernelsEqualInterpreted(two, {9});
}

TEST_F(FakeDriver, SaysWhyThereIsNoDevice) {
  const auto has = [](const std::string& text, const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; };
  has(WhyNot({.library = "libnosuchdriver.so.1"}), "no NVIDIA driver can be opened: libnosuchdriver.so.1: cannot open shared object file");
  has(WhyNot({.library = "libm.so.6"}), "libm.so.6 is not a usable CUDA driver: it lacks cuInit");
  Fail("cuInit", 100);
  has(WhyNot(FakeOptions()), "the driver does not start: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
  Fail("cuInit", 804);
  has(WhyNot(FakeOptions()), "the driver does not start: driver error 804");
  Fail("cuDevicePrimaryCtxRetain", 2);
  has(WhyNot(FakeOptions()), "device 0 can't be used: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  has(WhyNot(FakeOptions(), 3), "there is no device 3: the driver sees 1");
  has(WhyNot(FakeOptions(), -1), "there is no device -1");
  Devices(0, 90);
  has(WhyNot(FakeOptions()), "the driver sees no device");
  EXPECT_EQ(Device::Open(0, nullptr, FakeOptions()), nullptr);
}

std::string WhyFailed(const std::function<void()>& f, ErrorCode code = ErrorCode::kInternal) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    return e.message();
  }
  return "";
}

Kernel SomeKernel() { return AllKernelCases().front().make(kN); }

TEST_F(FakeDriver, FaultsAreErrors) {
  const auto device = Open();
  const Kernel kernel = SomeKernel();
  const auto on_device = cuda::DeviceBackend(device)(kernel);
  DimEnv env;
  env.Set(kN, 65);
  const auto run = [&] { RunKernel(kernel, *on_device, env); };
  const auto has = [](const std::string& text, const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; };
  Limit(100);
  has(WhyFailed(run, ErrorCode::kResourceExhausted), "simulated, sm_90: an allocation of 260 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  Limit(SIZE_MAX);
  Fail("cuLaunchKernel", 719);
  has(WhyFailed(run), "simulated, sm_90: a launch: CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)");
  Fail("cuCtxSynchronize", 700);
  has(WhyFailed(run), "simulated, sm_90: a kernel: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  Fail("cuMemcpyDtoH_v2", 700);
  has(WhyFailed(run), "bytes from the device: CUDA_ERROR_ILLEGAL_ADDRESS");
  has(WhyFailed([&] { device->CopyIn(12345, "x", 1); }), "a copy of 1 bytes to the device: CUDA_ERROR_INVALID_VALUE");
  has(WhyFailed([&] { device->Load({"sinter_kernel", "not a kernel"}); }), "loading sinter_kernel with a driver for CUDA 13.0: CUDA_ERROR_INVALID_IMAGE");
  has(WhyFailed([&] { device->Load({"another_kernel", "__global__"}); }), "finding another_kernel in its module: CUDA_ERROR_NOT_FOUND");
  // A kernel that the simulator can't run stands for one that faults.
  const auto* broken = device->Load({"sinter_kernel", "extern \"C\" __global__ void sinter_kernel() { undeclared = 1; }"});
  uint64_t address = device->Allocate(64);
  int64_t number = 0;
  void* parameters[] = {&address, &address, &number, &number, &address, &number};
  has(WhyFailed([&] { device->Launch(broken, 1, 32, parameters); }), "a kernel: CUDA_ERROR_LAUNCH_FAILED");
  uint64_t nowhere = 4096;
  void* wrong[] = {&nowhere, &address, &number, &number, &address, &number};
  has(WhyFailed([&] { device->Launch(broken, 1, 32, wrong); }), "a kernel: CUDA_ERROR_ILLEGAL_ADDRESS");
  has(WhyFailed([&] { device->Launch(broken, 1, 2048, parameters); }), "a launch: CUDA_ERROR_INVALID_VALUE");
  device->Free(address);
  device->Free(address);  // once more is nothing
  EXPECT_EQ(device->bytes_in_use(), 0u);
  EXPECT_EQ(WhyFailed(run), "");
}

// One kernel from opening the device to its results, with the first call of the driver failing, then the second, and so on.
TEST_F(FakeDriver, WhateverCallFailsIsReportedAndNothingLeaks) {
  const Kernel kernel = SomeKernel();
  DimEnv env;
  env.Set(kN, 65);
  const auto want = RunKernel(kernel, *InterpretKernel(kernel), env);
  int reported = 0, unreported = 0;
  for (size_t keep_bytes : {size_t{0}, size_t{1} << 20}) {
    for (int skip = 0;; ++skip) {
      Fail(nullptr, 719, skip);
      std::string why;
      if (std::shared_ptr<Device> device = Device::Open(0, &why, FakeOptions(keep_bytes))) {
        why = WhyFailed([&] { EXPECT_TRUE(RunKernel(kernel, *cuda::DeviceBackend(device)(kernel), env) == want); });
        EXPECT_EQ(device->bytes_in_use(), 0u);
      }
      ExpectNothingLeft();
      if (Fail(nullptr, 0)) break;  // no call was left to fail
      if (why.empty()) {
        ++unreported;
        continue;
      }
      ++reported;
      EXPECT_NE(why.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos) << why;
    }
  }
  EXPECT_GT(reported, 60);
  // Making the context current in order to free: once for each buffer, the table, the sizes and the scratch where none are kept, and once for
  // each of the two devices.
  EXPECT_EQ(unreported, static_cast<int>(kernel.buffers.size()) + 3 + 2);
}

// A kernel that faults breaks the context for good: every later call fails, the ones that free too.
TEST_F(FakeDriver, ABrokenContextIsReportedToTheEnd) {
  const Kernel kernel = SomeKernel();
  DimEnv env;
  env.Set(kN, 65);
  {
    const auto device = Open();
    const auto on_device = cuda::DeviceBackend(device)(kernel);
    Fail("cuCtxSynchronize", 700);
    Fail(nullptr, 700, 8, true);
    for (int i = 0; i < 3; ++i) EXPECT_NE(WhyFailed([&] { RunKernel(kernel, *on_device, env); }).find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
    EXPECT_EQ(device->bytes_in_use(), 0u);
  }
  Control<sim_cuda::FakeCudaReset>("fake_cuda_reset")();
}

TEST_F(FakeDriver, FreedMemoryIsUsedAgain) {
  const auto device = Open(10000);
  const uint64_t a = device->Allocate(1000);
  device->Free(a);
  EXPECT_EQ(device->Allocate(900), a);  // both are blocks of 1024 bytes
  const uint64_t b = device->Allocate(900);
  EXPECT_NE(a, b);
  EXPECT_EQ(device->bytes_in_use(), 2048u);
  device->Free(a), device->Free(b);
  EXPECT_EQ(Live().blocks, 2);
  // Beyond what is kept.
  device->Free(device->Allocate(20000));
  EXPECT_EQ(Live().blocks, 2);
  // What waits is given back where memory is short.
  Limit(3000);
  const uint64_t c = device->Allocate(2500);
  EXPECT_EQ(Live().blocks, 1);
  EXPECT_NE(WhyFailed([&] { device->Allocate(1); }, ErrorCode::kResourceExhausted), "");
  device->Free(c);
  EXPECT_EQ(device->bytes_in_use(), 0u);
}

TEST(MemoryPool, BlocksAreALittleLarger) {
  const cuda::MemoryPool pool(1), exact(0);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513}, size_t{1000000}, (size_t{1} << 30) + 1, size_t{77} << 30, SIZE_MAX}) {
    EXPECT_GE(pool.BlockSize(bytes), std::max<size_t>(bytes, 1));
    EXPECT_LE(pool.BlockSize(bytes) - bytes, std::max<size_t>(512, bytes / 8));
    EXPECT_EQ(pool.BlockSize(pool.BlockSize(bytes)), pool.BlockSize(bytes)) << bytes;
    EXPECT_EQ(exact.BlockSize(bytes), std::max<size_t>(bytes, 1));
  }
}

// The image that the driver gets: machine code for devices that NVRTC knows, PTX of the newest that it knows for newer ones.
TEST_F(FakeDriver, GetsMachineCodeOrPtx) {
  if (std::string why; !cuda::NvrtcAvailable(&why)) GTEST_SKIP() << "NOT TESTED: " << why;
  const auto image_for = [](int sm) {
    Devices(1, sm);
    const auto device = Device::Open(0, nullptr, {.library = kFake});
    const std::string why = WhyFailed([&] { device->Load(cuda::EmitCuda(SomeKernel())); });
    EXPECT_NE(why.find("CUDA_ERROR_INVALID_IMAGE"), std::string::npos) << why;  // the stand-in takes neither
    return std::string(Control<sim_cuda::FakeCudaImage>("fake_cuda_image")());
  };
  const int newest = cuda::NvrtcArchs().back();
  EXPECT_EQ(image_for(90).substr(0, 4), "\x7f" "ELF");
  EXPECT_EQ(image_for(newest).substr(0, 4), "\x7f" "ELF");
  const std::string ptx = image_for(newest + 50);
  EXPECT_NE(ptx.find(StrCat(".target sm_", newest)), std::string::npos) << ptx.substr(0, 500);
  EXPECT_NE(ptx.find(".entry sinter_kernel("), std::string::npos);
  Devices(1, 20);
  const auto old = Device::Open(0, nullptr, {.library = kFake});
  EXPECT_NE(WhyFailed([&] { old->Load(cuda::EmitCuda(SomeKernel())); }, ErrorCode::kUnavailable).find("no architecture that a device of sm_20 runs"), std::string::npos);
}

TEST_F(FakeDriver, DescribeTriesAKernel) {
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.back(), '\n');
  };
  const std::string works = cuda::DescribeCuda(FakeOptions());
  has(works, "libfakecuda.so, CUDA 13.0\nGPU: simulated, sm_90\n");
  has(works, "kernels can be launched on this GPU (one was)");
  EXPECT_EQ(Count("cuLaunchKernel"), 1);
  Fail("cuLaunchKernel", 719);
  has(cuda::DescribeCuda(FakeOptions()), "kernels can't be launched on this GPU: simulated, sm_90: a launch: CUDA_ERROR_LAUNCH_FAILED");
  Devices(0, 90);
  has(cuda::DescribeCuda(FakeOptions()), "GPU: none: the driver sees no device\nprograms run on the CPU; kernels can be emitted as CUDA C++ but not launched here\n");
  const std::string here = cuda::DescribeCuda();
  for (const char* part : {"NVRTC: ", "GPU: ", "programs run on the CPU; kernels can"}) has(here, part);
}

#if SINTER_HAVE_NVRTC

// The functions are declared by hand: a call through them must pass what a call through cuda.h would.
template <class A, class B>
constexpr bool SameArgument() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using C = std::remove_cv_t<std::remove_pointer_t<A>>;
    using D = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (std::is_void_v<C>) return true;  // handles and data
    else return SameArgument<C, D>();
  } else {
    return std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) && (std::is_integral_v<A> || std::is_enum_v<A>) == (std::is_integral_v<B> || std::is_enum_v<B>);
  }
}
template <class... A, class... B>
constexpr bool SameCall(int (*)(A...), CUresult (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return (SameArgument<A, B>() && ...);
}
constexpr cuda::Driver kDriver;
#define SINTER_SAME(member, function) static_assert(SameCall(decltype(kDriver.member){}, static_cast<decltype(&function)>(nullptr)), #function)
SINTER_SAME(init, cuInit);
SINTER_SAME(version, cuDriverGetVersion);
SINTER_SAME(device_count, cuDeviceGetCount);
SINTER_SAME(device_get, cuDeviceGet);
SINTER_SAME(device_name, cuDeviceGetName);
SINTER_SAME(device_attribute, cuDeviceGetAttribute);
SINTER_SAME(retain, cuDevicePrimaryCtxRetain);
SINTER_SAME(release, cuDevicePrimaryCtxRelease_v2);
SINTER_SAME(set_current, cuCtxSetCurrent);
SINTER_SAME(allocate, cuMemAlloc_v2);
SINTER_SAME(free, cuMemFree_v2);
SINTER_SAME(copy_in, cuMemcpyHtoD_v2);
SINTER_SAME(copy_out, cuMemcpyDtoH_v2);
SINTER_SAME(load, cuModuleLoadData);
SINTER_SAME(unload, cuModuleUnload);
SINTER_SAME(get_function, cuModuleGetFunction);
SINTER_SAME(launch, cuLaunchKernel);
SINTER_SAME(synchronize, cuCtxSynchronize);
SINTER_SAME(error_name, cuGetErrorName);
SINTER_SAME(error_string, cuGetErrorString);
#undef SINTER_SAME
static_assert(cuda::Driver::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::Driver::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::Driver::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

// The toolkit's own stand-in, whose functions all say that they are one: every function has the name it has in NVIDIA's library. In a
// process of its own: while the stand-in is open it is what "libcuda.so.1" means.
TEST(DriverDeathTest, FindsAllFunctionsInNvidiasLibrary) {
  constexpr char kStub[] = SINTER_CUDA_HOME "/lib64/stubs/libcuda.so";
  if (access(kStub, R_OK) != 0) GTEST_SKIP() << "NOT TESTED: there is no " << kStub;
  const auto open = [&] {
    std::string why;
    if (Device::Open(0, &why, {.library = kStub})) why = "opened";
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(open(), ::testing::ExitedWithCode(0), "the driver does not start: ");
  EXPECT_EQ(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr) << "the tests of real devices would not see the real driver";
}

#endif

TEST(RealDevice, KernelsEqualInterpreted) {
  std::string why;
  const std::shared_ptr<Device> device = Device::Open(0, &why);
  if (!device) GTEST_SKIP() << "NOT TESTED: " << why;
  ExpectKernelsEqualInterpreted(device, {0, 1, 7, 16, 17, 1000, 3001});
  ExpectKernelsEqualInterpreted(device, {17, 300}, 3);
}

TEST(RealDevice, OpsEqualInterpreted) {
  std::string why;
  const std::shared_ptr<Device> device = Device::Open(0, &why);
  if (!device) GTEST_SKIP() << "NOT TESTED: " << why;
  ExpectOpsEqualInterpreted(device);
}

}  // namespace
}  // namespace sinter::codegen::testing
