#pragma once
// HDF5 files as global index ranges. Hides the C library's handles, its error stack and its one lock: HDF5 is not
// thread safe, so every function here holds `lock()` while it is in the library. Used by readers of data and by
// checkpoints.
#include "base/handles.hpp"
#include "base/types.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace soybean::io {

/// The lock of the library. Recursive, so that callers may hold it over several calls.
std::recursive_mutex& lock();

struct FileTraits {
  using Handle = std::int64_t; // hid_t
  static Handle null() { return -1; }
  static void release(Handle file) noexcept;
};

/// An open file; `path` is what errors call it.
struct File {
  Unique<FileTraits> handle;
  std::string path;
};

/// Throws Error naming the path when it is missing, unreadable, not HDF5 or truncated.
File open_read(const std::string& path);
/// Whether the file's structures hold checksums of themselves, so that the library finds damage in them instead of
/// following it. Those of `create` do, those of HDF5 before 1.8 and many of other programs do not. True too for what is
/// no readable HDF5 file: open_read says so.
bool is_checked(const std::string& path);
/// Creates (or replaces) a file. Throws Error(failed) when that can not be done.
File create(const std::string& path);
/// Flushes everything to the disk (fsync) and closes. Throws Error(failed) if not all of it got there.
void close_synced(File file);

enum class ElementClass : std::uint8_t { integer, real, other };

struct DatasetInfo {
  Shape shape;
  ElementClass element = ElementClass::other;
  std::int64_t element_bytes = 0;
};

/// Throws Error(failed) unless a file of that size could be written at `path` now, which must not exist or be of no
/// value: the library does not survive a disk that fills up under it. Leaves no file.
void check_room(const std::string& path, std::int64_t bytes);

/// Whether there is a group or dataset of that path. Throws Error naming file and object when damage hides it.
bool exists(const File& file, const std::string& name);
/// Throws Error naming file and object if there is no such dataset.
DatasetInfo dataset_info(const File& file, const std::string& name);
/// Names of the datasets directly in a group, sorted; empty if there is no such group.
std::vector<std::string> dataset_names(const File& file, const std::string& group);

/// Reads or writes the part `box` of a dataset, in row-major logical order in memory, converting to and from `type`.
/// Throws Error naming file and dataset: not there, another rank, box outside, not numbers, damaged.
void read_box(const File& file, const std::string& name, const Box& box, DType type, void* out);
void write_box(const File& file, const std::string& name, const Box& box, DType type, const void* data);

/// A new dataset without fill values; groups on the way are made. `type` as in memory, little endian.
void create_dataset(const File& file, const std::string& name, const Shape& shape, DType type);
/// A 1-d dataset of 64-bit unsigned integers (checksums).
void write_u64(const File& file, const std::string& name, const std::vector<std::uint64_t>& values);
std::vector<std::uint64_t> read_u64(const File& file, const std::string& name);

/// Attributes of the root group. Text is UTF-8 of any length, stored in pieces of fixed length: what goes beyond 32,000
/// bytes is in further attributes `<name>.2`, `<name>.3`, ….
void write_attribute(const File& file, const std::string& name, const std::string& text);
void write_attribute(const File& file, const std::string& name, std::int64_t value);
bool has_attribute(const File& file, const std::string& name);
/// Throw Error naming file and attribute when it is missing or of another kind (text of variable length too).
std::string read_text_attribute(const File& file, const std::string& name);
std::int64_t read_integer_attribute(const File& file, const std::string& name);
/// The same of a group or dataset, which must exist.
void write_attribute_of(const File& file, const std::string& object, const std::string& name, std::int64_t value);
std::int64_t read_integer_attribute_of(const File& file, const std::string& object, const std::string& name);

/// Checksum of all that the file says of itself: every attribute (name, type, value) but `but` of the root group, and
/// path, element type and shape of every dataset; not their elements. Throws Error naming what can not be read, or is
/// an attribute of another kind than those above.
std::uint64_t header_checksum(const File& file, const std::string& but);

} // namespace soybean::io
