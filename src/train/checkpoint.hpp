#pragma once
// Checkpoints: one HDF5 file, each tensor one global dataset in logical order whatever the tiling (DESIGN §8). Any rank
// count and plan can read what any other wrote. Collective; only rank 0 touches files.
//
//   /                    attributes: format, step, epoch, samples_seen, train_samples, seed, batch, precision, model,
//                        config, and header_checksum: of all these, and of names, shapes and types of the tensors
//   /parameters/<name>   trained tensors            /state/<name>   optimizer state, running statistics
//   checksums as src/io/gather.hpp lays them down
#include "runtime/executor.hpp"
#include "train/job.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace soybean::train {

/// The room a checkpoint needs: hardly less than what its file takes, and not 10 % and 8 KB more.
std::int64_t checkpoint_bytes(const Job& job);

/// Writes `<run_dir>/checkpoints/step-<step>.h5` under a temporary name, flushes and renames it, points `latest.h5` to
/// it, then removes the oldest beyond `checkpoint.keep`. Returns its path. Throws Error(failed) on every rank when it
/// can not be written; earlier checkpoints stay.
std::string write_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& run_dir,
                             std::int64_t step);

/// The file `--resume` without a path means: where latest.h5 points. None if the run has no checkpoint yet.
std::optional<std::string> latest_checkpoint(comm::Comm& comm, const std::string& run_dir);

/// Throws Error, on every rank, unless `path` is a checkpoint that this job may go on from, as far as its header tells:
/// first whether it is whole, then all that does not fit. To be called before anything of the run is written.
void check_checkpoint(const Job& job, comm::Comm& comm, const std::string& path);

/// What has changed since in the settings that decide on the samples; a line to print, empty if nothing has. The
/// checkpoint is one that fits.
std::string data_changes(const Job& job, comm::Comm& comm, const std::string& path);

/// Restores parameters and state; returns the steps done. Throws Error, on every rank, naming the file and what is
/// wrong with it (damage, a format version, model, optimizer, precision, seed, batch or number of samples that is
/// another), and for one that is damaged or gone the checkpoint before it, or where it was moved.
std::int64_t read_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& path);

} // namespace soybean::train
