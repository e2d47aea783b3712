#include "examples/digits/cuda.h"

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "sinter/codegen/cuda/device_backend.h"
#include "sinter/codegen/cuda/emit_cuda.h"
#include "sinter/codegen/cuda/nvrtc.h"
#include "sinter/codegen/optimize.h"
#include "sinter/sinter.h"
#include "sinter/tests/sim_cuda/simulate.h"
#include "sinter/tracer/run_executable.h"

namespace digits {
namespace {

using namespace sinter;
namespace cuda = codegen::cuda;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The whole program for a device, contractions too; its kernels go to `sources`.
std::shared_ptr<const Executable> CompileForCuda(const Graph& captured, codegen::KernelBackend backend, std::vector<cuda::CudaSource>& sources) {
  const std::unique_ptr<Graph> graph = captured.Clone();
  codegen::Optimize(*graph);
  codegen::CompileOptions options;
  options.fusion.contractions_as_kernels = true;
  options.backend = std::move(backend);
  options.on_kernel = [&](const codegen::FusedKernel& k) { sources.push_back(cuda::EmitCuda(k.kernel)); };
  return codegen::Compile(*graph, options);
}

size_t Lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

bool CompileForDevices(const std::vector<cuda::CudaSource>& sources) {
  std::string why;
  if (!cuda::NvrtcAvailable(&why)) {
    std::printf("   NOT COMPILED for devices: %s\n", why.c_str());
    return true;
  }
  bool ok = true;
  for (int sm : std::set<int>{80, 90, cuda::NvrtcArchs().back()}) {
    size_t bytes = 0, done = 0;
    const double start = Seconds();
    for (const cuda::CudaSource& s : sources) {
      try {
        bytes += cuda::CompileCubin(s, sm).cubin.size();
        ++done;
      } catch (const Error& e) {
        std::printf("   sm_%d: %s\n", sm, e.message().c_str());
        ok = false;
      }
    }
    std::printf("   sm_%-3d  %zu of %zu kernels compiled, %zu bytes of machine code, %.2f s\n", sm, done, sources.size(), bytes,
                Seconds() - start);
  }
  return ok;
}

bool RunOnDevice(const tracer::Entry& entry, const Executable& program, const std::string& where) {
  manual_seed(11);
  const Tensor x = rand(Shape{7, 1, 8, 8});
  std::vector<TensorImpl*> inputs = {&x.impl()};
  for (const tracer::External& e : entry.externals) inputs.push_back(&e.Current());
  double start = Seconds();
  const std::vector<ImplPtr> got = tracer::RunExecutable(program, inputs);
  const double first = Seconds() - start;
  start = Seconds();
  tracer::RunExecutable(program, inputs);
  const double again = Seconds() - start;
  const std::vector<ImplPtr> want = tracer::RunExecutable(*entry.executable, inputs);
  bool same = got.size() == want.size() && !want.empty();
  for (size_t i = 0; same && i < want.size(); ++i) same = DifferenceOf(Tensor(got[i]), Tensor(want[i]), Numerics::kExact).empty();
  std::printf("   on %s: batch 7, %s the CPU's, %.2f ms, then %.2f ms\n", where.c_str(), same ? "bit for bit" : "DIFFERENT from", first * 1e3, again * 1e3);
  return same;
}

bool RunOnGpu(const tracer::Entry& entry) {
  std::string why;
  const std::shared_ptr<cuda::Device> device = cuda::Device::Open(0, &why);
  if (!device || !cuda::NvrtcAvailable(&why)) {
    std::printf("   on a GPU: NOT RUN: %s\n", why.c_str());
    return true;
  }
  try {
    std::vector<cuda::CudaSource> sources;
    const std::shared_ptr<const Executable> program = CompileForCuda(*entry.graph, cuda::DeviceBackend(device), sources);
    return RunOnDevice(entry, *program, device->name());
  } catch (const Error& e) {
    std::printf("   on %s: FAILED: %s\n", device->name().c_str(), e.message().c_str());
    return false;
  }
}

}  // namespace

bool ShowCuda(const tracer::Entry& entry) {
  std::vector<cuda::CudaSource> sources;
  const std::shared_ptr<const Executable> simulated = CompileForCuda(*entry.graph, sim_cuda::SimulatorBackend(), sources);
  size_t lines = 0;
  for (const cuda::CudaSource& s : sources) lines += Lines(s.text) - Lines(sources[0].text.substr(0, sources[0].text.find("extern \"C\"")));
  std::printf("   the program as %zu kernels in %zu lines of CUDA C++\n", sources.size(), lines);
  bool ok = CompileForDevices(sources);
  ok = RunOnDevice(entry, *simulated, "the simulated device (the same CUDA C++, compiled for this machine by g++)") && ok;
  ok = RunOnGpu(entry) && ok;
  std::string about = cuda::DescribeCuda();
  for (size_t at = 0; (at = about.find('\n', at)) + 1 < about.size(); at += 4) about.replace(at, 1, "\n   ");
  std::printf("   %s", about.c_str());
  return ok;
}

}  // namespace digits
