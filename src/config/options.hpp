#pragma once
// Every setting of a run but the model's layers: defaults, ranges, and the resolved text. Read once from the model
// file; data, planner, training and the programs take their part. No other folder reads these sections.
#include "base/types.hpp"
#include "config/data_options.hpp"
#include "config/table.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace soybean::config {

/// torch.optim.SGD
struct OptimizerOptions {
  std::string name = "sgd";
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// constant; step: the rate is multiplied by gamma after every so many epochs or steps (torch's StepLR).
struct ScheduleOptions {
  std::string name = "constant";
  std::int64_t step_epochs = 0, step_steps = 0; ///< step: exactly one is > 0
  double gamma = 0.1;
};

struct TrainOptions {
  std::int64_t epochs = 0, steps = 0; ///< exactly one is > 0
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  DType precision = DType::f32;
  bool tf32 = false; ///< precision "tf32": f32, but factors of products rounded to TF32
  std::uint64_t seed = 1;
  std::int64_t validate_every = 1; ///< epochs; 0: only at the end
  std::int64_t log_every = 10;     ///< steps between progress lines
};

struct ParallelOptions {
  std::string strategy = "auto";           ///< "auto", "data", "model", "owt", "kcut"; "file" with a plan file
  std::string plan;                        ///< plan file; empty: none
  std::map<std::string, std::string> pins; ///< tensor → tiling
  std::string pins_where = "parallel.pins";
  std::string objective = "bytes";
  std::vector<std::int64_t> mesh; ///< extents of the cuts; empty: from the launch
  std::string comm = "auto";      ///< see make_comm in comm/comm.hpp
  bool mpi_device_memory = true;  ///< "mpi" on GPUs: exchange messages from GPU to GPU where the MPI library can
  std::vector<std::string> skip_passes;
};

struct CheckpointOptions {
  std::int64_t every = 0; ///< steps; 0: only at the end
  std::int64_t keep = 3;  ///< the newest so many stay; 0: none are written at all
};

struct RunOptions {
  std::string dir;             ///< relative to the working directory; default runs/<model name>
  std::int64_t threads = 0;    ///< per rank; 0: what the binding leaves
  std::string device = "auto"; ///< "cpu", "gpu"; auto: what the program was built for
  bool share_devices = false;  ///< several ranks may compute on one GPU
  bool record_steps = true;    ///< GPUs: steps are launched as a whole
  double stall_seconds = 600;  ///< without any progress of a collective before the watchdog ends the run
};

struct RunConfig {
  std::string model_name; ///< [model] name, default the file's name without ending
  DataOptions data;
  TrainOptions train;
  ParallelOptions parallel;
  CheckpointOptions checkpoint;
  RunOptions run;
};

/// The name in a [model] table: letters, digits and ._-+ (it names the run's folder); without one the file's name.
std::string model_name(const Table& model);

/// Reads and checks every section but [model] (of which it takes the name). Overrides must have been applied. Where the
/// file says `epochs` and --set says `steps` (or plan and strategy), the override wins. Throws Error. Call
/// root.report_unread() when the model has been read too.
RunConfig read_run_config(const Table& root);

/// The whole configuration as a model file that gives the same run from the same working directory: [model] as given
/// after overrides, everything else explicit, input paths absolute. The same on every rank.
std::string resolved_toml(const RunConfig& config, const Table& root);

} // namespace soybean::config
