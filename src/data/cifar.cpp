// The binary version of CIFAR-10 and CIFAR-100 (A. Krizhevsky): records of one label byte (CIFAR-100: two, coarse and
// fine), then 3072 bytes of a 32×32 image, its red, green and blue plane. A folder as it comes from the archive:
// data_batch_1.bin … and test_batch.bin, or train.bin and test.bin.
#include "base/error.hpp"
#include "data/array_reader.hpp"
#include "data/reader.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace soybean::data {

namespace fs = std::filesystem;

namespace {

const Shape image{3, 32, 32};

struct Records {
  std::int64_t label_bytes; ///< before each image
  std::int64_t label;       ///< which of them is the label
};

ArraySplit open_split(const std::vector<std::string>& paths, const Records& records, const Expected& expected) {
  ArraySplit split;
  const std::int64_t record = records.label_bytes + volume(image);
  for (const std::string& path : paths) {
    Array array{.bytes = Bytes::open(path), .offset = records.label_bytes, .stride = record};
    const std::int64_t size = array.bytes.size();
    if (size == 0 || size % record != 0)
      fail("{}: got {} bytes expected a multiple of {}, of images with {}. it is truncated or another format", path,
           size, record, records.label_bytes == 1 ? "a label" : "two labels");
    array.count = size / record;
    std::vector<unsigned char> bytes(static_cast<std::size_t>(size));
    array.bytes.read(0, size, bytes.data());
    const std::size_t first = split.labels.size();
    for (std::int64_t i = 0; i < array.count; ++i)
      split.labels.push_back(bytes[static_cast<std::size_t>(i * record + records.label)]);
    check_labels({split.labels.begin() + static_cast<std::ptrdiff_t>(first), split.labels.end()}, expected.classes,
                 path + ": label");
    make_fit(array, image, expected.sample);
    split.pieces.push_back(std::move(array));
  }
  split.labels_name = paths.empty() ? "" : paths.front();
  return split;
}

/// data_batch_1.bin, data_batch_2.bin, … without gaps.
std::vector<std::string> batches(const std::string& folder) {
  constexpr int most = 99;
  const auto path = [&](int i) { return fmt::format("{}/data_batch_{}.bin", folder, i); };
  std::vector<std::string> paths;
  int last = 0;
  for (int i = 1; i <= most; ++i)
    if (fs::exists(path(i))) last = i;
  for (int i = 1; i <= last; ++i) {
    if (!fs::exists(path(i))) fail("{}: got nothing expected a file, as there is {}", path(i), path(last));
    paths.push_back(path(i));
  }
  return paths;
}

std::vector<std::string> existing(const std::string& path) {
  return fs::exists(path) ? std::vector{path} : std::vector<std::string>();
}

} // namespace

std::unique_ptr<Reader> make_cifar_reader(const std::string& folder, const std::string& labels,
                                          const Expected& expected) {
  if (!fs::is_directory(folder))
    fail("{}: got {} expected a folder of CIFAR's binary files", folder, fs::exists(folder) ? "a file" : "nothing");
  const std::vector<std::string> ten = batches(folder), hundred = existing(folder + "/train.bin");
  if (ten.empty() == hundred.empty())
    fail(
        "{}: got {} expected the files of CIFAR-10 (data_batch_1.bin, …) or of CIFAR-100 (train.bin). it is the folder "
        "with the binary version's .bin files",
        folder, ten.empty() ? "none of CIFAR's files" : "data_batch_1.bin and train.bin");
  if (!ten.empty()) {
    ArraySplit train = open_split(ten, {1, 0}, expected);
    return make_array_reader(std::move(train), open_split(existing(folder + "/test_batch.bin"), {1, 0}, expected),
                             expected);
  }
  const Records records{2, labels == "coarse" ? 0 : 1};
  ArraySplit train = open_split(hundred, records, expected);
  return make_array_reader(std::move(train), open_split(existing(folder + "/test.bin"), records, expected), expected);
}

} // namespace soybean::data
