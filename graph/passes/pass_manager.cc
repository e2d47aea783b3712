#include "sinter/graph/passes/pass_manager.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "sinter/graph/strings.h"

namespace sinter {
namespace {

void Dump(const char* where, const Graph& graph, const std::string& pass, bool changed) {
  const std::string text = changed ? Print(graph, true) : "(unchanged)\n";
  if (std::string_view(where) == "1") {
    std::fprintf(stderr, "-- %s after %s\n%s", graph.name.c_str(), pass.c_str(), text.c_str());
    return;
  }
  static std::atomic<int> number{0};
  const int n = number++;
  std::ofstream(StrCat(where, "/", n < 10 ? "00" : n < 100 ? "0" : "", n, "_", graph.name, "_", pass, ".txt")) << text;
}

}  // namespace

std::vector<PassTiming> RunPasses(Graph& graph, const std::vector<Pass>& passes) {
  const char* dump = std::getenv("SINTER_DUMP");
  std::vector<PassTiming> timings;
  if (dump != nullptr) Dump(dump, graph, "capture", true);
  for (const Pass& p : passes) {
    const auto start = std::chrono::steady_clock::now();
    const bool changed = p.run(graph);
    timings.push_back({p.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), changed});
    if (changed) Verify(graph, p.name);
    if (dump != nullptr) Dump(dump, graph, p.name, changed);
  }
  return timings;
}

}  // namespace sinter
