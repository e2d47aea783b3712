// The code that talks to the CUDA driver: on a stand-in for the driver everywhere, on a GPU where there is one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "sinter/codegen/cuda/device_backend.h"
#include "sinter/graph/error.h"
#include "sinter/tests/codegen/kernel_cases.h"
#include "sinter/tests/codegen/kernel_runner.h"
#include "sinter/tests/codegen/op_runner.h"

namespace sinter::codegen::testing {
namespace {

using cuda::Device;

constexpr char kFake[] = "tests/sim_cuda/libfakecuda.so";
const Dim kN = Dim::Symbol("kernel_case_n");

template <class F>
F* Control(const char* name) {
  static void* library = dlopen(kFake, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F*>(dlsym(library, name));
}
int Live(const char* what) { return Control<int()>((std::string("fake_cuda_live_") + what).c_str())(); }

std::shared_ptr<Device> Fake() {
  std::string why;
  std::shared_ptr<Device> d = Device::Open(0, &why, {.library = kFake, .compile = [](const cuda::CudaSource& s, int) { return s.text; }});
  EXPECT_NE(d, nullptr) << why;
  return d;
}

void ExpectKernelsEqualInterpreted(const std::shared_ptr<Device>& device, std::initializer_list<int64_t> sizes) {
  const KernelBackend backend = cuda::DeviceBackend(device);
  std::vector<std::pair<KernelCase, Kernel>> cases;
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  for (const KernelCase& c : AllKernelCases()) {
    cases.emplace_back(c, c.make(kN));
    kernels.push_back(backend(cases.back().second));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [c, kernel] = cases[i];
    const auto oracle = InterpretKernel(kernel);
    for (int64_t size : sizes) {
      DimEnv env;
      env.Set(kN, size);
      EXPECT_TRUE(RunKernel(kernel, *kernels[i], env) == RunKernel(kernel, *oracle, env)) << c.name << " n=" << size;
    }
  }
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
    const Sample s = SamplesOf(*op).front();
    Case c{op->name, MakeOperands(s), nullptr, nullptr};
    c.on_device = CompileOp(*op, s.attrs, c.operands, cuda::DeviceBackend(device), true);
    c.interpreted = CompileOp(*op, s.attrs, c.operands, InterpretKernel, false);
    cases.push_back(std::move(c));
  }
  for (const Case& c : cases) EXPECT_TRUE(RunOp(*c.on_device, c.operands) == RunOp(*c.interpreted, c.operands)) << c.name;
}

TEST(FakeDriver, KernelsEqualInterpreted) {
  {
    const auto device = Fake();
    EXPECT_EQ(device->name(), "simulated, sm_90");
    ExpectKernelsEqualInterpreted(device, {0, 1, 17, 300});
    EXPECT_EQ(Live("blocks"), 0);
    EXPECT_GT(Live("modules"), 20);
  }
  EXPECT_EQ(Live("modules"), 0);
  EXPECT_EQ(Live("contexts"), 0);
}

TEST(FakeDriver, OpsEqualInterpreted) {
  ExpectOpsEqualInterpreted(Fake());
  EXPECT_EQ(Live("blocks"), 0);
}

TEST(FakeDriver, ThreadsShareADevice) {
  const auto device = Fake();
  const KernelCase c = AllKernelCases().front();
  const Kernel kernel = c.make(kN);
  const auto on_device = cuda::DeviceBackend(device)(kernel);
  DimEnv env;
  env.Set(kN, 65);
  const auto want = RunKernel(kernel, *InterpretKernel(kernel), env);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) wrong += !(RunKernel(kernel, *on_device, env) == want);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Live("blocks"), 0);
}

std::string WhyNot(cuda::DeviceOptions options, int ordinal = 0) {
  std::string why;
  EXPECT_EQ(Device::Open(ordinal, &why, std::move(options)), nullptr);
  return why;
}

TEST(FakeDriver, SaysWhyThereIsNoDevice) {
  EXPECT_NE(WhyNot({.library = "libnosuchdriver.so.1"}).find("no NVIDIA driver is installed"), std::string::npos);
  EXPECT_NE(WhyNot({.library = "libm.so.6"}).find("lacks cuInit"), std::string::npos);
  Control<void(int)>("fake_cuda_fault")(100);
  EXPECT_NE(WhyNot({.library = kFake}).find("CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"), std::string::npos);
  EXPECT_NE(WhyNot({.library = kFake}, 3).find("there is no device 3"), std::string::npos);
}

std::string WhyFailed(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(FakeDriver, FaultsAreErrorsAndLeakNothing) {
  const auto device = Fake();
  const Kernel kernel = AllKernelCases().front().make(kN);
  const auto on_device = cuda::DeviceBackend(device)(kernel);
  DimEnv env;
  env.Set(kN, 65);
  const auto run = [&] { RunKernel(kernel, *on_device, env); };
  Control<void(size_t)>("fake_cuda_limit")(100);
  std::string why = WhyFailed(run);
  EXPECT_NE(why.find("CUDA_ERROR_OUT_OF_MEMORY (out of memory)"), std::string::npos) << why;
  Control<void(size_t)>("fake_cuda_limit")(SIZE_MAX);
  EXPECT_EQ(Live("blocks"), 0);
  Control<void(int)>("fake_cuda_fault")(719);
  why = WhyFailed(run);
  EXPECT_NE(why.find("a launch: CUDA_ERROR_LAUNCH_FAILED"), std::string::npos) << why;
  EXPECT_EQ(Live("blocks"), 0);
  why = WhyFailed([&] { device->CopyIn(12345, "x", 1); });
  EXPECT_NE(why.find("a copy of 1 bytes"), std::string::npos) << why;
  why = WhyFailed([&] { device->Load({"sinter_kernel", "not a kernel"}); });
  EXPECT_NE(why.find("loading sinter_kernel: driver error 200"), std::string::npos) << why;
  EXPECT_EQ(WhyFailed(run), "");
}

TEST(RealDevice, KernelsAndOpsEqualInterpreted) {
  std::string why;
  const std::shared_ptr<Device> device = Device::Open(0, &why);
  if (!device) GTEST_SKIP() << "NOT TESTED: " << why;
  ExpectKernelsEqualInterpreted(device, {0, 1, 17, 1000, 3001});
  ExpectOpsEqualInterpreted(device);
}

TEST(Describe, SaysWhatThereIs) {
  const std::string text = cuda::DescribeCuda();
  for (const char* part : {"NVRTC: ", "GPU: "}) EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace sinter::codegen::testing
