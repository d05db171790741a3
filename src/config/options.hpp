#pragma once
// Every setting of a run but the model's layers: defaults, ranges, and the resolved text. Read once from the model
// file; data, planner, training and the programs take their part. No other folder reads these sections.
#include "base/types.hpp"
#include "config/data_options.hpp"
#include "config/table.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace soybean::config {

/// Keys and defaults as in torch.optim; each optimizer has its own (see src/config/README.md).
struct OptimizerOptions {
  std::string name = "sgd"; ///< sgd, adam, adamw, rmsprop, lars, lamb
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  bool amsgrad = false;
  double alpha = 0.99;
  bool centered = false;
  double trust_coefficient = 0.001;
  bool decay_biases = true; ///< weight_decay for biases and parameters of norm layers, too
};

/// How the learning rate goes; formulas in src/train/schedule.hpp.
struct ScheduleOptions {
  std::string name = "constant";                ///< constant, step, multi_step, exponential, cosine, polynomial
  std::int64_t step_epochs = 0, step_steps = 0; ///< step: exactly one is > 0
  std::vector<std::int64_t> milestone_epochs, milestone_steps; ///< multi_step: ascending, exactly one is not empty
  double gamma = 0.1;                                          ///< step, multi_step, exponential
  bool per_step = false;                                       ///< exponential: after every step, not every epoch
  double power = 1;                                            ///< polynomial
  double min_lr = 0;                                           ///< cosine, polynomial: at the end
  std::int64_t warmup_epochs = 0, warmup_steps = 0;            ///< at most one is > 0
  double warmup_factor = 1.0 / 3;                              ///< of the rate in the first step of the warm-up
};

struct TrainOptions {
  std::int64_t epochs = 0, steps = 0; ///< exactly one is > 0
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  /// A divisor of the batch: so many parts of it are worked off one after the other. 0: as planning chooses.
  std::int64_t microbatches = 0;
  std::string recompute = "auto"; ///< "none", "cheap", "segments" (graph::Recompute), or as planning chooses
  double clip_norm = 0;           ///< of all gradients together; 0: they are not clipped
  double ema = 0;                 ///< decay of the moving average of weights; 0: none is kept
  DType precision = DType::f32;
  bool tf32 = false; ///< precision "tf32": f32, but factors of products rounded to TF32
  std::uint64_t seed = 1;
  std::int64_t validate_every = 1; ///< epochs; 0: only at the end
  std::int64_t log_every = 10;     ///< steps between progress lines
  std::string best_by = "loss";    ///< "loss" or "accuracy": by which of the two a validation is the best one
  std::int64_t patience = 0;       ///< validations without a better one after which the run ends; 0: it goes on
  std::string init_from;           ///< a checkpoint whose weights, by name, a new run begins with
};

struct ParallelOptions {
  std::string strategy = "auto";           ///< "auto", "data", "model", "owt", "kcut"; "file" with a plan file
  std::string plan;                        ///< plan file; empty: none
  std::map<std::string, std::string> pins; ///< tensor → tiling
  std::string pins_where = "parallel.pins";
  std::string objective = "bytes"; ///< "bytes", or "time" with a machine
  std::int64_t memory = 0;         ///< bytes a rank may take; 0: no limit
  std::string memory_where = "parallel.memory";
  std::vector<std::int64_t> mesh; ///< extents of the cuts; empty: from the launch
  std::string comm = "auto";      ///< see make_comm in comm/comm.hpp
  bool mpi_device_memory = true;  ///< "mpi" on GPUs: exchange messages from GPU to GPU where the MPI library can
  std::vector<std::string> skip_passes;
};

struct MachineOptions {
  std::string file;                   ///< a machine file, or the name of a known one; empty: none
  std::string where = "machine.file"; ///< where it says so
};

struct CheckpointOptions {
  std::int64_t every = 0; ///< steps; 0: only at the end
  std::int64_t keep = 3;  ///< the newest so many stay; 0: none are written at all
  bool best = false;      ///< keep the one of the best validation, too
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
  MachineOptions machine;
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
