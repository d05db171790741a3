// The [data] section.
#include "base/error.hpp"
#include "config/options.hpp"
#include "config/reading.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace soybean::config {

namespace {

/// Every data source and its own keys; those of no row belong to all. A new reader adds a row.
const Variants& data_sources() {
  static const Variants rows = {
      {"synthetic", {"classes", "samples", "validation_samples", "noise"}},
      {"hdf5", {"path"}},
      {"idx", {"path"}},
      {"cifar", {"path", "labels"}},
      {"npy", {"path"}},
      {"npz", {"path"}},
      {"image_folder", {"path", "resize"}},
  };
  return rows;
}

/// What `path` is, of the sources that have one.
struct PathOf {
  std::string_view source, what;
};
constexpr std::array paths = {
    PathOf{"hdf5", "an HDF5 file"},
    PathOf{"idx", "a folder of IDX files"},
    PathOf{"cifar", "a folder of CIFAR's binary files"},
    PathOf{"npy", "a folder of .npy files"},
    PathOf{"npz", "a .npz file"},
    PathOf{"image_folder", "a folder with train/ and validation/"},
};

void read_path(const Table& table, DataOptions& options) {
  const auto row =
      std::find_if(paths.begin(), paths.end(), [&](const PathOf& p) { return p.source == options.source; });
  if (row == paths.end()) return;
  if (options.source == "hdf5" && table.has_list("path")) {
    options.files = input_paths(table, "path");
    if (options.files.empty()) table.reject("path", "the paths of HDF5 files");
    return;
  }
  options.path = input_path(table, "path");
  if (options.path.empty())
    table.reject("path", fmt::format("the path of {}", row->what), "it is relative to the model file");
}

NormaliseOptions read_normalise(const Table& table) {
  NormaliseOptions options;
  options.scale = table.real("scale", options.scale);
  if (options.scale == 0) table.reject("scale", "a number other than 0");
  options.mean = table.reals("mean", options.mean);
  options.std = table.reals("std", options.std);
  if (std::any_of(options.std.begin(), options.std.end(), [](double s) { return s <= 0; }))
    table.reject("std", "numbers above 0");
  return options;
}

} // namespace

DataOptions read_data(const Table& table) {
  table.known({"source", "path", "batch", "classes", "samples", "validation_samples", "noise", "labels", "resize",
               "normalise", "shuffle", "prefetch"});
  DataOptions options;
  options.source =
      table.word("source", required, {.now = words_of(data_sources()), .later = {"tokens", "csv", "webdataset"}});
  refuse_keys_of_others(table, "source", options.source, data_sources());
  read_path(table, options);
  if (options.source == "image_folder") options.resize = table.integer("resize", options.resize, from_zero);
  if (options.source == "cifar") options.labels = table.word("labels", options.labels, {.now = {"fine", "coarse"}});
  options.batch = table.integer("batch", required, from_one);
  if (options.source == "synthetic") {
    options.classes = table.integer("classes", options.classes, from_zero);
    options.samples = table.integer("samples", options.samples, {.low = 1, .high = largest / 2});
    options.validation_samples =
        table.integer("validation_samples", options.validation_samples, {.low = 0, .high = largest / 2});
    options.noise = real_at_least(table, "noise", options.noise, 0);
  }
  options.normalise = read_normalise(table.table("normalise"));
  options.shuffle = table.boolean("shuffle", options.shuffle);
  options.prefetch = table.integer("prefetch", options.prefetch, {.low = 0, .high = 1024});
  return options;
}

void check_data_fits(const Table& data, const DataOptions& options, const std::vector<std::int64_t>& input) {
  if (options.source == "image_folder") {
    if (input.size() != 3 || (input[0] != 1 && input[0] != 3))
      data.reject("source", fmt::format("a source of samples of shape {}, as in model.input", to_string(input)),
                  "images are [1 or 3, height, width]");
    if (options.resize > 0 && options.resize < std::max(input[1], input[2]))
      data.reject("resize",
                  fmt::format("at least {}, the longer side of model.input, or 0", std::max(input[1], input[2])));
  }
  const Table normalise = data.table("normalise");
  for (const auto& [key, list] : {std::pair("mean", &options.normalise.mean), std::pair("std", &options.normalise.std)})
    if (const auto size = static_cast<std::int64_t>(list->size()); size > 1 && size != input[0])
      fail("{}: {}, got {} values expected {} (one per channel of model.input)", normalise.where(key),
           normalise.path(key), size, input[0] == 1 ? "1" : fmt::format("1 or {}", input[0]));
}

} // namespace soybean::config
