#include "sinter/graph/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace sinter {
namespace {

constexpr std::string_view kOwnFolders[] = {"graph/", "runtime/", "codegen/", "serialize/", "eager/", "tracer/"};

std::string Demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string r = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return r;
}

// The folder that this file was compiled in, "" when compiled with a relative path.
std::string SourceRoot() {
  std::string_view here = __FILE__;
  return std::string(here.substr(0, here.size() - std::string_view("graph/call_stack.cc").size()));
}

bool IsInternal(std::string_view file) {
  if (file.empty()) return true;
  if (file.starts_with("/usr/")) return true;
  if (file.find("/sinter/") != std::string_view::npos && file.find("_virtual_includes/") != std::string_view::npos) return true;
  static const std::string root = SourceRoot();
  // Bazel compiles with paths relative to the workspace, recorded below its execution root.
  for (std::string_view folder : kOwnFolders) {
    if (root.empty() && file.starts_with(folder)) return true;
    if (!root.empty() && file.starts_with(root) && file.substr(root.size()).starts_with(folder)) return true;
    const std::string in_sandbox = "/execroot/sinter/" + std::string(folder);
    if (file.find(in_sandbox) != std::string_view::npos) return true;
    if (file.starts_with("/proc/self/cwd/" + std::string(folder))) return true;
  }
  return false;
}

// Debug information of this process, opened once; libdwfl is not thread-safe.
class Symbols {
 public:
  static Symbols& Get() {
    static auto* symbols = new Symbols();
    return *symbols;
  }

  std::vector<SourceFrame> Resolve(void* return_address) {
    std::lock_guard lock(mutex_);
    if (auto it = cache_.find(return_address); it != cache_.end()) return it->second;
    std::vector<SourceFrame> frames = Lookup(return_address);
    if (frames.empty()) frames.push_back(SymbolOnly(return_address));
    if (cache_.size() > 65536) cache_.clear();
    cache_[return_address] = frames;
    return frames;
  }

 private:
  Symbols() { Report(); }

  void Report() {
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr, nullptr};
    if (dwfl_ == nullptr) dwfl_ = dwfl_begin(&callbacks);
    if (dwfl_ == nullptr) return;
    dwfl_report_begin(dwfl_);
    if (dwfl_linux_proc_report(dwfl_, getpid()) == 0) dwfl_report_end(dwfl_, nullptr, nullptr);
  }

  std::vector<SourceFrame> Lookup(void* return_address) {
    std::vector<SourceFrame> frames;
    if (dwfl_ == nullptr) return frames;
    // The call is the instruction before.
    const Dwarf_Addr address = reinterpret_cast<Dwarf_Addr>(return_address) - 1;
    Dwfl_Module* module = dwfl_addrmodule(dwfl_, address);
    if (module == nullptr) {
      Report();  // a library that was loaded since
      module = dwfl_addrmodule(dwfl_, address);
      if (module == nullptr) return frames;
    }
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
    Dwarf_Line* line = unit ? dwarf_getsrc_die(unit, address - bias) : nullptr;
    if (line == nullptr) return frames;
    SourceFrame frame;
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    frame.file = file ? file : "";
    dwarf_lineno(line, &frame.line);
    // Inlined calls: from the innermost scope outwards, each gives the line that called it.
    // dwarf_getscopes leaves an inlined call for the place of the callee's definition; dwarf_getscopes_die goes to the caller.
    Dwarf_Die* scopes = nullptr;
    int count = dwarf_getscopes(unit, address - bias, &scopes);
    if (count > 0) {
      Dwarf_Die innermost = scopes[0];
      std::free(scopes);
      scopes = nullptr;
      count = dwarf_getscopes_die(&innermost, &scopes);
    }
    for (int i = 0; i < count; ++i) {
      const int tag = dwarf_tag(&scopes[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      frame.function = Name(&scopes[i]);
      frame.internal = IsInternal(frame.file);
      frames.push_back(frame);
      if (tag == DW_TAG_subprogram) break;
      frame = SourceFrame();
      Dwarf_Attribute attribute;
      Dwarf_Word value = 0;
      Dwarf_Files* files = nullptr;
      size_t size = 0;
      if (dwarf_attr(&scopes[i], DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &value) == 0 &&
          dwarf_getsrcfiles(unit, &files, &size) == 0 && value < size) {
        const char* name = dwarf_filesrc(files, value, nullptr, nullptr);
        frame.file = name ? name : "";
      }
      if (dwarf_attr(&scopes[i], DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &value) == 0) frame.line = static_cast<int>(value);
    }
    std::free(scopes);
    if (frames.empty()) {
      frame.function = SymbolOnly(return_address).function;
      frame.internal = IsInternal(frame.file);
      frames.push_back(frame);
    }
    return frames;
  }

  static std::string Name(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != nullptr)
      if (const char* s = dwarf_formstring(&attribute)) return Demangle(s);
    const char* s = dwarf_diename(die);
    return s ? s : "";
  }

  static SourceFrame SymbolOnly(void* address) {
    SourceFrame f;
    Dl_info info;
    if (dladdr(static_cast<char*>(address) - 1, &info) && info.dli_sname != nullptr) {
      char offset[32];
      std::snprintf(offset, sizeof offset, "+0x%zx", static_cast<size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_saddr)));
      f.function = Demangle(info.dli_sname) + offset;
    }
    f.internal = f.function.empty() || f.function.find("sinter::") != std::string::npos;
    return f;
  }

  std::mutex mutex_;
  Dwfl* dwfl_ = nullptr;
  std::map<void*, std::vector<SourceFrame>> cache_;
};

}  // namespace

std::vector<void*> CaptureCallStack(int skip, int max_frames) {
  void* frames[128];
  const int n = backtrace(frames, std::min(max_frames + skip + 1, 128));
  const int first = std::min(skip + 1, n);
  return std::vector<void*>(frames + first, frames + n);  // not braces: two pointers would be its elements
}

std::vector<SourceFrame> ResolveAddress(void* return_address) { return Symbols::Get().Resolve(return_address); }

SourceFrame UserFrame(const std::vector<void*>& stack) {
  SourceFrame without_lines;
  for (void* address : stack)
    for (const SourceFrame& f : ResolveAddress(address)) {
      if (f.internal) continue;
      if (!f.file.empty()) return f;
      if (without_lines.function.empty()) without_lines = f;
    }
  return without_lines;
}

std::string UserLocation(const std::vector<void*>& stack, bool with_function) {
  const SourceFrame f = UserFrame(stack);
  if (f.file.empty()) {
    if (f.function.empty()) return "unknown location (build with -g1 to see lines)";
    return f.function + " (build with -g1 to see the line)";
  }
  // A path below the current folder is shown relative to it; otherwise as recorded.
  std::string file = f.file;
  if (file.starts_with("./")) file = file.substr(2);
  std::string text = file + ":" + std::to_string(f.line);
  if (with_function && !f.function.empty()) {
    const size_t paren = f.function.find('(');
    text += " (" + f.function.substr(0, std::min<size_t>(paren, 80)) + ")";
  }
  return text;
}

}  // namespace sinter
