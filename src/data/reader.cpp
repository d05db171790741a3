#include "data/reader.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <glob.h>
#include <string_view>

namespace soybean::data {

namespace {

std::unique_ptr<Reader> open_synthetic(const config::DataOptions& options, const Expected& expected) {
  if (options.classes > expected.classes)
    fail("data.classes: got {} expected at most {}, the outputs of the model", options.classes, expected.classes);
  const bool by_labels = expected.labels || !expected.targets; // else any number of classes will do
  return make_synthetic_reader({.sample = expected.sample,
                                .classes = options.classes > 0 ? options.classes
                                           : by_labels         ? expected.classes
                                                               : 10,
                                .train_samples = options.samples,
                                .validation_samples = options.validation_samples,
                                .noise = options.noise,
                                .seed = expected.seed,
                                .target = expected.targets.value_or(Shape()),
                                .vocabulary = expected.vocabulary});
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

std::unique_ptr<Reader> open_tokens(const config::DataOptions& options, const Expected& expected) {
  return make_tokens_reader({.path = options.path,
                             .validation_path = options.validation_path,
                             .dtype = options.dtype,
                             .validation_fraction = options.validation_fraction},
                            expected);
}

struct Source {
  std::string_view name;
  std::unique_ptr<Reader> (*open)(const config::DataOptions&, const Expected&);
  bool has_targets = false;
  bool has_numbers = true, has_tokens = false; ///< what samples may be
};

/// Every data source: one file in this folder and one row here.
constexpr std::array sources = {
    Source{"synthetic", open_synthetic, true, true, true}, //
    Source{"hdf5", open_hdf5, true},                       //
    Source{"idx", open_idx},                               //
    Source{"cifar", open_cifar},                           //
    Source{"npy", open_npy, true},                         //
    Source{"npz", open_npz, true},                         //
    Source{"image_folder", open_image_folder},
    Source{"tokens", open_tokens, false, false, true},
};

/// Throws Error where the model's samples are tokens and the source's are not, or the other way round.
void check_kind(const Source& source, const config::DataOptions& options, const Expected& expected) {
  if (expected.vocabulary > 0 && !source.has_tokens)
    fail("data.source: got \"{}\" for a model of tokens expected tokens or synthetic. others have numbers",
         source.name);
  if (expected.vocabulary == 0 && !source.has_numbers)
    fail("data.source: got \"{}\" for a model of numbers expected another source. model.vocabulary makes it one of "
         "tokens",
         source.name);
  const config::NormaliseOptions& normalise = options.normalise;
  if (expected.vocabulary > 0 && (normalise.scale != 1 || !normalise.mean.empty() || !normalise.std.empty()))
    fail("data.normalise: got one for tokens expected none. tokens are no numbers");
  if (expected.vocabulary > 0 && !options.augment.empty())
    fail("data.augment: got one for tokens expected none. it changes images");
}

[[noreturn]] void refuse_targets(const std::string& source) {
  std::vector<std::string_view> names;
  for (const Source& other : sources)
    if (other.has_targets) names.push_back(other.name);
  fail("data.source: got \"{}\" for a loss with target = \"targets\" expected one of {}. the other sources have labels "
       "alone",
       source, fmt::join(names, ", "));
}

/// Throws Error for targets that are no finite numbers. Of many, some that are evenly spread are looked at.
void check_targets(const Reader& reader, const Shape& shape) {
  constexpr std::int64_t most_values = std::int64_t{1} << 24;
  std::vector<double> values(static_cast<std::size_t>(volume(shape)));
  for (const Split split : {Split::train, Split::validation}) {
    const bool trains = split == Split::train;
    const std::int64_t count = trains ? reader.info().train_samples : reader.info().validation_samples;
    const std::int64_t checked = std::min(count, std::max<std::int64_t>(1, most_values / volume(shape)));
    for (std::int64_t i = 0; i < checked; ++i) {
      const std::int64_t id = i * count / checked;
      reader.read_targets(split, std::span(&id, 1), whole(shape), DType::f64, values.data());
      for (const double value : values)
        if (!std::isfinite(value))
          fail("{}, got {} expected finite numbers", reader.where(split, id, What::targets), value);
    }
  }
}

} // namespace

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(sources));
  for (const Source& source : sources) names.push_back(source.name);
  return names;
}

std::unique_ptr<Reader> open_reader(const config::DataOptions& options, const Expected& expected) {
  for (const Source& source : sources) {
    if (source.name != options.source) continue;
    check_kind(source, options, expected);
    if (expected.targets && !source.has_targets) refuse_targets(options.source);
    std::unique_ptr<Reader> reader = source.open(options, expected);
    if (expected.targets && expected.thorough) check_targets(*reader, *expected.targets);
    return reader;
  }
  fail("data.source: got \"{}\" expected one of {}", options.source, fmt::join(source_names(), ", "));
}

Shape Reader::read_whole(Split split, std::int64_t id, Fit, DType type, std::vector<std::byte>& out) const {
  const Shape& sample = info().sample;
  out.resize(static_cast<std::size_t>(volume(sample) * size_of(type)));
  read_inputs(split, std::span(&id, 1), whole(sample), type, out.data());
  return sample;
}

std::string Reader::where(Split split, std::int64_t id, What what) const {
  return fmt::format("data: {} of sample {} to {} with", what == What::inputs ? "inputs" : "targets", id,
                     split == Split::train ? "train" : "validate");
}

void Reader::read_tokens(Split, std::span<const std::int64_t>, const Box&, std::int64_t, std::int32_t*) const {
  throw Bug("tokens of a reader that has none");
}

void Reader::read_targets(Split, std::span<const std::int64_t>, const Box&, DType, void*) const {
  throw Bug("targets of a reader that has none");
}

} // namespace soybean::data
