#include "sinter/codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

#if SINTER_HAVE_NVRTC
#include <nvrtc.h>
#endif

namespace sinter::codegen::cuda {
namespace {

#if !SINTER_HAVE_NVRTC
constexpr char kNotBuilt[] =
    "this build has no CUDA: no toolkit was there when it was built, neither in CUDA_HOME nor in /usr/local/cuda, and no unpacked NVRTC "
    "wheels in .cache/cuda";
#endif

#if SINTER_HAVE_NVRTC

struct Nvrtc {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcGetNumSupportedArchs) num_archs;
  decltype(&nvrtcGetSupportedArchs) archs;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetCUBIN) cubin;
  decltype(&nvrtcGetPTXSize) ptx_size;
  decltype(&nvrtcGetPTX) ptx;
  std::string path;     // what was opened
  std::string missing;  // why nothing was
};

template <class F>
bool Find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

Nvrtc OpenNvrtc() {
  Nvrtc n{};
  // The toolkit that the build saw (its lib64, or lib of unpacked wheels), then wherever the loader looks. The functions used are the
  // same in all these versions.
  const std::string names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  void* library = nullptr;
  for (const char* folder : {SINTER_CUDA_HOME "/lib64/", SINTER_CUDA_HOME "/lib/", ""}) {
    for (const std::string& name : names) {
      n.path = folder + name;
      library = dlopen(n.path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    const char* error = dlerror();
    n.missing = StrCat("NVRTC was not found in " SINTER_CUDA_HOME " nor on the library path: ", error ? error : "unknown error");
    return n;
  }
  const bool all = Find(library, "nvrtcVersion", n.version) && Find(library, "nvrtcGetErrorString", n.error_string) &&
                   Find(library, "nvrtcGetNumSupportedArchs", n.num_archs) && Find(library, "nvrtcGetSupportedArchs", n.archs) &&
                   Find(library, "nvrtcCreateProgram", n.create) && Find(library, "nvrtcDestroyProgram", n.destroy) &&
                   Find(library, "nvrtcCompileProgram", n.compile) && Find(library, "nvrtcGetProgramLogSize", n.log_size) &&
                   Find(library, "nvrtcGetProgramLog", n.log) && Find(library, "nvrtcGetCUBINSize", n.cubin_size) &&
                   Find(library, "nvrtcGetCUBIN", n.cubin) && Find(library, "nvrtcGetPTXSize", n.ptx_size) && Find(library, "nvrtcGetPTX", n.ptx);
  if (!all) n.missing = StrCat(n.path, " is too old: NVRTC 11.2 or newer is needed");
  return n;
}

// Opened once and never closed: NVRTC keeps threads and caches of its own.
const Nvrtc& Library() {
  static const Nvrtc* library = new Nvrtc(OpenNvrtc());
  return *library;
}

const Nvrtc& Required() {
  if (!Library().missing.empty()) throw Error(ErrorCode::kUnavailable, Library().missing);
  return Library();
}

void Check(const Nvrtc& n, nvrtcResult r, const char* what) {
  if (r != NVRTC_SUCCESS) throw Error(ErrorCode::kInternal, StrCat("NVRTC: ", what, ": ", n.error_string(r)));
}

#endif

}  // namespace

bool NvrtcAvailable(std::string* why) {
#if SINTER_HAVE_NVRTC
  if (why != nullptr) *why = Library().missing;
  return Library().missing.empty();
#else
  if (why != nullptr) *why = kNotBuilt;
  return false;
#endif
}

std::string NvrtcVersion() {
#if SINTER_HAVE_NVRTC
  const Nvrtc& n = Required();
  int major = 0, minor = 0;
  Check(n, n.version(&major, &minor), "its version");
  return StrCat(major, ".", minor, " (", n.path, ")");
#else
  throw Error(ErrorCode::kUnavailable, kNotBuilt);
#endif
}

std::vector<int> NvrtcArchs() {
#if SINTER_HAVE_NVRTC
  if (!NvrtcAvailable(nullptr)) return {};
  const Nvrtc& n = Library();
  int count = 0;
  Check(n, n.num_archs(&count), "its architectures");
  std::vector<int> archs(static_cast<size_t>(count));
  if (count > 0) Check(n, n.archs(archs.data()), "its architectures");
  std::sort(archs.begin(), archs.end());
  return archs;
#else
  return {};
#endif
}

CompiledCuda CompileCubin(const CudaSource& source, int sm) {
#if SINTER_HAVE_NVRTC
  const Nvrtc& n = Required();
  nvrtcProgram program = nullptr;
  Check(n, n.create(&program, source.text.c_str(), StrCat(source.name, ".cu").c_str(), 0, nullptr, nullptr), source.name.c_str());
  struct Destroy {
    const Nvrtc& n;
    nvrtcProgram* program;
    ~Destroy() { n.destroy(program); }
  } destroy{n, &program};
  const std::string arch = StrCat("--gpu-architecture=sm_", sm);
  // The bits of every other target: no contraction, correctly rounded division and roots, subnormals kept.
  const char* options[] = {arch.c_str(), "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--std=c++17", "--generate-line-info",
                           // Loop variables that a kernel does not need.
                           "--diag-suppress=177"};
  const nvrtcResult result = n.compile(program, static_cast<int>(std::size(options)), options);
  CompiledCuda out;
  auto fetch = [&](auto size_of, auto get, std::string& to) {
    size_t size = 0;
    Check(n, size_of(program, &size), "a result's size");
    to.resize(size);
    if (size > 0) Check(n, get(program, to.data()), "a result");
  };
  fetch(n.log_size, n.log, out.log);
  while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) out.log.pop_back();
  if (result != NVRTC_SUCCESS)
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("NVRTC can't compile ", source.name, " for sm_", sm, ": ", n.error_string(result), "\n", out.log));
  fetch(n.cubin_size, n.cubin, out.cubin);
  fetch(n.ptx_size, n.ptx, out.ptx);
  if (!out.ptx.empty() && out.ptx.back() == '\0') out.ptx.pop_back();
  return out;
#else
  (void)source, (void)sm;
  throw Error(ErrorCode::kUnavailable, kNotBuilt);
#endif
}

}  // namespace sinter::codegen::cuda
