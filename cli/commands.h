#pragma once

#include <string>
#include <vector>

namespace sinter::cli {

/// Commands of the `sinter` program: arguments after the command's name, exit status.
int Run(const std::vector<std::string>& args);
int Inspect(const std::vector<std::string>& args);
int Doctor(const std::vector<std::string>& args);

}  // namespace sinter::cli
