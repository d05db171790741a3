#include "data/reader.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <glob.h>
#include <string_view>

namespace soybean::data {

namespace {

std::unique_ptr<Reader> open_synthetic(const config::DataOptions& options, const Expected& expected) {
  if (options.classes > expected.classes)
    fail("data.classes: got {} expected at most {}, the outputs of the model", options.classes, expected.classes);
  return make_synthetic_reader({.sample = expected.sample,
                                .classes = options.classes > 0 ? options.classes : expected.classes,
                                .train_samples = options.samples,
                                .validation_samples = options.validation_samples,
                                .noise = options.noise,
                                .seed = expected.seed});
}

/// The files a pattern of the shell (*, ?, [a-z]) stands for, sorted by name; what names a file is none.
std::vector<std::string> expand(const std::string& path) {
  if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path)) return {path};
  glob_t found;
  const int code = glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  if (code == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (paths.empty()) fail("{}: got no file of such a name expected at least one", path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::unique_ptr<Reader> open_hdf5(const config::DataOptions& options, const Expected& expected) {
  return make_hdf5_reader(options.files.empty() ? expand(options.path) : options.files, expected);
}

std::unique_ptr<Reader> open_idx(const config::DataOptions& options, const Expected& expected) {
  return make_idx_reader(options.path, expected);
}

std::unique_ptr<Reader> open_cifar(const config::DataOptions& options, const Expected& expected) {
  return make_cifar_reader(options.path, options.labels, expected);
}

std::unique_ptr<Reader> open_npy(const config::DataOptions& options, const Expected& expected) {
  return make_npy_reader(options.path, expected);
}

std::unique_ptr<Reader> open_npz(const config::DataOptions& options, const Expected& expected) {
  return make_npz_reader(options.path, expected);
}

std::unique_ptr<Reader> open_image_folder(const config::DataOptions& options, const Expected& expected) {
  return make_image_folder_reader(options.path, options.resize, expected);
}

struct Source {
  std::string_view name;
  std::unique_ptr<Reader> (*open)(const config::DataOptions&, const Expected&);
};

/// Every data source: one file in this folder and one row here.
constexpr std::array sources = {
    Source{"synthetic", open_synthetic}, //
    Source{"hdf5", open_hdf5},           //
    Source{"idx", open_idx},             //
    Source{"cifar", open_cifar},         //
    Source{"npy", open_npy},             //
    Source{"npz", open_npz},             //
    Source{"image_folder", open_image_folder},
};

} // namespace

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  for (const Source& source : sources) names.push_back(source.name);
  return names;
}

std::unique_ptr<Reader> open_reader(const config::DataOptions& options, const Expected& expected) {
  for (const Source& source : sources)
    if (source.name == options.source) return source.open(options, expected);
  fail("data.source: got \"{}\" expected one of {}", options.source, fmt::join(source_names(), ", "));
}

Shape Reader::read_whole(Split split, std::int64_t id, Fit, DType type, std::vector<std::byte>& out) const {
  const Shape& sample = info().sample;
  out.resize(static_cast<std::size_t>(volume(sample) * size_of(type)));
  read_inputs(split, std::span(&id, 1), whole(sample), type, out.data());
  return sample;
}

} // namespace soybean::data
