#pragma once
// Checkpoints: one HDF5 file, each tensor one global dataset in logical order whatever the tiling (DESIGN §8). Any rank
// count and plan can read what any other wrote. Collective; only rank 0 touches files.
//
//   /                    attributes: format, step, epoch, samples_seen, train_samples, seed, batch, precision, model,
//                        config, best (the best validation so far, where there was one), and header_checksum: of all
//                        these, and of names, shapes and types of the tensors
//   /parameters/<name>   trained tensors            /state/<name>   optimizer state, running statistics
//   checksums as src/io/gather.hpp lays them down
#include "runtime/executor.hpp"
#include "train/job.hpp"
#include "train/metrics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace soybean::train {

/// The room a checkpoint needs: hardly less than what its file takes, and not 10 % and 8 KB more.
std::int64_t checkpoint_bytes(const Job& job);

/// How a step compares with those before.
struct Standing {
  Best best;            ///< validation so far
  bool is_best = false; ///< this step is: best.h5 is to point to its checkpoint, which then is kept
};

/// Writes `<run_dir>/checkpoints/step-<step>.h5` under a temporary name, flushes and renames it, points `latest.h5` to
/// it, then removes the oldest beyond `checkpoint.keep`. Returns its path. Throws Error(failed) on every rank when it
/// can not be written; earlier checkpoints stay.
std::string write_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& run_dir,
                             std::int64_t step, const Standing& standing = {});

/// The file `--resume` without a path means: where latest.h5 points. None if the run has no checkpoint yet.
std::optional<std::string> latest_checkpoint(comm::Comm& comm, const std::string& run_dir);

/// Throws Error, on every rank, unless `path` is a checkpoint that this job may go on from, as far as its header tells:
/// first whether it is whole, then all that does not fit. To be called before anything of the run is written.
void check_checkpoint(const Job& job, comm::Comm& comm, const std::string& path);

/// What has changed since in the settings that decide on the samples; a line to print, empty if nothing has. The
/// checkpoint is one that fits.
std::string data_changes(const Job& job, comm::Comm& comm, const std::string& path);

/// Where a run that goes on from a checkpoint stands.
struct Restored {
  std::int64_t step = 0; ///< steps done
  Best best;
};

/// Restores parameters and state; returns the steps done. Throws Error, on every rank, naming the file and what is
/// wrong with it (damage, a format version, model, optimizer, precision, seed, batch or number of samples that is
/// another), and for one that is damaged or gone the checkpoint before it, or where it was moved.
Restored read_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& path);

/// What of a model a checkpoint has, by names.
struct Matches {
  std::vector<std::string> read, missing, unused; ///< tensors of both; of the model alone; of the file alone
  std::string precision;                          ///< the file's; of another one numbers are rounded
};

/// What `train.init_from` finds in a checkpoint of any model: weights and running statistics. Throws Error, on every
/// rank, naming all whose shapes differ, or when nothing matches. To be called before anything of the run is written.
Matches check_weights(const Job& job, comm::Comm& comm, const std::string& path);
/// Loads them; the others stay as they are. Throws Error as check_weights, or naming the damage.
void read_weights(const Job& job, const runtime::Executor& executor, const std::string& path);

/// Throws Error, on every rank, unless `path` is a whole checkpoint, as far as its header tells, with all that
/// validation reads. The optimizer may have been another.
void check_evaluated(const Job& job, comm::Comm& comm, const std::string& path);
/// Loads what validation reads; returns the checkpoint's steps. Throws Error as check_evaluated, or naming the damage.
std::int64_t read_evaluated(const Job& job, const runtime::Executor& executor, const std::string& path);

} // namespace soybean::train
