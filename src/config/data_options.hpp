#pragma once
// The settings of [data]: where samples come from and what is done to them. Read with all the others (options.hpp).
#include "config/table.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::config {

/// value ← (value · scale − mean[channel]) / std[channel]; empty lists mean 0 and 1, one entry holds for all channels.
struct NormaliseOptions {
  double scale = 1;
  std::vector<double> mean, std;
};

struct DataOptions {
  std::string source = "synthetic";
  std::string path;                    ///< relative to the working directory or absolute (the model file's is resolved)
  std::vector<std::string> files;      ///< hdf5: where `path` is a list, which then is empty
  std::int64_t resize = 0;             ///< image_folder: the shorter side becomes so many pixels; 0: as few as will do
  std::string labels = "fine";         ///< cifar: "fine" or "coarse", of CIFAR-100
  std::int64_t batch = 0;              ///< of all ranks together
  std::int64_t classes = 0;            ///< synthetic; 0: as many as the model has outputs
  std::int64_t samples = 1024;         ///< synthetic: in the training split
  std::int64_t validation_samples = 0; ///< synthetic; 0: no validation
  double noise = 1;                    ///< synthetic: standard deviation; prototypes have 1
  NormaliseOptions normalise;
  bool shuffle = true;
  std::int64_t prefetch = 2; ///< batches read ahead; 0: none
};

/// Reads and checks the section. Throws Error.
DataOptions read_data(const Table& table);
/// Throws Error unless what depends on the samples' shape fits `input`, that of model.input.
void check_data_fits(const Table& data, const DataOptions& options, const std::vector<std::int64_t>& input);

} // namespace soybean::config
