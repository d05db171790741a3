#pragma once
// A whole run of soybean_train, from the command line's wishes to its exit code.
#include "base/error.hpp"
#include "train/job.hpp"

#include <optional>
#include <string>

namespace soybean::train {

struct RunRequest {
  Request job;
  std::optional<std::string> resume; ///< empty text: the latest in run.dir
  std::string begin_from;            ///< with the latest in run.dir: the checkpoint to take while there is none
  std::optional<std::string> eval;   ///< validate this checkpoint, empty text: the latest in run.dir; no training
  std::int64_t traced = 0;           ///< steps to write a timeline of
  bool verify = false;
  bool dry_run = false;
  bool json = false; ///< print the summary (dry run: the plan) as JSON and nothing else
};

/// Collective over MPI_COMM_WORLD; MPI must be initialised. Returns done or stopped; everything else is thrown.
ExitCode run(const RunRequest& request);

} // namespace soybean::train
