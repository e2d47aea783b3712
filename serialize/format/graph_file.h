#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter::format {

/// What a NAME.sgraph holds.
struct ProgramFile {
  std::vector<std::unique_ptr<Graph>> entries;
  std::string weights_sha256;
  std::string info;             ///< content of NAME.json
  uint64_t digest_seed = 0;
  std::string digest;           ///< empty: no certificate
};

/// The file's bytes, checksum included.
std::vector<std::byte> WriteProgram(const ProgramFile& program);
/// Reads and checks everything: the checksum, the structure, every index, op and type. A bad file is an Error and does nothing else.
ProgramFile ReadProgram(std::span<const std::byte> bytes, const std::string& name);

}  // namespace sinter::format
