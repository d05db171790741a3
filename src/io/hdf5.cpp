#include "io/hdf5.hpp"

#include "base/error.hpp"
#include "io/checksum.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace soybean::io {

namespace {

template<herr_t (*close)(hid_t)>
struct CloseTraits {
  using Handle = hid_t;
  static Handle null() { return -1; }
  static void release(Handle h) noexcept { close(h); }
};
using Dataset = Unique<CloseTraits<H5Dclose>>;
using Space = Unique<CloseTraits<H5Sclose>>;
using Type = Unique<CloseTraits<H5Tclose>>;
using Group = Unique<CloseTraits<H5Gclose>>;
using AttributeHandle = Unique<CloseTraits<H5Aclose>>;
using Object = Unique<CloseTraits<H5Oclose>>;
using Properties = Unique<CloseTraits<H5Pclose>>;

/// Holds the lock and keeps the library from printing its error stack.
class Quiet {
public:
  Quiet() : hold_(lock()) {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

private:
  std::lock_guard<std::recursive_mutex> hold_;
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// The innermost message of the library's error stack. Any further call of the library clears it, the release of a
/// temporary handle too.
std::string reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
        auto& message = *static_cast<std::string*>(out);
        if (message.empty() && entry->desc) message = entry->desc;
        return 0;
      },
      &text);
  return text.empty() ? "an unknown fault" : text;
}

hid_t memory_type(DType type) {
  switch (type) {
  case DType::f32:
    return H5T_NATIVE_FLOAT;
  case DType::f64:
    return H5T_NATIVE_DOUBLE;
  case DType::i32:
    return H5T_NATIVE_INT32;
  }
  throw Bug("unknown DType");
}

hid_t file_type(DType type) {
  switch (type) {
  case DType::f32:
    return H5T_IEEE_F32LE;
  case DType::f64:
    return H5T_IEEE_F64LE;
  case DType::i32:
    return H5T_STD_I32LE;
  }
  throw Bug("unknown DType");
}

std::vector<hsize_t> sizes(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

Space make_space(const Shape& shape) {
  if (shape.empty()) return Space(H5Screate(H5S_SCALAR));
  const std::vector<hsize_t> extents = sizes(shape);
  return Space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

Dataset open_dataset(const File& file, const std::string& name) {
  if (!exists(file, name))
    fail("{}: {}, got no such dataset expected one. h5dump -H shows what the file holds", file.path, name);
  Dataset dataset(H5Dopen2(file.handle.get(), name.c_str(), H5P_DEFAULT));
  if (!dataset) fail("{}: {}, got something that is no readable dataset ({})", file.path, name, reason());
  return dataset;
}

Shape shape_of(const Space& space) {
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) return {};
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

/// The file space of a dataset with `box` selected.
Space select(const File& file, const std::string& name, const Dataset& dataset, const Box& box) {
  Space space(H5Dget_space(dataset.get()));
  const Shape shape = shape_of(space);
  ensure(shape.size() == box.offsets.size() && contains(whole(shape), box),
         fmt::format("{}: {}: box {} outside {}", file.path, name, to_string(box), to_string(shape)));
  if (shape.empty()) return space;
  if (empty(box))
    H5Sselect_none(space.get());
  else
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, sizes(box.offsets).data(), nullptr, sizes(box.extents).data(),
                        nullptr);
  return space;
}

Space memory_space(const Box& box) {
  Space space = make_space(box.extents);
  if (!box.extents.empty() && empty(box)) H5Sselect_none(space.get());
  return space;
}

/// Makes the groups on the way to `name`. (The library's own ones would hold the time of day.)
void make_groups(const File& file, const std::string& name) {
  for (std::size_t at = name.find('/', 1); at != std::string::npos; at = name.find('/', at + 1)) {
    const std::string path = name.substr(0, at);
    if (exists(file, path)) continue;
    const Properties options(H5Pcreate(H5P_GROUP_CREATE));
    H5Pset_obj_track_times(options.get(), false);
    const Group group(H5Gcreate2(file.handle.get(), path.c_str(), H5P_DEFAULT, options.get(), H5P_DEFAULT));
    if (!group) fail_running("{}: {}, can not be created ({}). is the disk full?", file.path, path, reason());
  }
}

Dataset new_dataset(const File& file, const std::string& name, const Shape& shape, hid_t type) {
  make_groups(file, name);
  const Properties layout(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER);
  H5Pset_alloc_time(layout.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_obj_track_times(layout.get(), false);
  const Space space = make_space(shape);
  Dataset dataset(
      H5Dcreate2(file.handle.get(), name.c_str(), type, space.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT));
  if (!dataset) fail_running("{}: {}, can not be created ({}). is the disk full?", file.path, name, reason());
  return dataset;
}

/// HDF5's own file locks fail on many network file systems, and a file is either being written by one rank or read.
Properties unlocked() {
  Properties access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), false, true);
  return access;
}

/// "FILE: attribute 'NAME'", and whose it is unless it is the file's.
std::string attribute_name(const File& file, const std::string& object, const std::string& name) {
  return fmt::format("{}: {}attribute '{}'", file.path, object == "/" ? "" : object + ", ", name);
}

Object open_object(const File& file, const std::string& name) {
  if (name != "/" && !exists(file, name)) fail("{}: {}, got no such object expected one", file.path, name);
  Object object(H5Oopen(file.handle.get(), name.c_str(), H5P_DEFAULT));
  if (!object) fail("{}: {}, can not be opened ({})", file.path, name, reason());
  return object;
}

AttributeHandle open_attribute(const File& file, const std::string& object, const std::string& name) {
  const Object owner = open_object(file, object);
  const htri_t there = H5Aexists(owner.get(), name.c_str());
  if (there < 0)
    fail("{} can not be looked up ({}). the file is damaged", attribute_name(file, object, name), reason());
  if (there == 0) fail("{}, got none expected one", attribute_name(file, object, name));
  AttributeHandle attribute(H5Aopen(owner.get(), name.c_str(), H5P_DEFAULT));
  if (!attribute) fail("{} can not be read ({})", attribute_name(file, object, name), reason());
  return attribute;
}

void write_scalar(const File& file, const std::string& object, const std::string& name, hid_t type, const void* data) {
  const Object owner = open_object(file, object);
  const Space space(H5Screate(H5S_SCALAR));
  AttributeHandle attribute(H5Acreate2(owner.get(), name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute || H5Awrite(attribute.get(), type, data) < 0)
    fail_running("{} can not be written ({})", attribute_name(file, object, name), reason());
}

std::vector<std::string> links_of(const File& file, const std::string& group) {
  const Group handle(H5Gopen2(file.handle.get(), group.c_str(), H5P_DEFAULT));
  if (!handle) fail("{}: {}, got something that is no group", file.path, group);
  std::vector<std::string> names;
  hsize_t at = 0;
  const herr_t status = H5Literate(
      handle.get(), H5_INDEX_NAME, H5_ITER_INC, &at,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  if (status < 0) fail("{}: {}, can not be listed ({}). the file is damaged", file.path, group, reason());
  return names;
}

std::vector<std::string> attributes_of(const File& file, const Object& owner, const std::string& object) {
  std::vector<std::string> names;
  hsize_t at = 0;
  const herr_t status = H5Aiterate2(
      owner.get(), H5_INDEX_NAME, H5_ITER_INC, &at,
      [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  if (status < 0)
    fail("{}: {}, its attributes can not be listed ({}). the file is damaged", file.path, object, reason());
  return names;
}

constexpr std::size_t longest_text = 32'000; ///< of one attribute: the library allows 64 KiB with all that goes with it

/// What an attribute holds as bytes, just as in the file. Only numbers and text of fixed length: what of variable
/// length is elsewhere in the file, where the library trusts it blindly.
std::string attribute_bytes(const File& file, const std::string& object, const std::string& name) {
  const AttributeHandle attribute = open_attribute(file, object, name);
  const Type type(H5Aget_type(attribute.get()));
  const Space space(H5Aget_space(attribute.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  const bool plain =
      kind == H5T_INTEGER || kind == H5T_FLOAT || (kind == H5T_STRING && !H5Tis_variable_str(type.get()));
  const std::size_t bytes = H5Tget_size(type.get());
  if (!plain || H5Sget_simple_extent_npoints(space.get()) != 1 || bytes == 0 || bytes > 2 * longest_text)
    fail("{}, got another kind expected a number or text of fixed length", attribute_name(file, object, name));
  std::string value(bytes, '\0');
  if (H5Aread(attribute.get(), type.get(), value.data()) < 0)
    fail("{} can not be read ({}). the file is damaged", attribute_name(file, object, name), reason());
  return fmt::format("{} {} {}", static_cast<int>(kind), bytes, value);
}

/// Adds to `text` what `header_checksum` sums up of an object and those below it.
void describe(const File& file, const std::string& object, const std::string& but, int depth, std::string& text) {
  if (depth > 8) fail("{}: {}, got groups in groups without an end. the file is damaged", file.path, object);
  const Object handle = open_object(file, object);
  text += object + '\0';
  for (const std::string& name : attributes_of(file, handle, object))
    if (object != "/" || name != but)
      text.append(name).append(1, '\0').append(attribute_bytes(file, object, name)).append(1, '\0');
  if (H5Iget_type(handle.get()) == H5I_DATASET) {
    const DatasetInfo info = dataset_info(file, object);
    text += fmt::format("{} {} {}", static_cast<int>(info.element), info.element_bytes, to_string(info.shape)) + '\0';
  } else
    for (const std::string& name : links_of(file, object))
      describe(file, object == "/" ? name : fmt::format("{}/{}", object, name), but, depth + 1, text);
}

/// The attribute that holds the n-th part of a long text.
std::string part_name(const std::string& name, std::size_t part) {
  return part == 0 ? name : fmt::format("{}.{}", name, part + 1);
}

} // namespace

std::recursive_mutex& lock() {
  static std::recursive_mutex mutex; // of the library itself, which is one per process
  // Nothing is left for the end of the program to close but files that could not be written, of which it would
  // complain.
  [[maybe_unused]] static const herr_t no_complaint = H5dont_atexit();
  return mutex;
}

void FileTraits::release(Handle file) noexcept {
  const Quiet quiet;
  H5Fclose(file);
}

File open_read(const std::string& path) {
  const Quiet quiet;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("{}: got a folder expected an HDF5 file. check the path", path);
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  if (descriptor < 0)
    fail("{}: can not be opened, got '{}' expected a readable HDF5 file. check the path", path, std::strerror(errno));
  ::close(descriptor);
  const Properties access = unlocked();
  File file{Unique<FileTraits>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())), path};
  if (!file.handle)
    fail("{}: can not be read as HDF5, got '{}' expected a whole HDF5 file. it may be damaged, truncated or of another "
         "kind",
         path, reason());
  return file;
}

File create(const std::string& path) {
  const Quiet quiet;
  const Properties access = unlocked(), options(H5Pcreate(H5P_FILE_CREATE));
  // Since HDF5 1.8 its structures can hold checksums of themselves. Attributes beside the objects they are of, in
  // heaps, would go without where they are long.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_attr_phase_change(options.get(), 65535, 0);
  H5Pset_obj_track_times(options.get(), false);
  File file{Unique<FileTraits>(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, options.get(), access.get())), path};
  if (!file.handle) fail_running("{}: can not be created ({})", path, reason());
  return file;
}

void close_synced(File file) {
  const Quiet quiet;
  const std::string path = file.path;
  const bool flushed = H5Fflush(file.handle.get(), H5F_SCOPE_GLOBAL) >= 0;
  const std::string why = flushed ? "" : reason();
  file.handle.reset();
  if (!flushed) fail_running("{}: can not be written ({}). is the disk full?", path, why);
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  int status = -1;
  if (descriptor >= 0) do
      status = ::fsync(descriptor);
    while (status != 0 && errno == EINTR);
  const bool synced = status == 0;
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) fail_running("{}: can not be brought to the disk, got '{}'", path, std::strerror(code));
}

void check_room(const std::string& path, std::int64_t bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (descriptor < 0) fail_running("{}: can not be created, got '{}'", path, std::strerror(errno));
  int status = -1;
  do status = ::fallocate(descriptor, 0, 0, bytes);
  while (status != 0 && errno == EINTR);
  const int code = status == 0 ? 0 : errno;
  ::close(descriptor);
  ::unlink(path.c_str());
  // File systems that can not set room aside are asked how much there is.
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const auto space = std::filesystem::space(folder.empty() ? "." : folder, error);
  const bool cannot_tell = code == EOPNOTSUPP || code == ENOSYS;
  if (code == 0 || (cannot_tell && (error || space.available >= static_cast<std::uintmax_t>(bytes)))) return;
  fail_running("{}: can not be written, got '{}' expected room for {} bytes. free some space or choose another run.dir",
               path, cannot_tell ? "too little free space" : std::strerror(code), bytes);
}

bool is_checked(const std::string& path) {
  std::array<char, 9> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  return std::string_view(head.data(), signature.size()) != signature || head[8] >= 2;
}

bool exists(const File& file, const std::string& name) {
  const Quiet quiet;
  const auto found = [&](htri_t answer) {
    if (answer < 0)
      fail("{}: {}, can not be looked up ({}). the file is damaged, or something on the way there is no group",
           file.path, name, reason());
    return answer > 0;
  };
  for (std::size_t at = name.find('/', 1); at != std::string::npos; at = name.find('/', at + 1))
    if (!found(H5Lexists(file.handle.get(), name.substr(0, at).c_str(), H5P_DEFAULT))) return false;
  return found(H5Lexists(file.handle.get(), name.c_str(), H5P_DEFAULT)) &&
         found(H5Oexists_by_name(file.handle.get(), name.c_str(), H5P_DEFAULT));
}

DatasetInfo dataset_info(const File& file, const std::string& name) {
  const Quiet quiet;
  const Dataset dataset = open_dataset(file, name);
  const Space space(H5Dget_space(dataset.get()));
  const Type type(H5Dget_type(dataset.get()));
  if (!space || !type)
    fail("{}: {}, its shape and type can not be read ({}). the file is damaged", file.path, name, reason());
  DatasetInfo info;
  info.shape = shape_of(space);
  info.element_bytes = static_cast<std::int64_t>(H5Tget_size(type.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  info.element = kind == H5T_INTEGER ? ElementClass::integer
                 : kind == H5T_FLOAT ? ElementClass::real
                                     : ElementClass::other;
  return info;
}

std::vector<std::string> dataset_names(const File& file, const std::string& group) {
  const Quiet quiet;
  return exists(file, group) ? links_of(file, group) : std::vector<std::string>();
}

void read_box(const File& file, const std::string& name, const Box& box, DType type, void* out) {
  const Quiet quiet;
  const Dataset dataset = open_dataset(file, name);
  const Space from = select(file, name, dataset, box), to = memory_space(box);
  if (empty(box)) return;
  if (H5Dread(dataset.get(), memory_type(type), to.get(), from.get(), H5P_DEFAULT, out) < 0)
    fail("{}: {}, can not be read ({}). the file is damaged or holds no numbers there", file.path, name, reason());
}

void write_box(const File& file, const std::string& name, const Box& box, DType type, const void* data) {
  const Quiet quiet;
  const Dataset dataset = open_dataset(file, name);
  const Space to = select(file, name, dataset, box), from = memory_space(box);
  if (empty(box)) return;
  if (H5Dwrite(dataset.get(), memory_type(type), from.get(), to.get(), H5P_DEFAULT, data) < 0)
    fail_running("{}: {}, can not be written ({}). is the disk full?", file.path, name, reason());
}

void create_dataset(const File& file, const std::string& name, const Shape& shape, DType type) {
  const Quiet quiet;
  new_dataset(file, name, shape, file_type(type));
}

void write_u64(const File& file, const std::string& name, const std::vector<std::uint64_t>& values) {
  const Quiet quiet;
  const Dataset dataset = new_dataset(file, name, {static_cast<std::int64_t>(values.size())}, H5T_STD_U64LE);
  if (values.empty()) return;
  if (H5Dwrite(dataset.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    fail_running("{}: {}, can not be written ({}). is the disk full?", file.path, name, reason());
}

std::vector<std::uint64_t> read_u64(const File& file, const std::string& name) {
  const Quiet quiet;
  const DatasetInfo info = dataset_info(file, name);
  if (info.shape.size() != 1 || info.element != ElementClass::integer)
    fail("{}: {}, got {} expected a list of integers", file.path, name, to_string(info.shape));
  std::vector<std::uint64_t> values(static_cast<std::size_t>(info.shape[0]));
  const Dataset dataset = open_dataset(file, name);
  if (!values.empty() && H5Dread(dataset.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    fail("{}: {}, can not be read ({}). the file is damaged", file.path, name, reason());
  return values;
}

void write_attribute(const File& file, const std::string& name, const std::string& text) {
  const Quiet quiet;
  for (std::size_t part = 0; part == 0 || part * longest_text < text.size(); ++part) {
    const std::string value = text.substr(part * longest_text, longest_text);
    const Type type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), std::max<std::size_t>(1, value.size()));
    H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    write_scalar(file, "/", part_name(name, part), type.get(), value.c_str());
  }
}

void write_attribute(const File& file, const std::string& name, std::int64_t value) {
  write_attribute_of(file, "/", name, value);
}

void write_attribute_of(const File& file, const std::string& object, const std::string& name, std::int64_t value) {
  const Quiet quiet;
  write_scalar(file, object, name, H5T_NATIVE_INT64, &value);
}

bool has_attribute(const File& file, const std::string& name) {
  const Quiet quiet;
  const htri_t there = H5Aexists(file.handle.get(), name.c_str());
  if (there < 0) fail("{} can not be looked up ({}). the file is damaged", attribute_name(file, "/", name), reason());
  return there > 0;
}

std::string read_text_attribute(const File& file, const std::string& name) {
  const Quiet quiet;
  std::string text;
  for (std::size_t part = 0; part == 0 || has_attribute(file, part_name(name, part)); ++part) {
    const AttributeHandle attribute = open_attribute(file, "/", part_name(name, part));
    const Type type(H5Aget_type(attribute.get()));
    const Space space(H5Aget_space(attribute.get()));
    const std::size_t bytes = H5Tget_size(type.get());
    if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) || bytes > 2 * longest_text ||
        H5Sget_simple_extent_npoints(space.get()) != 1)
      fail("{}, got another kind expected text of fixed length", attribute_name(file, "/", name));
    std::string value(bytes, '\0');
    if (H5Aread(attribute.get(), type.get(), value.data()) < 0)
      fail("{} can not be read ({})", attribute_name(file, "/", name), reason());
    text += value.substr(0, value.find('\0'));
  }
  return text;
}

std::uint64_t header_checksum(const File& file, const std::string& but) {
  const Quiet quiet;
  std::string text;
  describe(file, "/", but, 0, text);
  return checksum(std::as_bytes(std::span(text)));
}

std::int64_t read_integer_attribute(const File& file, const std::string& name) {
  return read_integer_attribute_of(file, "/", name);
}

std::int64_t read_integer_attribute_of(const File& file, const std::string& object, const std::string& name) {
  const Quiet quiet;
  const AttributeHandle attribute = open_attribute(file, object, name);
  const Type type(H5Aget_type(attribute.get()));
  const Space space(H5Aget_space(attribute.get()));
  std::int64_t value = 0;
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0)
    fail("{}, got another kind expected an integer", attribute_name(file, object, name));
  return value;
}

} // namespace soybean::io
