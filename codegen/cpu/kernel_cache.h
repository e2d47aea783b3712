#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// Machine code on disk, by name. Entries are checksummed: a damaged or foreign one counts as missing. Files are written beside their
/// place and renamed, so that readers in other processes see whole entries; the oldest go when the folder grows too large.
namespace sinter::codegen::cpu {

class DiskCache {
 public:
  /// `folder` empty: nothing is kept. `max_bytes` bounds the sum of the files.
  explicit DiskCache(std::string folder, int64_t max_bytes = int64_t{256} << 20);

  /// The bytes stored under a key; nothing if there are none. `damaged` tells whether a file was there but wrong.
  std::optional<std::string> Load(std::string_view key, bool& damaged) const;
  /// Keeps bytes under a key. A folder that cannot be written is no error: the cache is only there to save time.
  void Save(std::string_view key, std::string_view bytes);
  void Clear();
  const std::string& folder() const { return folder_; }
  /// The file of a key.
  std::string PathOf(std::string_view key) const;

 private:
  void Trim();

  std::string folder_;
  int64_t max_bytes_;
  int64_t bytes_ = -1;  // of all files, as far as known; -1: not counted yet
};

/// $SINTER_CACHE_DIR/kernels, else $XDG_CACHE_HOME/sinter/kernels, else ~/.cache/sinter/kernels; "" if there is no such place or
/// SINTER_CACHE_DIR is empty.
std::string KernelCacheFolder();

/// 128 bits of a text, as 32 hexadecimal digits.
std::string Fingerprint(std::string_view text);

}  // namespace sinter::codegen::cpu
