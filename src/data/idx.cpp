// IDX files, the format of MNIST (Y. LeCun): two zero bytes, a byte for the type, one for the number of dims, the dims
// as big-endian 32-bit integers, then the elements in row-major order, most significant byte first. A folder with four
// of them, each plain or packed by gzip: inputs and labels to train and to validate with.
#include "base/error.hpp"
#include "data/array_reader.hpp"
#include "data/reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace soybean::data {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t most_dims = 8;

std::optional<Element> element_of(int code) {
  switch (code) {
  case 0x08:
    return Element::u8;
  case 0x09:
    return Element::i8;
  case 0x0B:
    return Element::i16;
  case 0x0C:
    return Element::i32;
  case 0x0D:
    return Element::f32;
  case 0x0E:
    return Element::f64;
  default:
    return std::nullopt;
  }
}

/// The array of a file with its shape without the first dim.
std::pair<Array, Shape> open_idx(const std::string& path) {
  const bool packed = path.ends_with(".gz");
  Array array{.bytes = packed ? gunzip(path) : Bytes::open(path), .swapped = true};
  const auto header = [&](std::int64_t offset, std::int64_t count, void* out) {
    if (offset + count > array.bytes.size())
      fail("{}: got {} bytes expected an IDX file, whose header is longer. it is truncated", path, array.bytes.size());
    array.bytes.read(offset, count, out);
  };
  std::array<unsigned char, 4> magic{};
  header(0, 4, magic.data());
  const std::optional<Element> element = element_of(magic[2]);
  const std::int64_t dims = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || !element || dims < 1 || dims > most_dims)
    fail("{}: its first bytes, got {:02x} {:02x} {:02x} {:02x} expected those of an IDX file (00 00, a type, 1 to {} "
         "dims). {}",
         path, magic[0], magic[1], magic[2], magic[3], most_dims,
         magic[0] == 0x1f && magic[1] == 0x8b ? "it is packed by gzip: its name has to end in .gz"
                                              : "it is another format, or damaged");
  array.element = *element;
  array.offset = 4 + 4 * dims;
  Shape shape;
  for (std::int64_t d = 0; d < dims; ++d) {
    std::array<unsigned char, 4> b{};
    header(4 + 4 * d, 4, b.data());
    shape.push_back(std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]);
  }
  double elements = static_cast<double>(size_of(array.element));
  for (std::int64_t extent : shape) elements *= static_cast<double>(extent);
  const double all = elements + static_cast<double>(array.offset);
  if (all != static_cast<double>(array.bytes.size()))
    fail("{}: got {} bytes{} expected {:.0f}, for shape {}. it is {}", path, array.bytes.size(),
         packed ? " unpacked" : "", all, to_string(shape),
         static_cast<double>(array.bytes.size()) < all ? "truncated" : "damaged or another format");
  array.count = shape.front();
  shape.erase(shape.begin());
  array.stride = volume(shape) * size_of(array.element);
  return {std::move(array), std::move(shape)};
}

/// The one file of the folder whose name has one of these words and the other word in it, "" without one. A plain file
/// goes before a packed one of the same name.
std::string find_idx(const std::vector<std::string>& names, const std::vector<std::string_view>& splits,
                     std::string_view content, const std::string& folder) {
  std::vector<std::string> found;
  const bool training = splits.front() == "train";
  for (const std::string& name : names) {
    if (!training && name.find("train") != std::string::npos) continue;
    const bool of_split = std::any_of(splits.begin(), splits.end(),
                                      [&](std::string_view split) { return name.find(split) != std::string::npos; });
    if (!of_split || name.find(content) == std::string::npos || name.find("idx") == std::string::npos) continue;
    if (name.ends_with(".gz") && std::find(names.begin(), names.end(), name.substr(0, name.size() - 3)) != names.end())
      continue;
    found.push_back(name);
  }
  if (found.size() > 1)
    fail("{}: got {} and {} expected one file of {} for \"{}\". give each data set a folder of its own", folder,
         found[0], found[1], content, splits.front());
  return found.empty() ? "" : folder + "/" + found.front();
}

ArraySplit open_split(const std::string& inputs, const std::string& labels, const Expected& expected) {
  ArraySplit split;
  auto [array, shape] = open_idx(inputs);
  make_fit(array, shape, expected.sample);
  split.pieces.push_back(std::move(array));
  auto [classes, inner] = open_idx(labels);
  if (!is_integer(classes.element) || !inner.empty())
    fail("{}: got {} of {} dims expected a list of integers", labels,
         is_integer(classes.element) ? "integers" : "reals", inner.size() + 1);
  split.labels = read_integers(classes);
  split.labels_name = labels;
  return split;
}

} // namespace

std::unique_ptr<Reader> make_idx_reader(const std::string& folder, const Expected& expected) {
  if (!fs::is_directory(folder))
    fail("{}: got {} expected a folder of IDX files", folder, fs::exists(folder) ? "a file" : "nothing");
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  const auto open = [&](const std::vector<std::string_view>& splits, bool required) -> ArraySplit {
    const std::string inputs = find_idx(names, splits, "images", folder);
    const std::string labels = find_idx(names, splits, "labels", folder);
    if (!required && inputs.empty() && labels.empty()) return {};
    for (const auto& [path, content] : {std::pair(&inputs, "images"), std::pair(&labels, "labels")})
      if (path->empty())
        fail("{}: got no file of {} for \"{}\" expected one named like {}-{}-idx{}-ubyte, or that with .gz", folder,
             content, splits.front(), splits.front(), content, std::string_view(content) == "images" ? 3 : 1);
    return open_split(inputs, labels, expected);
  };
  ArraySplit train = open({"train"}, true);
  return make_array_reader(std::move(train), open({"t10k", "test", "validation", "val"}, false), expected);
}

} // namespace soybean::data
