#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sinter/graph/type.h"
#include "sinter/serialize/format/file_io.h"

/// The safetensors format: an 8-byte length, a JSON header, then the tensors' bytes, little-endian and row-major.
namespace sinter::format {

struct NamedTensor {
  std::string name;
  DType dtype = kFloat32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// The file's bytes. Tensors are laid out by name; every one starts at a multiple of its element size.
std::vector<std::byte> SafetensorsHeader(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata);
/// Writes atomically. Names that occur twice, or that the format keeps for itself, are an Error.
void WriteSafetensors(const std::string& path, std::vector<NamedTensor> tensors, const std::map<std::string, std::string>& metadata = {});

/// A file mapped for reading. Everything in the header is checked before any tensor is handed out; a bad file is an Error(kDataLoss).
class Safetensors {
 public:
  explicit Safetensors(const std::string& path);
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const NamedTensor* Find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }

 private:
  MappedFile file_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace sinter::format
