#include "data/bytes.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <zlib.h>

namespace soybean::data {

namespace {

std::string last_error() {
  return std::generic_category().message(errno);
}

struct GzipTraits {
  using Handle = gzFile;
  static Handle null() { return nullptr; }
  static void release(Handle file) noexcept { gzclose_r(file); }
};

} // namespace

void DescriptorTraits::release(Handle descriptor) noexcept {
  ::close(descriptor);
}

Bytes Bytes::open(const std::string& path, std::int64_t keep) {
  Bytes bytes;
  bytes.name_ = path;
  bytes.file_ = Unique<DescriptorTraits>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about;
  if (!bytes.file_ || fstat(bytes.file_.get(), &about) != 0)
    fail("{}: can not be opened, got '{}' expected a file that can be read", path, last_error());
  if (!S_ISREG(about.st_mode))
    fail("{}: got {} expected a file", path, S_ISDIR(about.st_mode) ? "a folder" : "no file");
  bytes.size_ = about.st_size;
  if (bytes.size_ > keep) return bytes;
  std::vector<std::byte> all(static_cast<std::size_t>(bytes.size_));
  bytes.read(0, bytes.size_, all.data());
  return of(path, std::move(all));
}

Bytes Bytes::of(std::string name, std::vector<std::byte> bytes) {
  Bytes result;
  result.name_ = std::move(name);
  result.size_ = static_cast<std::int64_t>(bytes.size());
  result.kept_ = std::move(bytes);
  return result;
}

void Bytes::read(std::int64_t offset, std::int64_t count, void* out) const {
  ensure(offset >= 0 && count >= 0 && offset <= size_ - count, "bytes outside a file");
  if (count == 0) return;
  if (!file_) {
    std::memcpy(out, kept_.data() + offset, static_cast<std::size_t>(count));
    return;
  }
  auto* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t got = pread(file_.get(), to, static_cast<std::size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("{}: can not be read at byte {}, got '{}' expected its bytes", name_, offset, last_error());
    if (got == 0)
      fail("{}: got an end at byte {} expected {} bytes. the file has become shorter since it was opened", name_,
           offset, size_);
    to += got;
    offset += got;
    count -= got;
  }
}

Bytes gunzip(const std::string& path) {
  const Bytes packed = Bytes::open(path, 0); // says what is wrong with the path
  if (packed.size() == 0) fail("{}: got an empty file expected one packed by gzip", path);
  Unique<GzipTraits> file(gzopen(path.c_str(), "rb"));
  if (!file) fail("{}: can not be opened, got '{}' expected a file that can be read", path, last_error());
  if (gzdirect(file.get())) fail("{}: got a file that is not packed by gzip expected one that is", path);
  std::vector<std::byte> all;
  std::int64_t used = 0;
  while (true) {
    constexpr unsigned piece = 1u << 20;
    if (static_cast<std::int64_t>(all.size()) - used < piece)
      all.resize(std::max(2 * all.size(), static_cast<std::size_t>(piece)));
    const int got = gzread(file.get(), all.data() + used, piece);
    if (got < 0 || (got == 0 && !gzeof(file.get()))) {
      int code = 0;
      const char* reason = gzerror(file.get(), &code);
      fail("{}: can not be unpacked, got '{}' expected a whole gzip file. it is damaged", path, reason);
    }
    used += got;
    if (got == 0) break;
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) fail("{}: got a gzip file that ends too early expected a whole one. it is truncated", path);
  all.resize(static_cast<std::size_t>(used));
  all.shrink_to_fit();
  return Bytes::of(path, std::move(all));
}

Bytes open_maybe_packed(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::exists(path) && fs::exists(path + ".gz")) return gunzip(path + ".gz");
  return Bytes::open(path);
}

} // namespace soybean::data
