#include "sinter/graph/strings.h"
#include "examples/digits/net.h"

namespace digits {

using namespace sinter;

Data ReadDigits(const std::string& path) {
  const std::vector<std::vector<double>> rows = data::ReadCsv(path);
  if (rows.size() != 1797 || rows[0].size() != 65)
    throw Error(ErrorCode::kDataLoss, StrCat("'", path, "' is not the digits file: ", rows.size(), " rows, expected 1797 of 65 numbers"));
  // A fixed order: the file is grouped by writer.
  const std::vector<int64_t> order = Generator(2024).permutation(1797);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (int64_t i : order) {
    const std::vector<double>& row = rows[static_cast<size_t>(i)];
    for (int k = 0; k < 64; ++k) pixels.push_back(static_cast<float>(row[static_cast<size_t>(k)] / 16));
    labels.push_back(static_cast<int64_t>(row[64]));
  }
  const Tensor x = from_vector(pixels, Shape{1797, 1, 8, 8}), y = from_vector(labels);
  return {x.slice(0, 0, 1437).clone(), y.slice(0, 0, 1437).clone(), x.slice(0, 1437, 1797).clone(), y.slice(0, 1437, 1797).clone()};
}

}  // namespace digits
