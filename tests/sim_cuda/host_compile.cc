#include "sinter/tests/sim_cuda/host_compile.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::sim_cuda {
namespace {

struct Entry {
  const std::string* text;
  HostKernel kernel;
  std::string fault;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, int> handles;  // texts do not move
  std::deque<Entry> entries;
  size_t compiled = 0;  // entries before this one are
};

Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

std::string Output(const std::string& command, int* status) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw Error(ErrorCode::kUnavailable, "the simulator can't start g++");
  char part[4096];
  while (size_t n = fread(part, 1, sizeof part, pipe)) text.append(part, n);
  *status = pclose(pipe);
  return text;
}

std::string KernelName(size_t i) { return StrCat("sinter_sim_kernel_", i); }

// Entries [from, to) as one library. Each text has a namespace, so that they may define the same helpers.
void CompileRange(std::deque<Entry>& entries, size_t from, size_t to) {
  std::string text = kShim;
  for (size_t i = from; i < to; ++i)
    StrAppend(&text, "\n#define sinter_kernel ", KernelName(i), "\nnamespace text_", i, " {\n", *entries[i].text, "\n}\n#undef sinter_kernel\n");
  std::string folder = (std::filesystem::temp_directory_path() / "sinter_sim_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw Error(ErrorCode::kUnavailable, "the simulator has no folder for temporary files");
  const std::string source = folder + "/kernels.cc", library = folder + "/kernels.so";
  std::ofstream(source) << text;
  int status = 0;
  // As the rest of Sinter: no contraction. Locals live in raw bytes, so no aliasing by type.
  const std::string log = Output(
      StrCat("g++ -shared -fPIC -O1 -std=c++17 -march=x86-64-v3 -ffp-contract=off -fno-strict-aliasing -w '", source, "' -o '", library, "' 2>&1"),
      &status);
  void* handle = status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const std::string fault = status != 0 ? "g++: " + log : handle == nullptr ? dlerror() : "";
  if (getenv("SINTER_SIM_KEEP") == nullptr) std::filesystem::remove_all(folder);
  for (size_t i = from; i < to; ++i) {
    Entry& e = entries[i];
    e.fault = fault;
    if (handle == nullptr) continue;
    e.kernel.function = reinterpret_cast<SimKernelFn>(dlsym(handle, KernelName(i).c_str()));
    e.kernel.state = reinterpret_cast<SimState* (*)()>(dlsym(handle, "sinter_sim_state"));
    e.kernel.waits = e.text->find("__sync") != std::string::npos || e.text->find("__shfl") != std::string::npos;
    if (e.kernel.function == nullptr || e.kernel.state == nullptr) e.fault = "the text has no kernel named sinter_kernel";
  }
}

void CompileAnnounced(Registry& r) {
  constexpr size_t kAtOnce = 24;
  std::vector<std::pair<size_t, size_t>> ranges;
  for (size_t from = r.compiled; from < r.entries.size(); from += kAtOnce) ranges.emplace_back(from, std::min(from + kAtOnce, r.entries.size()));
  r.compiled = r.entries.size();
  for (size_t i = 0; i < ranges.size(); i += 2) {
    std::thread other;
    if (i + 1 < ranges.size()) other = std::thread([&, i] { CompileRange(r.entries, ranges[i + 1].first, ranges[i + 1].second); });
    CompileRange(r.entries, ranges[i].first, ranges[i].second);
    if (other.joinable()) other.join();
  }
}

}  // namespace

int Announce(const std::string& text) {
  Registry& r = TheRegistry();
  std::lock_guard lock(r.mutex);
  auto [it, added] = r.handles.emplace(text, static_cast<int>(r.entries.size()));
  if (added) r.entries.push_back({&it->first, {}, {}});
  return it->second;
}

HostKernel HostKernelOf(int handle) {
  Registry& r = TheRegistry();
  std::lock_guard lock(r.mutex);
  if (static_cast<size_t>(handle) >= r.compiled) CompileAnnounced(r);
  const Entry& e = r.entries[static_cast<size_t>(handle)];
  if (!e.fault.empty()) throw Error(ErrorCode::kInternal, "the simulator: " + e.fault);
  return e.kernel;
}

}  // namespace sinter::sim_cuda
