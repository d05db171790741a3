#pragma once
// The folder of a run: resolved config, plan, metrics, summary, checkpoints. Rank 0 only; callers spread its errors.
#include <cstdint>
#include <string>
#include <vector>

namespace soybean::train {

/// Holds `dir/lock` as long as it lives (or the process does), so that no two runs write into one folder. Where the
/// file system knows no locks there is none.
class RunDirLock {
public:
  /// Throws Error naming the run that holds it.
  explicit RunDirLock(const std::string& dir);
  ~RunDirLock();
  RunDirLock(const RunDirLock&) = delete;
  RunDirLock& operator=(const RunDirLock&) = delete;

private:
  int file_ = -1;
};

/// Makes `dir` (and parents) and checks that files can be written there. Throws Error naming the folder.
void make_run_dir(const std::string& dir);
/// Moves the files of an earlier run in `dir` (and only those) to the first free `<dir>/earlier-N`, so that nothing is
/// lost, and returns that folder; empty: there was none. Throws Error naming the folder.
std::string move_earlier_run(const std::string& dir);

/// Writes a file under a temporary name, then renames it. Throws Error naming the file.
void write_file(const std::string& path, const std::string& text);
/// Throws Error(`where: …`) if it can not be read.
std::string read_file(const std::string& path);

/// Keeps the lines of metrics.jsonl up to and including `step` (a resumed run writes the later ones again).
void truncate_metrics(const std::string& path, std::int64_t step);

} // namespace soybean::train
