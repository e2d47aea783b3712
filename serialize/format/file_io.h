#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sinter::format {

/// Writes the parts one after the other to a new file beside `path`, syncs it, and renames it to `path`: whoever opens `path` sees the old
/// file or the new one, never a part. On failure the old file is untouched and the Error says what failed and what to do.
void WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts);
void WriteFileAtomic(const std::string& path, std::string_view text);
/// Renames and syncs the folder.
void RenameFile(const std::string& from, const std::string& to);
bool FileExists(const std::string& path);
void RemoveFile(const std::string& path) noexcept;

/// The whole of a file of at most `limit` bytes.
std::string ReadFile(const std::string& path, size_t limit = size_t{1} << 31);

/// A file mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// SHA-256 as 64 hexadecimal digits.
std::string Sha256(std::span<const std::byte> bytes);
std::string Sha256(std::string_view text);

}  // namespace sinter::format
