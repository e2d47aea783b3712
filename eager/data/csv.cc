#include "sinter/eager/data/csv.h"

#include <zlib.h>

#include <charconv>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::data {

std::vector<std::vector<double>> ReadCsv(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  if (file == nullptr) throw Error(ErrorCode::kNotFound, StrCat("can't read '", path, "'"));
  std::string text;
  char block[1 << 16];
  int n = 0;
  while ((n = gzread(file, block, sizeof block)) > 0) text.append(block, static_cast<size_t>(n));
  const bool damaged = n < 0;
  gzclose(file);
  if (damaged) throw Error(ErrorCode::kDataLoss, StrCat("'", path, "' is damaged: it can't be decompressed"));
  std::vector<std::vector<double>> rows;
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    std::vector<double> row;
    while (true) {
      double v = 0;
      auto [next, fault] = std::from_chars(p, end, v);
      if (fault != std::errc()) throw Error(ErrorCode::kDataLoss, StrCat("'", path, "', line ", rows.size() + 1, ", field ", row.size() + 1, " is no number"));
      row.push_back(v);
      p = next;
      if (p == end || *p != ',') break;
      ++p;
    }
    while (p < end && (*p == '\n' || *p == '\r')) ++p;
    if (!rows.empty() && row.size() != rows[0].size())
      throw Error(ErrorCode::kDataLoss, StrCat("'", path, "', line ", rows.size() + 1, " has ", row.size(), " fields, the first has ", rows[0].size()));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sinter::data
