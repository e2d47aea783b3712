// The `sinter` program as a user meets it.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "sinter/sinter.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status = 0;
  std::string text;  // both streams
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::string(std::getenv("TEST_TMPDIR")) + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_);
  }
  // `before` is shell text: a cd, settings.
  static Outcome Shell(const std::string& before, const std::string& args) {
    static const std::string program = fs::absolute("cli/sinter").string();
    const std::string command = "( " + before + " '" + program + "' " + args + " ) 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    Outcome r;
    char line[1024];
    while (std::fgets(line, sizeof line, pipe)) r.text += line;
    const int status = pclose(pipe);
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return r;
  }
  Outcome Run(const std::string& args) const { return Shell("cd '" + folder_ + "' &&", args); }
  std::string folder_;
};

TEST_F(Cli, HelpAndVersion) {
  for (const char* args : {"--help", "help", "run --help", "inspect -h"}) {
    const Outcome r = Run(args);
    EXPECT_EQ(r.status, 0) << args;
    EXPECT_EQ(r.text.rfind("usage: sinter", 0), 0u) << r.text;
  }
  EXPECT_EQ(Run("--version").status, 0);
  EXPECT_EQ(Run("--version").text.rfind("sinter 0.", 0), 0u);
  EXPECT_EQ(Run("").status, 2);
  EXPECT_EQ(Run("bake").status, 2);
}

TEST_F(Cli, RunsASavedProgram) {
  auto f = to_static([](const Tensor& x) { return x * 2; }, {InputSpec({"n", 3}, kFloat32, "rows")}, {.numerics = Numerics::kExact});
  jit::save(f, folder_ + "/twice");
  save_npy(ones({2, 3}), folder_ + "/x.npy");
  for (const char* name : {"twice", "twice.sgraph"}) {
    const Outcome r = Run(std::string("run ") + name + " --input x.npy --output y.npy");
    EXPECT_EQ(r.status, 0) << r.text;
    EXPECT_EQ(load_npy(folder_ + "/y.npy").ToVector<float>(), std::vector<float>(6, 2));
  }
  EXPECT_EQ(Run("inspect twice.sgraph").status, 0);
}

TEST_F(Cli, ErrorsSpeakToWhoHasTheFilesOnly) {
  auto f = to_static([](const Tensor& x) { return x * 2; }, {InputSpec({"n", 3}, kFloat32, "rows")}, {.numerics = Numerics::kExact});
  jit::save(f, folder_ + "/twice");
  save_npy(ones({2, 4}), folder_ + "/wide.npy");
  save_npy(ones({3}), folder_ + "/flat.npy");
  save_npy(ones({2, 3}, kFloat64), folder_ + "/double.npy");
  struct Case {
    const char* args;
    const char* part;
  };
  for (const Case& c : {Case{"run nothing --input wide.npy", "No such file"}, Case{"run no/thing", "the folder does not exist: 'no'"},
                        Case{"run twice", "takes 1 inputs, got 0"}, Case{"run twice --input wide.npy", "dimension 1 must be 3; the program was saved for that size only"},
                        Case{"run twice --input flat.npy", "numbers of dimensions differ"}, Case{"run twice --input double.npy", "element types differ"},
                        Case{"run twice --frobnicate", "unknown argument"}}) {
    const Outcome r = Run(c.args);
    EXPECT_EQ(r.status, 1) << c.args;
    EXPECT_NE(r.text.find(c.part), std::string::npos) << r.text;
    EXPECT_EQ(r.text.find("\n  at "), std::string::npos) << r.text;
  }
}

TEST_F(Cli, UnverifiedTurnsNameTheOption) {
  auto f = to_static([](Tensor x) {
    while (x.sum() < 500) x = x + 1;
    return x;
  }, {InputSpec({1})}, {.numerics = Numerics::kExact});
  jit::save(f, folder_ + "/loop");
  save_npy(zeros({1}), folder_ + "/x.npy");
  const Outcome refused = Run("run loop --input x.npy");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.text.find("--allow-unverified-trips"), std::string::npos) << refused.text;
  EXPECT_EQ(refused.text.find("LoadOptions"), std::string::npos) << refused.text;
  EXPECT_EQ(Run("run loop --input x.npy --allow-unverified-trips").status, 0);
}

TEST_F(Cli, PathsUnderBazelRunAreTheCallers) {
  auto f = to_static([](const Tensor& x) { return x * 2; }, {InputSpec({1})}, {.numerics = Numerics::kExact});
  jit::save(f, folder_ + "/twice");
  save_npy(zeros({1}), folder_ + "/x.npy");
  const std::string own = folder_ + "/sinter.runfiles/sinter", other = folder_ + "/digits.runfiles/sinter", set = " && BUILD_WORKING_DIRECTORY='" + folder_ + "' ";
  fs::create_directories(own);
  fs::create_directories(other);
  const Outcome here = Shell("cd '" + own + "'" + set, "run twice --input x.npy");
  EXPECT_EQ(here.status, 0) << here.text;
  EXPECT_EQ(Shell("cd '" + other + "'" + set, "run twice --input x.npy").status, 1);
}

}  // namespace
}  // namespace sinter
