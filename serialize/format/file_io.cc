#include "sinter/serialize/format/file_io.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::format {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

enum class Access : uint8_t { kRead, kWrite };

[[noreturn]] void Fail(std::string_view what, const std::string& path, Access access, int error) {
  std::string remedy;
  if (error == ENOSPC || error == EDQUOT) remedy = "; free some space and try again";
  if (error == EACCES || error == EPERM || error == EROFS) remedy = access == Access::kRead ? "; you may not read it: change its permissions" : "; choose a folder that may be written";
  struct stat status;
  if (error == ENOTDIR || (error == ENOENT && stat(FolderOf(path).c_str(), &status) != 0)) remedy = StrCat("; the folder does not exist: '", FolderOf(path), "'");
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound
                         : error == ENOSPC || error == EDQUOT || error == ENOMEM ? ErrorCode::kResourceExhausted
                         : error == EACCES || error == EPERM || error == EROFS   ? ErrorCode::kPermissionDenied
                                                                                 : ErrorCode::kUnavailable;
  throw Error(code, StrCat(what, " '", path, "': ", std::strerror(error), remedy));
}

void SyncFolder(const std::string& path) {
  const int fd = open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename itself has succeeded
  fsync(fd);
  close(fd);
}

}  // namespace

void WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const std::string temporary = StrCat(path, ".tmp.", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) Fail("can't write", path, Access::kWrite, errno);
  auto fail = [&](int error) {
    close(fd);
    unlink(temporary.c_str());
    Fail("can't write", path, Access::kWrite, error);
  };
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t n = write(fd, part.data(), std::min<size_t>(part.size(), size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      part = part.subspan(static_cast<size_t>(n));
    }
  }
  if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS) fail(errno);
  if (close(fd) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    Fail("can't write", path, Access::kWrite, error);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    Fail("can't write", path, Access::kWrite, error);
  }
  SyncFolder(path);
}

void WriteFileAtomic(const std::string& path, std::string_view text) {
  const std::span<const std::byte> part(reinterpret_cast<const std::byte*>(text.data()), text.size());
  WriteFileAtomic(path, std::span(&part, 1));
}

void RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) Fail("can't rename to", to, Access::kWrite, errno);
  SyncFolder(to);
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
void RemoveFile(const std::string& path) noexcept { unlink(path.c_str()); }

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) Fail("can't read", path, Access::kRead, errno);
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    const int error = S_ISDIR(st.st_mode) ? EISDIR : errno ? errno : EINVAL;
    close(fd);
    Fail("can't read", path, Access::kRead, error);
  }
  size_ = static_cast<size_t>(st.st_size);
  if (size_ > 0) {
    void* p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    close(fd);
    if (p == MAP_FAILED) Fail("can't map", path, Access::kRead, error);
    data_ = static_cast<const std::byte*>(p);
  } else {
    close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

std::string ReadFile(const std::string& path, size_t limit) {
  MappedFile file(path);
  if (file.bytes().size() > limit) throw Error(ErrorCode::kDataLoss, StrCat("'", path, "' has ", file.bytes().size(), " bytes, more than the ", limit, " expected"));
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string Sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  SINTER_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string Sha256(std::string_view text) { return Sha256({reinterpret_cast<const std::byte*>(text.data()), text.size()}); }

}  // namespace sinter::format
