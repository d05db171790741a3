// Folders of JPEG and PNG images, as torchvision's ImageFolder: `train/<class>/<image>` and `validation/` (or `val/`)
// likewise. Classes are the subfolders of train/ in the order of their names, byte by byte, samples the images of one
// class after the other in the order of theirs.
#include "base/error.hpp"
#include "data/array_reader.hpp"
#include "data/image.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace soybean::data {

namespace fs = std::filesystem;

namespace {

/// So many images of a split, evenly spread, are decoded before training.
constexpr std::int64_t most_checked = 512;

struct Folder {
  std::string path;
  std::vector<std::string> files;
  std::vector<std::int32_t> labels;
};

/// Names in a folder, sorted; hidden ones are left out.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.front() != '.' && it->is_directory() == folders) names.push_back(name);
  }
  if (error) fail("{}: can not be read, got '{}' expected a folder", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_image(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Folder list_folder(const std::string& path, const std::vector<std::string>& classes) {
  Folder folder{path, {}, {}};
  for (const std::string& name : names_in(path, true)) {
    const auto row = std::lower_bound(classes.begin(), classes.end(), name);
    if (row == classes.end() || *row != name)
      fail("{}/{}: got a class that is not among those to train with expected one of its {} folders", path, name,
           classes.size());
    const std::string inside = fmt::format("{}/{}", path, name);
    const std::size_t before = folder.files.size();
    for (std::string& file : names_in(inside, false))
      if (is_image(file)) {
        folder.files.push_back(fmt::format("{}/{}", name, file));
        folder.labels.push_back(static_cast<std::int32_t>(row - classes.begin()));
      }
    if (const std::vector<std::string> inner = names_in(inside, true); !inner.empty())
      fail("{}/{}: got a folder expected images. images of a class are directly in its folder", inside, inner.front());
    if (folder.files.size() == before)
      fail("{}: got a folder without images expected files that end in .jpg, .jpeg or .png", inside);
  }
  return folder;
}

std::string validation_path(const std::string& path) {
  std::vector<std::string> found;
  for (const char* name : {"validation", "val"})
    if (fs::is_directory(path + "/" + name)) found.push_back(path + "/" + name);
  if (found.size() > 1) fail("{}: got validation/ and val/ expected one of them", path);
  return found.empty() ? "" : found.front();
}

class ImageReader : public Reader {
public:
  ImageReader(const std::string& path, std::int64_t resize, const Expected& expected) : resize_(resize) {
    const std::string train = path + "/train";
    if (!fs::is_directory(train))
      fail("{}: got {} expected a folder with a folder of images for each class", train,
           fs::exists(train) ? "a file" : "nothing");
    const std::vector<std::string> classes = names_in(train, true);
    if (classes.empty()) fail("{}: got no folders expected one for each class, with its images", train);
    if (const auto count = static_cast<std::int64_t>(classes.size()); count > expected.classes)
      fail("{}: got {} folders expected at most {} classes, the outputs of the model", train, count, expected.classes);
    folders_[0] = list_folder(train, classes);
    if (const std::string validation = validation_path(path); !validation.empty())
      folders_[1] = list_folder(validation, classes);
    info_ = {expected.sample, static_cast<std::int64_t>(folders_[0].files.size()),
             static_cast<std::int64_t>(folders_[1].files.size()), 255};
    if (expected.thorough) check_some();
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                   void* out) const override {
    std::int64_t at = 0;
    for (std::int64_t id : ids) {
      const Image image = decode(split, id, Fit::sample);
      copy_part(image, part, [&](double value) { store(type, out, at++, value); });
    }
  }

  Shape read_whole(Split split, std::int64_t id, Fit fit, DType type, std::vector<std::byte>& out) const override {
    const Image image = decode(split, id, fit);
    const Shape shape{image.channels, image.height, image.width};
    out.resize(static_cast<std::size_t>(volume(shape) * size_of(type)));
    std::int64_t at = 0;
    copy_part(image, whole(shape), [&](double value) { store(type, out.data(), at++, value); });
    return shape;
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::size_t i = 0; i < ids.size(); ++i)
      out[i] = folders_[static_cast<std::size_t>(split)].labels[static_cast<std::size_t>(ids[i])];
  }

private:
  Image decode(Split split, std::int64_t id, Fit fit) const {
    const Folder& folder = folders_[static_cast<std::size_t>(split)];
    const Bytes file = Bytes::open(folder.path + "/" + folder.files[static_cast<std::size_t>(id)], 0);
    Image image = decode_image(file, info_.sample[0]);
    if (fit == Fit::stored) return image;
    const std::int64_t height = info_.sample[1], width = info_.sample[2];
    const auto [tall, wide] = covering(image);
    image = resize(image, tall, wide);
    return fit == Fit::covering ? image : cut_middle(image, height, width);
  }

  /// Height and width to resize to: the shorter side to `resize`, as torchvision's Resize; without it the smallest size
  /// that covers the sample.
  std::pair<std::int64_t, std::int64_t> covering(const Image& image) const {
    const std::int64_t h = image.height, w = image.width;
    if (resize_ > 0) return w <= h ? std::pair(resize_ * h / w, resize_) : std::pair(resize_, resize_ * w / h);
    const std::int64_t height = info_.sample[1], width = info_.sample[2];
    return w * height <= h * width ? std::pair(width * h / w, width) : std::pair(height, height * w / h);
  }

  /// The part, channels first.
  template<class F>
  static void copy_part(const Image& image, const Box& part, F&& put) {
    for (std::int64_t c = part.offsets[0]; c < part.offsets[0] + part.extents[0]; ++c)
      for (std::int64_t y = part.offsets[1]; y < part.offsets[1] + part.extents[1]; ++y) {
        const std::uint8_t* row = image.pixels.data() + y * image.width * image.channels + c;
        for (std::int64_t x = part.offsets[2]; x < part.offsets[2] + part.extents[2]; ++x) put(row[x * image.channels]);
      }
  }

  void check_some() const {
    for (const Split split : {Split::train, Split::validation}) {
      const std::int64_t count = split == Split::train ? info_.train_samples : info_.validation_samples;
      const std::int64_t checked = std::min(count, most_checked);
      for (std::int64_t i = 0; i < checked; ++i) decode(split, i * count / checked, Fit::stored);
    }
  }

  std::int64_t resize_;
  std::array<Folder, 2> folders_;
  Info info_;
};

} // namespace

std::unique_ptr<Reader> make_image_folder_reader(const std::string& path, std::int64_t resize,
                                                 const Expected& expected) {
  return std::make_unique<ImageReader>(path, resize, expected);
}

} // namespace soybean::data
