// Plain C++ control flow as a graph: a while with an if inside runs eagerly, is captured, compiled, saved, and gives the same results
// when another process loads it.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "sinter/sinter.h"

using namespace sinter;

namespace {

Tensor refine(Tensor x, const Tensor& target) {
  while ((x - target).abs().max() > 1e-3f) {
    if (x.sum() > 0) x = x * 0.5f;
    else x = x + 1.0f;
  }
  return x;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.ToVector<float>() == b.ToVector<float>();
}

struct Input {
  Tensor x, target;
};

Input MakeInput(int64_t n, double scale) {
  Generator generator(7);
  return {generator.uniform({n}, 0, scale), zeros({n})};
}

int Serve(const std::string& name) {
  auto loaded = jit::load(name, {.unverified_trips = UnverifiedTrips::kAllow});
  for (int64_t n : {0, 1, 7, 1000})
    for (double scale : {1e-4, 1.0, 50.0}) {
      Input in = MakeInput(n, scale);
      if (!SameBits(loaded(in.x, in.target), refine(in.x, in.target))) {
        std::printf("loaded program differs at n = %lld, scale %g\n", static_cast<long long>(n), scale);
        return 1;
      }
    }
  std::puts("another process: the loaded program gives the same bits");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--serve") return Serve(argv[2]);
  auto compiled = to_static(refine, {InputSpec({"n"}), InputSpec({"n"})}, {.numerics = Numerics::kExact, .name = "refine"});
  for (int64_t n : {0, 1, 7, 1000})
    for (double scale : {1e-4, 1.0, 50.0}) {
      Input in = MakeInput(n, scale);
      const bool same = SameBits(compiled(in.x, in.target), refine(in.x, in.target));
      std::printf("n = %4lld, start up to %6g: %s\n", static_cast<long long>(n), scale, same ? "compiled = eager, bit for bit" : "DIFFERENT");
      if (!same) return 1;
    }
  std::printf("\n%s\n%s\n", Print(compiled.graph(), true).c_str(), compiled.explain().c_str());
  const char* folder = std::getenv("TMPDIR");
  const std::string name = std::string(folder ? folder : "/tmp") + "/refine";
  jit::save(compiled, name);
  std::printf("saved %s.sgraph\n", name.c_str());
  std::fflush(stdout);
  return std::system((std::string(argv[0]) + " --serve " + name).c_str()) == 0 ? 0 : 1;
}
