#pragma once
// The folder of a run: resolved config, plan, metrics, summary, checkpoints. Rank 0 only; callers spread its errors.
#include <cstdint>
#include <optional>
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
  bool held() const noexcept { return file_ >= 0; }

private:
  int file_ = -1;
};

/// Whether `dir` is a folder in which a run is, was, or may be about to begin. Touches nothing.
bool is_run_dir(const std::string& dir);
/// Makes `dir` (and parents) and checks that files can be written there, and that `checkpoints`, where it is a link,
/// leads to a folder. Throws Error naming the folder.
void make_run_dir(const std::string& dir);
/// Moves the files of an earlier run in `dir` (and only those) to the first free `<dir>/earlier-N`, so that nothing is
/// lost, and returns that folder; empty: there was none. Where `checkpoints` is a link to a folder elsewhere the link
/// stays, for the new run to write there too; the earlier ones move to `earlier-N` in that folder and are linked to.
/// Throws Error naming the folder.
std::string move_earlier_run(const std::string& dir);
/// The same, then makes `checkpoint`, if any (it may be one of those moved), of that step, the first one of the new
/// run, which can go on from it from then on. Throws Error naming folder or file.
std::string begin_in(const std::string& dir, const std::optional<std::string>& checkpoint, std::int64_t step);

/// Writes a file under a temporary name, then renames it. Throws Error naming the file.
void write_file(const std::string& path, const std::string& text);
/// Throws Error(`where: …`) if it can not be read.
std::string read_file(const std::string& path);

/// Keeps the lines of metrics.jsonl up to and including `step` (a resumed run writes the later ones again). A line that
/// the end of an earlier run cut off goes; of a file with other lines that are no records a copy is left beside it,
/// whose path is returned, else none.
std::string truncate_metrics(const std::string& path, std::int64_t step);

} // namespace soybean::train
