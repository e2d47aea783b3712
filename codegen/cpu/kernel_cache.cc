#include "sinter/codegen/cpu/kernel_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace sinter::codegen::cpu {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'S', 'I', 'N', 'T', 'K', 'R', 'N', '1'};

struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t bytes;
  uint64_t check[2];  // of key and bytes
};

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ x >> 32;
}

// Two 64-bit hashes of a text with different seeds; not meant against attackers, who could replace the code itself.
void Hash128(std::string_view text, uint64_t out[2]) {
  uint64_t a = 0x9e3779b97f4a7c15u, b = 0xc2b2ae3d27d4eb4fu;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    a = Mix(a ^ word);
    b = Mix(b + word * 0x165667b19e3779f9u);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, text.data() + i, text.size() - i);
  a = Mix(a ^ rest ^ static_cast<uint64_t>(text.size()) << 56);
  b = Mix(b + rest * 0x165667b19e3779f9u + text.size());
  out[0] = a;
  out[1] = b;
}

Header HeaderOf(std::string_view key, std::string_view bytes) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.key_bytes = key.size();
  h.bytes = bytes.size();
  uint64_t k[2], v[2];
  Hash128(key, k);
  Hash128(bytes, v);
  h.check[0] = Mix(k[0] ^ v[1]);
  h.check[1] = Mix(k[1] + v[0]);
  return h;
}

}  // namespace

std::string Fingerprint(std::string_view text) {
  uint64_t h[2];
  Hash128(text, h);
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(h[0]), static_cast<unsigned long long>(h[1]));
  return digits;
}

std::string KernelCacheFolder() {
  if (const char* dir = std::getenv("SINTER_CACHE_DIR")) return *dir == '\0' ? "" : std::string(dir) + "/kernels";
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir != nullptr && *dir != '\0') return std::string(dir) + "/sinter/kernels";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return std::string(home) + "/.cache/sinter/kernels";
  return "";
}

DiskCache::DiskCache(std::string folder, int64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

std::string DiskCache::PathOf(std::string_view key) const { return folder_ + "/" + Fingerprint(key) + ".bin"; }

std::optional<std::string> DiskCache::Load(std::string_view key, bool& damaged) const {
  damaged = false;
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(PathOf(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::string content(std::istreambuf_iterator<char>(file), {});
  damaged = true;
  Header h;
  if (content.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, content.data(), sizeof h);
  const size_t rest = content.size() - sizeof h;
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.key_bytes > rest || h.bytes != rest - h.key_bytes) return std::nullopt;
  const std::string_view stored_key(content.data() + sizeof h, h.key_bytes);
  const std::string_view bytes(content.data() + sizeof h + h.key_bytes, h.bytes);
  const Header want = HeaderOf(stored_key, bytes);
  if (std::memcmp(&h, &want, sizeof h) != 0 || stored_key != key) return std::nullopt;
  damaged = false;
  return std::string(bytes);
}

void DiskCache::Save(std::string_view key, std::string_view bytes) {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const std::string path = PathOf(key);
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    const Header h = HeaderOf(key, bytes);
    file.write(reinterpret_cast<const char*>(&h), sizeof h);
    file.write(key.data(), static_cast<std::streamsize>(key.size()));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      fs::remove(temporary, ignored);
      return;
    }
  }
  fs::rename(temporary, path, ignored);
  if (bytes_ >= 0) bytes_ += static_cast<int64_t>(sizeof(Header) + key.size() + bytes.size());
  if (bytes_ < 0 || bytes_ > max_bytes_) Trim();
}

// Counts the files; beyond the bound the least recently written ones go, down to three quarters of it.
void DiskCache::Trim() {
  struct File {
    fs::file_time_type time;
    int64_t size;
    fs::path path;
  };
  std::vector<File> files;
  std::error_code e;
  bytes_ = 0;
  for (fs::directory_iterator it(folder_, e), end; !e && it != end; it.increment(e)) {
    std::error_code gone;  // other processes may remove files
    const auto size = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    files.push_back({it->last_write_time(gone), size, it->path()});
    bytes_ += size;
  }
  if (bytes_ <= max_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& f : files) {
    if (bytes_ <= max_bytes_ / 4 * 3) break;
    fs::remove(f.path, e);
    bytes_ -= f.size;
  }
}

void DiskCache::Clear() {
  if (folder_.empty()) return;
  std::error_code e;
  for (fs::directory_iterator it(folder_, e), end; !e && it != end; it.increment(e))
    if (it->path().extension() == ".bin" || it->path().extension() == ".tmp") {
      std::error_code gone;
      fs::remove(it->path(), gone);
    }
  bytes_ = -1;
}

}  // namespace sinter::codegen::cpu
