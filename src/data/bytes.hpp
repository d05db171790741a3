#pragma once
// The bytes of a file, wherever they are: in the file, or in memory because it is small or was compressed. Used by the
// readers of plain files.
#include "base/handles.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace soybean::data {

/// So many bytes of a file are kept in memory rather than read when they are asked for.
constexpr std::int64_t kept_bytes = std::int64_t{256} << 20;

struct DescriptorTraits {
  using Handle = int;
  static Handle null() { return -1; }
  static void release(Handle descriptor) noexcept;
};

class Bytes {
public:
  /// A file, all of it in memory if it has at most `keep` bytes. Throws Error naming the path when it is missing, no
  /// file or unreadable.
  static Bytes open(const std::string& path, std::int64_t keep = kept_bytes);
  /// Bytes in memory; errors call them `name`.
  static Bytes of(std::string name, std::vector<std::byte> bytes);

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Throws Error naming the file when it has fewer bytes by now, or the disk fails. Thread safe.
  void read(std::int64_t offset, std::int64_t count, void* out) const;

private:
  std::string name_;
  std::int64_t size_ = 0;
  std::vector<std::byte> kept_; ///< empty: in the file
  Unique<DescriptorTraits> file_;
};

/// What a gzip file holds, in memory. Throws Error naming the path when it is missing, damaged or truncated.
Bytes gunzip(const std::string& path);

/// The file `path`, or `path`.gz unpacked where that is there instead.
Bytes open_maybe_packed(const std::string& path);

} // namespace soybean::data
