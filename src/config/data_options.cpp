// The [data] section.
#include "base/error.hpp"
#include "config/options.hpp"
#include "config/reading.hpp"
#include "config/value.hpp"

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
      {"tokens", {"path", "validation_path", "dtype", "validation_fraction"}},
  };
  return rows;
}

/// Every step of `augment` and its keys.
const Variants& augment_steps() {
  static const Variants rows = {
      {"flip", {"p", "vertical"}},
      {"crop", {"padding"}},
      {"resized_crop", {"scale", "ratio"}},
      {"colour_jitter", {"brightness", "contrast", "saturation", "hue"}},
      {"cutout", {"size"}},
      {"mixup", {"alpha", "p"}},
      {"cutmix", {"alpha", "p"}},
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
    PathOf{"tokens", "a file of tokens"},
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

void read_tokens(const Table& table, DataOptions& options) {
  options.dtype = table.word("dtype", options.dtype, {.now = {"uint16", "uint32", "uint8"}});
  options.validation_path = input_path(table, "validation_path");
  options.validation_fraction = real_at_least(table, "validation_fraction", options.validation_fraction, 0);
  if (options.validation_fraction >= 1) table.reject("validation_fraction", "less than 1");
  if (!options.validation_path.empty() && options.validation_fraction > 0)
    table.reject("validation_fraction", "either validation_path or validation_fraction", "remove one of them");
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

/// [low, high], both above 0.
std::array<double, 2> read_range(const Table& table, std::string_view key, const std::array<double, 2>& fallback) {
  const std::vector<double> range = table.reals(key, std::vector<double>(fallback.begin(), fallback.end()));
  if (range.size() != 2 || range[0] <= 0 || range[1] < range[0])
    table.reject(key, "two numbers above 0, the larger last");
  return {range[0], range[1]};
}

void read_jitter(const Table& table, AugmentStep& step) {
  step.brightness = real_at_least(table, "brightness", step.brightness, 0);
  step.contrast = real_at_least(table, "contrast", step.contrast, 0);
  step.saturation = real_at_least(table, "saturation", step.saturation, 0);
  step.hue = real_at_least(table, "hue", step.hue, 0);
  if (step.hue > 0.5) table.reject("hue", "at most 0.5, half of the circle");
  if (step.brightness == 0 && step.contrast == 0 && step.saturation == 0 && step.hue == 0)
    table.reject("brightness", "a number above 0 for one of brightness, contrast, saturation, hue");
}

void read_chance(const Table& table, AugmentStep& step) {
  step.p = real_at_least(table, "p", step.p, 0);
  if (step.p > 1) table.reject("p", "at most 1");
}

AugmentStep read_step(const Table& table, bool own_sizes) {
  AugmentStep step;
  table.known(
      {"p", "vertical", "padding", "scale", "ratio", "brightness", "contrast", "saturation", "hue", "size", "alpha"});
  step.op = table.word("op", required, {.now = words_of(augment_steps())});
  refuse_keys_of_others(table, "op", step.op, augment_steps());
  if (step.op == "flip") {
    read_chance(table, step);
    step.vertical = table.boolean("vertical", step.vertical);
  } else if (step.op == "crop") {
    step.padding = table.pair("padding", step.padding, from_zero);
    if (!own_sizes && step.padding == std::array<std::int64_t, 2>{})
      table.reject("padding", "at least 1, as all samples have the size of model.input");
  } else if (step.op == "resized_crop") {
    step.scale = read_range(table, "scale", step.scale);
    if (step.scale[0] > 1) table.reject("scale", "two shares of the image's area, the smaller at most 1");
    step.ratio = read_range(table, "ratio", step.ratio);
  } else if (step.op == "colour_jitter") {
    read_jitter(table, step);
  } else if (step.op == "cutout") {
    step.size = table.integer("size", required, from_one);
  } else {
    step.p = 1;
    read_chance(table, step);
    constexpr double most_alpha = 100; // from there on all shares are one half, but for a few hundredths
    step.alpha = table.real("alpha", step.alpha);
    if (step.alpha <= 0 || step.alpha > most_alpha)
      table.reject("alpha", fmt::format("a number above 0, at most {:g}", most_alpha),
                   step.alpha == 0 ? "to mix nothing leave out the step" : "");
  }
  return step;
}

std::vector<AugmentStep> read_augment(const Table& table, const std::string& source) {
  std::vector<AugmentStep> steps;
  if (!table.has("augment")) return steps;
  for (const Table& step : table.tables("augment")) {
    steps.push_back(read_step(step, source == "image_folder"));
    if (steps.size() < 2) continue;
    const AugmentStep &before = steps[steps.size() - 2], &last = steps.back();
    if (mixes(before) && !mixes(last))
      step.reject("op", fmt::format("nothing but mixup and cutmix after {}", before.op), "samples are mixed last");
    if (mixes(before) && before.p == 1)
      step.reject("op", fmt::format("nothing after a {} with p = 1", before.op),
                  "a sample is mixed once: give the one before a p below 1, and this one gets the rest");
    if (before.op == "cutout" && last.op != "cutout" && !mixes(last))
      step.reject("op", "nothing but cutout, mixup and cutmix after a cutout", "its squares are cut last");
  }
  return steps;
}

} // namespace

bool mixes(const AugmentStep& step) {
  return step.op == "mixup" || step.op == "cutmix";
}

DataOptions read_data(const Table& table) {
  table.known({"source", "path", "validation_path", "dtype", "validation_fraction", "batch", "classes", "samples",
               "validation_samples", "noise", "labels", "resize", "normalise", "augment", "shuffle", "prefetch",
               "threads"});
  DataOptions options;
  options.source = table.word("source", required, {.now = words_of(data_sources()), .later = {"csv", "webdataset"}});
  refuse_keys_of_others(table, "source", options.source, data_sources());
  read_path(table, options);
  if (options.source == "image_folder") options.resize = table.integer("resize", options.resize, from_zero);
  if (options.source == "cifar") options.labels = table.word("labels", options.labels, {.now = {"fine", "coarse"}});
  if (options.source == "tokens") read_tokens(table, options);
  options.batch = table.integer("batch", required, from_one);
  if (options.source == "synthetic") {
    options.classes = table.integer("classes", options.classes, from_zero);
    options.samples = table.integer("samples", options.samples, {.low = 1, .high = largest / 2});
    options.validation_samples =
        table.integer("validation_samples", options.validation_samples, {.low = 0, .high = largest / 2});
    options.noise = real_at_least(table, "noise", options.noise, 0);
  }
  options.normalise = read_normalise(table.table("normalise"));
  options.augment = read_augment(table, options.source);
  options.shuffle = table.boolean("shuffle", options.shuffle);
  options.prefetch = table.integer("prefetch", options.prefetch, {.low = 0, .high = 1024});
  options.threads = table.integer("threads", options.threads, {.low = 0, .high = 1024});
  return options;
}

namespace {

/// What makes sense only for images of some size or number of channels.
void check_step_fits(const Table& table, const AugmentStep& step, const std::vector<std::int64_t>& input) {
  if (step.op == "colour_jitter" && input[0] != 1 && input[0] != 3)
    table.reject("op", fmt::format("none that needs colours with {} channels", input[0]),
                 "images of colours have 3, grey ones 1");
  if (step.op == "crop" && (step.padding[0] >= input[1] || step.padding[1] >= input[2]))
    table.reject("padding", fmt::format("less than the image, {}x{}", input[1], input[2]),
                 "what is cut out would often be nothing but padding");
  if (step.op == "cutout" && step.size > std::max(input[1], input[2]))
    table.reject("size", fmt::format("at most {}, the longer side of model.input", std::max(input[1], input[2])),
                 "larger squares leave nothing of many images");
}

} // namespace

void check_data_fits(const Table& data, const DataOptions& options, const std::vector<std::int64_t>& input) {
  if (options.source == "image_folder") {
    if (input.size() != 3 || (input[0] != 1 && input[0] != 3))
      data.reject("source", fmt::format("a source of samples of shape {}, as in model.input", to_string(input)),
                  "images are [1 or 3, height, width]");
    if (options.resize > 0 && options.resize < std::max(input[1], input[2]))
      data.reject("resize",
                  fmt::format("at least {}, the longer side of model.input, or 0", std::max(input[1], input[2])));
  }
  const bool of_images = std::any_of(options.augment.begin(), options.augment.end(),
                                     [](const AugmentStep& step) { return step.op != "mixup"; });
  if (of_images && input.size() != 3)
    data.reject("augment", fmt::format("none with samples of shape {}, as in model.input", to_string(input)),
                "images are [channels, height, width]; mixup alone is for all samples");
  for (std::size_t i = 0; i < options.augment.size(); ++i)
    check_step_fits(data.tables("augment")[i], options.augment[i], input);
  const Table normalise = data.table("normalise");
  for (const auto& [key, list] : {std::pair("mean", &options.normalise.mean), std::pair("std", &options.normalise.std)})
    if (const auto size = static_cast<std::int64_t>(list->size()); size > 1 && size != input[0])
      fail("{}: {}, got {} values expected {} (one per channel of model.input)", normalise.where(key),
           normalise.path(key), size, input[0] == 1 ? "1" : fmt::format("1 or {}", input[0]));
}

namespace {

void compare(const Value& before, const Value& now, const std::string& path, std::vector<std::string>& changes) {
  constexpr std::array<std::string_view, 3> others = {"data.batch", "data.prefetch", "data.threads"};
  for (const Entry& entry : now.entries) {
    const std::string key = path + "." + entry.key;
    const auto old =
        std::find_if(before.entries.begin(), before.entries.end(), [&](const Entry& e) { return e.key == entry.key; });
    if (old == before.entries.end() || std::find(others.begin(), others.end(), key) != others.end()) continue;
    if (old->value.kind == Kind::table && entry.value.kind == Kind::table)
      compare(old->value, entry.value, key, changes);
    else if (to_inline_toml(old->value) != to_inline_toml(entry.value))
      changes.push_back(
          fmt::format("{} was {} and is {}", key, to_inline_toml(old->value), to_inline_toml(entry.value)));
  }
}

} // namespace

std::vector<std::string> data_changes(const std::string& before, const std::string& now) {
  std::vector<std::string> changes;
  Value old = parse_document(before, "the checkpoint's configuration"), current = parse_document(now, "config.toml");
  const Value *a = find(old, "data"), *b = find(current, "data");
  if (a != nullptr && b != nullptr) compare(*a, *b, "data", changes);
  return changes;
}

} // namespace soybean::config
