#pragma once
// Which files of a folder are checkpoints: their names, which is the latest, which go. Used by the writing and reading
// of checkpoints and by the run's folder. Rank 0 only; callers spread its errors.
//
//   <run_dir>/checkpoints/step-00000120.h5   the checkpoint after 120 steps; at least eight digits
//   <run_dir>/checkpoints/latest.h5          a link to the newest
//   <run_dir>/checkpoints/best.h5            a link to that of the best validation, with checkpoint.best
//   <run_dir>/checkpoints/step-….h5.tmp      one that is being written
// Files of any other name in that folder are the user's and are left alone.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace soybean::train {

struct CheckpointFile {
  std::filesystem::path path;
  std::int64_t step;
};

std::filesystem::path checkpoint_folder(const std::string& run_dir);
std::string checkpoint_name(std::int64_t step);
/// The number in `step-<digits>.h5`; none for any other name.
std::optional<std::int64_t> step_of(const std::string& name);
/// The finished checkpoints of a folder, by their steps; empty if it can not be read.
std::vector<CheckpointFile> checkpoints_in(const std::filesystem::path& folder);

/// Renames the file `temporary` of the folder to `name` and points `latest.h5` to it. Throws Error(failed).
void put_in_place(const std::filesystem::path& folder, const std::filesystem::path& temporary, const std::string& name);
/// Points `best.h5` to the checkpoint `name` of the folder. Throws Error(failed).
void mark_best(const std::filesystem::path& folder, const std::string& name);
/// Removes all but the last `keep` checkpoints of the folder, never `name` nor the one best.h5 points to.
void prune(const std::filesystem::path& folder, const std::string& name, std::int64_t keep);

/// The file `--resume` without a path means; empty if the run has no checkpoint yet.
std::string latest_in(const std::string& run_dir);
/// The checkpoint of the same folder with the most steps of those with fewer than `path`; empty if there is none, or if
/// the name of `path` (where it points, if it is a link) tells no step.
std::string one_before(const std::string& path);
/// Where the checkpoint `path` of a run's folder, which is there no more, was moved with an earlier run; or empty.
std::string moved_to(const std::string& path);

/// Makes `source`, a checkpoint of that step, the first one of a run that goes on from it: a hard link where the file
/// system can, else a copy. Throws Error(failed).
void adopt(const std::string& source, std::int64_t step, const std::string& run_dir);
/// Removes what killed runs left half written, and returns the names. The caller holds the folder's lock.
std::vector<std::string> remove_unfinished(const std::string& run_dir);

} // namespace soybean::train
