#pragma once

#include <string>
#include <vector>

namespace sinter::data {

/// Rows of numbers of a comma-separated file, gzip-compressed or plain. Rows of different length and fields that are no numbers are an Error
/// that names the line.
std::vector<std::vector<double>> ReadCsv(const std::string& path);

}  // namespace sinter::data
