// NumPy's .npy files (NEP 1): a magic, a version, a header that is a Python dict, then the elements. A folder with the
// arrays train_inputs.npy, train_labels.npy, and validation_inputs.npy, validation_labels.npy where there is
// validation.
#include "data/npy.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace soybean::data {

namespace {

constexpr std::size_t most_dims = 8;

/// The header's dict, as far as it is needed.
class Header {
public:
  Header(std::string text, const std::string& name) : text_(std::move(text)), name_(name) {}

  /// What follows `'key':`, without leading blanks.
  std::string_view value(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = quote + std::string(key) + quote;
      std::size_t at = text_.find(quoted);
      if (at == std::string::npos) continue;
      at = text_.find_first_not_of(' ', at + quoted.size());
      if (at == std::string::npos || text_[at] != ':') break;
      at = text_.find_first_not_of(' ', at + 1);
      if (at != std::string::npos) return std::string_view(text_).substr(at);
    }
    damaged();
  }

  Shape shape() const {
    std::string_view rest = value("shape");
    if (rest.empty() || rest[0] != '(') damaged();
    rest.remove_prefix(1);
    Shape shape;
    while (!rest.empty() && rest[0] != ')') {
      if (rest[0] == ' ' || rest[0] == ',' || rest[0] == 'L') {
        rest.remove_prefix(1);
        continue;
      }
      std::int64_t number = 0;
      std::size_t digits = 0;
      for (; digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits])); ++digits) {
        if (digits == 18) damaged();
        number = 10 * number + (rest[digits] - '0');
      }
      if (digits == 0 || shape.size() == most_dims) damaged();
      shape.push_back(number);
      rest.remove_prefix(digits);
    }
    if (rest.empty()) damaged();
    return shape;
  }

  bool fortran() const {
    const std::string_view text = value("fortran_order");
    if (!text.starts_with("True") && !text.starts_with("False")) damaged();
    return text.starts_with("True");
  }

  /// "<f4"; a structured type as it stands.
  std::string type() const {
    const std::string_view text = value("descr");
    if (text[0] != '\'' && text[0] != '"') return std::string(text.substr(0, text.find(']') + 1));
    const std::size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos) damaged();
    return std::string(text.substr(1, end - 1));
  }

  [[noreturn]] void damaged() const {
    fail("{}: its header, got '{}' expected that of a .npy file. it is damaged", name_, text_.substr(0, 60));
  }

private:
  std::string text_;
  const std::string& name_;
};

struct TypeName {
  std::string_view name;
  Element element;
};
constexpr std::array types = {
    TypeName{"b1", Element::u8},  TypeName{"u1", Element::u8},  TypeName{"i1", Element::i8},
    TypeName{"u2", Element::u16}, TypeName{"i2", Element::i16}, TypeName{"u4", Element::u32},
    TypeName{"i4", Element::i32}, TypeName{"u8", Element::u64}, TypeName{"i8", Element::i64},
    TypeName{"f2", Element::f16}, TypeName{"f4", Element::f32}, TypeName{"f8", Element::f64},
};

void set_type(Array& array, const std::string& type, const std::string& name) {
  const auto row = std::find_if(types.begin(), types.end(),
                                [&](const TypeName& t) { return type.size() == 3 && type.substr(1) == t.name; });
  if (row == types.end() || std::string_view("<>|=").find(type[0]) == std::string_view::npos)
    fail("{}: got elements of type {} expected integers or reals of at most 64 bits", name, type);
  array.element = row->element;
  array.swapped = type[0] == '>';
}

/// Length of the header and where it begins; checks magic and version.
std::pair<std::int64_t, std::int64_t> header_range(const Bytes& bytes) {
  constexpr std::string_view magic = "\x93NUMPY";
  const std::string& name = bytes.name();
  std::array<char, 12> start{};
  const auto size = std::min<std::int64_t>(bytes.size(), start.size());
  bytes.read(0, size, start.data());
  if (size < 10 || std::string_view(start.data(), magic.size()) != magic)
    fail("{}: got {} bytes that do not begin as a .npy file expected one. it is another format, or damaged", name,
         bytes.size());
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) fail("{}: got .npy version {} expected 1, 2 or 3", name, version);
  std::int64_t length = 0;
  const int width = version == 1 ? 2 : 4;
  for (int i = 0; i < width; ++i)
    length |= std::int64_t{static_cast<unsigned char>(start[8 + static_cast<std::size_t>(i)])} << (8 * i);
  if (8 + width + length > bytes.size())
    fail("{}: got {} bytes expected a header of {}. it is truncated", name, bytes.size(), length);
  return {8 + width, length};
}

/// The elements in C order instead.
std::vector<std::byte> turned(const Array& array, const Shape& shape) {
  const std::int64_t width = size_of(array.element), count = volume(shape);
  std::vector<std::byte> from(static_cast<std::size_t>(count * width)), to(from.size());
  array.bytes.read(array.offset, count * width, from.data());
  Shape at(shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) { // i runs over the file, whose first dim varies fastest
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + at[d];
    std::memcpy(to.data() + place * width, from.data() + i * width, static_cast<std::size_t>(width));
    for (std::size_t d = 0; d < shape.size() && ++at[d] == shape[d]; ++d) at[d] = 0;
  }
  return to;
}

/// The usual names of the arrays of a split.
struct Names {
  std::vector<std::string> inputs, labels, targets;
};
const Names train_names{
    {"train_inputs", "x_train", "X_train", "train_images"}, {"train_labels", "y_train"}, {"train_targets", "y_train"}};
const std::vector<Names> validation_names = {
    {{"validation_inputs", "x_validation", "val_inputs", "x_val", "X_val", "val_images"},
     {"validation_labels", "y_validation", "val_labels", "y_val"},
     {"validation_targets", "y_validation", "val_targets", "y_val"}},
    {{"test_inputs", "x_test", "X_test", "test_images"}, {"test_labels", "y_test"}, {"test_targets", "y_test"}},
};

using Opener = std::function<std::optional<Bytes>(const std::string&)>;

std::optional<Bytes> first_of(const std::vector<std::string>& names, const Opener& open) {
  for (const std::string& name : names)
    if (std::optional<Bytes> bytes = open(name)) return bytes;
  return std::nullopt;
}

Array samples_of(Bytes bytes, const Shape& expected) {
  NamedArray found = parse_npy(std::move(bytes));
  if (found.shape.size() < 2)
    fail("{}: got shape {} expected [samples, …]", found.array.bytes.name(), to_string(found.shape));
  make_fit(found.array, {found.shape.begin() + 1, found.shape.end()}, expected);
  return std::move(found.array);
}

void set_labels(ArraySplit& split, Bytes bytes) {
  const NamedArray classes = parse_npy(std::move(bytes));
  split.labels_name = classes.array.bytes.name();
  const Shape& shape = classes.shape;
  if (!is_integer(classes.array.element) || shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[1] != 1))
    fail("{}: got {} of shape {} expected a list of integers", split.labels_name,
         is_integer(classes.array.element) ? "integers" : "reals", to_string(shape));
  split.labels = read_integers(classes.array);
}

Array targets_of(Bytes bytes, const Shape& expected) {
  NamedArray found = parse_npy(std::move(bytes));
  if (is_integer(found.array.element) || found.shape.empty())
    fail("{}: got {} of shape {} expected targets, reals of shape [samples, …]. store float32 or float64",
         found.array.bytes.name(), is_integer(found.array.element) ? "integers" : "reals", to_string(found.shape));
  make_fit(found.array, {found.shape.begin() + 1, found.shape.end()}, expected, "targets", "as what the loss is of");
  return std::move(found.array);
}

/// None where there is nothing of it.
std::optional<ArraySplit> open_split(const Names& names, const Opener& open, const std::string& where,
                                     const Expected& expected) {
  std::optional<Bytes> inputs = first_of(names.inputs, open), labels, targets;
  if (expected.labels) labels = first_of(names.labels, open);
  if (expected.targets) targets = first_of(names.targets, open);
  if (!inputs && !labels && !targets) return std::nullopt;
  const auto need = [&](std::optional<Bytes>& array, const std::vector<std::string>& list) {
    if (!array) fail("{}: got no array {} expected one", where, fmt::join(list, " or "));
    return *std::move(array);
  };
  ArraySplit split;
  split.pieces.push_back(samples_of(need(inputs, names.inputs), expected.sample));
  if (expected.labels) set_labels(split, need(labels, names.labels));
  if (expected.targets) split.targets = targets_of(need(targets, names.targets), *expected.targets);
  return split;
}

} // namespace

NamedArray parse_npy(Bytes bytes) {
  const std::string name = bytes.name();
  const auto [begin, length] = header_range(bytes);
  std::string text(static_cast<std::size_t>(length), ' ');
  bytes.read(begin, length, text.data());
  const Header header(std::move(text), name);
  NamedArray result{Array{.bytes = std::move(bytes)}, header.shape()};
  Array& array = result.array;
  set_type(array, header.type(), name);
  array.offset = begin + length;
  double wanted = static_cast<double>(size_of(array.element));
  for (std::int64_t extent : result.shape) wanted *= static_cast<double>(extent);
  const std::int64_t got = array.bytes.size() - array.offset;
  if (static_cast<double>(got) < wanted)
    fail("{}: got {} bytes of elements expected {:.0f}, for shape {}. it is truncated", name, got, wanted,
         to_string(result.shape));
  if (static_cast<double>(got) > wanted)
    fail("{}: got {} bytes of elements expected {:.0f}, for shape {}. it is damaged", name, got, wanted,
         to_string(result.shape));
  if (header.fortran() && result.shape.size() > 1) {
    array.bytes = Bytes::of(name, turned(array, result.shape));
    array.offset = 0;
  }
  array.count = result.shape.empty() ? 1 : result.shape[0];
  array.stride = size_of(array.element);
  for (std::size_t d = 1; d < result.shape.size(); ++d) array.stride *= result.shape[d];
  return result;
}

std::unique_ptr<Reader> make_named_reader(const Opener& open, const std::string& where, const Expected& expected) {
  std::optional<ArraySplit> train = open_split(train_names, open, where, expected);
  if (!train) fail("{}: got no array {} expected one to train with", where, fmt::join(train_names.inputs, " or "));
  std::optional<ArraySplit> validation;
  for (const Names& names : validation_names)
    if (!validation) validation = open_split(names, open, where, expected);
  return make_array_reader(*std::move(train), validation ? *std::move(validation) : ArraySplit(), expected);
}

std::unique_ptr<Reader> make_npy_reader(const std::string& folder, const Expected& expected) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(folder))
    fail("{}: got {} expected a folder of .npy files", folder, fs::exists(folder) ? "a file" : "nothing");
  const auto open = [&](const std::string& name) -> std::optional<Bytes> {
    const std::string path = folder + "/" + name + ".npy";
    if (!fs::exists(path)) return std::nullopt;
    return Bytes::open(path);
  };
  return make_named_reader(open, folder, expected);
}

} // namespace soybean::data
