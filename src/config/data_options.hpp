#pragma once
// The settings of [data]: where samples come from and what is done to them. Read with all the others (options.hpp).
#include "config/table.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace soybean::config {

/// value ← (value · scale − mean[channel]) / std[channel]; empty lists mean 0 and 1, one entry holds for all channels.
struct NormaliseOptions {
  double scale = 1;
  std::vector<double> mean, std;
};

/// One random change of training images; see src/data/augment.hpp. Which fields count depends on `op`.
struct AugmentStep {
  std::string op;
  double p = 0.5;                                               ///< flip, mixup, cutmix: probability
  bool vertical = false;                                        ///< flip
  std::array<std::int64_t, 2> padding{};                        ///< crop: rows above and below, columns left and right
  std::array<double, 2> scale{0.08, 1};                         ///< resized_crop: share of the image's area
  std::array<double, 2> ratio{0.75, 4. / 3};                    ///< resized_crop: width over height
  double brightness = 0, contrast = 0, saturation = 0, hue = 0; ///< colour_jitter
  std::int64_t size = 0;                                        ///< cutout: side of the square
  double alpha = 1;                                             ///< mixup, cutmix: the share is of Beta(alpha, alpha)
};

/// Whether a step mixes a sample with another one.
bool mixes(const AugmentStep& step);

struct DataOptions {
  std::string source = "synthetic";
  std::string path;                    ///< relative to the working directory or absolute (the model file's is resolved)
  std::vector<std::string> files;      ///< hdf5: where `path` is a list, which then is empty
  std::string validation_path;         ///< tokens: a file to validate with
  std::string dtype = "uint16";        ///< tokens: or "uint8", "uint32"
  double validation_fraction = 0;      ///< tokens: of the end of `path`
  std::int64_t resize = 0;             ///< image_folder: the shorter side becomes so many pixels; 0: as few as will do
  std::string labels = "fine";         ///< cifar: "fine" or "coarse", of CIFAR-100
  std::int64_t batch = 0;              ///< of all ranks together
  std::int64_t classes = 0;            ///< synthetic; 0: as many as the model has outputs
  std::int64_t samples = 1024;         ///< synthetic: in the training split
  std::int64_t validation_samples = 0; ///< synthetic; 0: no validation
  double noise = 1;                    ///< synthetic: standard deviation; prototypes have 1
  NormaliseOptions normalise;
  std::vector<AugmentStep> augment;
  bool shuffle = true;
  std::int64_t prefetch = 2; ///< batches read ahead; 0: none
  std::int64_t threads = 0;  ///< that read; 0: as many as compute
};

/// Reads and checks the section. Throws Error.
DataOptions read_data(const Table& table);
/// Throws Error unless what depends on the samples' shape fits `input`, that of model.input.
void check_data_fits(const Table& data, const DataOptions& options, const std::vector<std::int64_t>& input);

/// What decides on a run's samples and is not the same in two resolved configurations, as "data.shuffle was true and is
/// false". Keys that only one of them has (another version's) do not count, nor do those that change no sample.
std::vector<std::string> data_changes(const std::string& before, const std::string& now);

} // namespace soybean::config
