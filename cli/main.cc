#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "sinter/cli/commands.h"
#include "sinter/graph/error.h"
#include "sinter/graph/version.h"

namespace {

constexpr char kUsage[] =
    "usage: sinter COMMAND ...\n"
    "  run NAME --input FILE.npy [--input ...] [--labels FILE.npy] [--output FILE.npy] [--allow-unverified-trips] [--interpret]\n"
    "      runs the saved program NAME (NAME.sgraph, NAME.safetensors) and prints result types and digests;\n"
    "      with labels: the accuracy of result 0 as scores [n, classes]; with output: writes result 0\n"
    "      --allow-unverified-trips: loops may run more turns than were compared with the source\n"
    "      --interpret: no code generation\n"
    "  inspect NAME\n"
    "      prints what the program takes, gives and holds, and its graph\n"
    "  doctor\n"
    "      says what was found on this machine and checks that it computes\n"
    "  --help, --version\n";

// `bazel run` starts programs elsewhere; paths are meant from where the user stands. Another program that `bazel run` started, and that
// calls this one, means its own folder.
void EnterUsersFolder() {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  char here[4096];
  if (folder == nullptr || getcwd(here, sizeof here) == nullptr || std::string_view(here).find("/sinter.runfiles") == std::string_view::npos) return;
  if (chdir(folder) != 0) std::perror(folder);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  EnterUsersFolder();
  if (!args.empty() && (args[0] == "--version" || args[0] == "version")) {
    std::printf("sinter %s\n", sinter::kVersion);
    return 0;
  }
  for (const std::string& a : args)
    if (a == "--help" || a == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
  if (args.empty() || args[0] == "--help" || args[0] == "help") {
    std::fputs(kUsage, args.empty() ? stderr : stdout);
    return args.empty() ? 2 : 0;
  }
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  try {
    if (args[0] == "run") return sinter::cli::Run(rest);
    if (args[0] == "inspect") return sinter::cli::Inspect(rest);
    if (args[0] == "doctor") return sinter::cli::Doctor(rest);
    std::fprintf(stderr, "sinter: unknown command '%s'\n%s", args[0].c_str(), kUsage);
    return 2;
  } catch (const sinter::Error& e) {
    std::fprintf(stderr, "sinter: %s\n", e.message().c_str());  // its line is one of this program
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sinter: %s\n", e.what());
    return 1;
  }
}
