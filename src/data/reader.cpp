#include "data/reader.hpp"

#include "base/error.hpp"

#include <array>
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

std::unique_ptr<Reader> open_hdf5(const config::DataOptions& options, const Expected& expected) {
  return make_hdf5_reader(options.path, expected);
}

struct Source {
  std::string_view name;
  std::unique_ptr<Reader> (*open)(const config::DataOptions&, const Expected&);
};

/// Every data source: one file in this folder and one row here.
constexpr std::array sources = {
    Source{"synthetic", open_synthetic},
    Source{"hdf5", open_hdf5},
};

} // namespace

std::unique_ptr<Reader> open_reader(const config::DataOptions& options, const Expected& expected) {
  for (const Source& source : sources)
    if (source.name == options.source) return source.open(options, expected);
  fail("data.source: got \"{}\" expected \"synthetic\" or \"hdf5\"", options.source);
}

} // namespace soybean::data
