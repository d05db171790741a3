#pragma once
// Checkpoints: one HDF5 file, each tensor one global dataset in logical order whatever the tiling (DESIGN §8). Any rank
// count and plan can read what any other wrote. Collective; only rank 0 touches files.
//
//   /                    attributes: format, step, epoch, samples_seen, seed, batch, precision, model, config
//   /parameters/<name>   trained tensors            /state/<name>   optimizer state, running statistics
//   checksums as src/io/gather.hpp lays them down
#include "runtime/executor.hpp"
#include "train/job.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace soybean::train {

/// Writes `<run_dir>/checkpoints/step-<step>.h5` under a temporary name, flushes and renames it, points `latest.h5` to
/// it, then removes the oldest beyond `checkpoint.keep`. Returns its path. Throws Error(failed) on every rank when it
/// can not be written; earlier checkpoints stay.
std::string write_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& run_dir,
                             std::int64_t step);

/// The file `--resume` without a path means: where latest.h5 points. None if the run has no checkpoint yet.
std::optional<std::string> latest_checkpoint(comm::Comm& comm, const std::string& run_dir);

/// Throws Error, on every rank, unless `path` is a checkpoint that this job may go on from, as far as its header tells.
/// To be called before anything of the run is written.
void check_checkpoint(const Job& job, comm::Comm& comm, const std::string& path);

/// Restores parameters and state; returns the steps done. Throws Error, on every rank, naming the file and what is
/// wrong with it (damaged slab, missing tensor, another shape, precision, seed, batch or data order), and the
/// checkpoint before it if there is one.
std::int64_t read_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& path);

} // namespace soybean::train
