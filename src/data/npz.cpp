// NumPy's .npz files: a zip archive of .npy files. Unpacked into memory.
#include "base/error.hpp"
#include "base/handles.hpp"
#include "data/npy.hpp"
#include "data/reader.hpp"

#include <utility>
#include <vector>
#include <zip.h>

namespace soybean::data {

namespace {

struct ArchiveTraits {
  using Handle = zip_t*;
  static Handle null() { return nullptr; }
  static void release(Handle archive) noexcept { zip_discard(archive); }
};
struct EntryTraits {
  using Handle = zip_file_t*;
  static Handle null() { return nullptr; }
  static void release(Handle entry) noexcept { zip_fclose(entry); }
};
using Archive = Unique<ArchiveTraits>;

Archive open_archive(const std::string& path) {
  const Bytes file = Bytes::open(path, 0); // says what is wrong with the path
  if (file.size() == 0) fail("{}: got an empty file expected a .npz file", path);
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail("{}: can not be opened, got '{}' expected a .npz file. it is truncated, damaged or another format", path,
       reason);
}

/// One member unpacked, its checksum compared; none if there is no such member.
std::optional<Bytes> unpack(const Archive& archive, const std::string& path, const std::string& member) {
  const zip_int64_t index = zip_name_locate(archive.get(), member.c_str(), 0);
  if (index < 0) return std::nullopt;
  const std::string name = path + ": " + member;
  const auto number = static_cast<zip_uint64_t>(index);
  const auto damaged = [&](const char* reason) {
    fail("{}: can not be unpacked, got '{}' expected a whole array. the file is damaged", name, reason);
  };
  zip_stat_t about;
  Unique<EntryTraits> entry(zip_fopen_index(archive.get(), number, 0));
  if (!entry || zip_stat_index(archive.get(), number, 0, &about) != 0) damaged(zip_strerror(archive.get()));
  std::vector<std::byte> bytes;
  while (true) { // in pieces: a damaged directory may promise any size
    constexpr std::size_t piece = std::size_t{1} << 20;
    const std::size_t used = bytes.size();
    bytes.resize(used + piece);
    const zip_int64_t got = zip_fread(entry.get(), bytes.data() + used, piece);
    if (got < 0) damaged(zip_file_strerror(entry.get()));
    bytes.resize(used + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  if (bytes.size() != about.size) damaged("another size than in its directory");
  return Bytes::of(name, std::move(bytes));
}

} // namespace

std::unique_ptr<Reader> make_npz_reader(const std::string& path, const Expected& expected) {
  const Archive archive = open_archive(path);
  return make_named_reader([&](const std::string& name) { return unpack(archive, path, name + ".npy"); }, path,
                           expected);
}

} // namespace soybean::data
