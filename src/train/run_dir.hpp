#pragma once
// The folder of a run: resolved config, plan, metrics, summary, checkpoints. Rank 0 only; callers spread its errors.
#include <cstdint>
#include <string>
#include <vector>

namespace soybean::train {

/// Makes `dir` (and parents) and checks that files can be written there. Unless `keep`, the files of an earlier run in
/// it (and only those) are moved to the first free `<dir>/earlier-N`, so that nothing is lost; that folder is returned
/// (empty: nothing was moved). Throws Error naming the folder.
std::string prepare_run_dir(const std::string& dir, bool keep);

/// Writes a file under a temporary name, then renames it. Throws Error naming the file.
void write_file(const std::string& path, const std::string& text);
/// Throws Error(`where: …`) if it can not be read.
std::string read_file(const std::string& path);

/// Keeps the lines of metrics.jsonl up to and including `step` (a resumed run writes the later ones again).
void truncate_metrics(const std::string& path, std::int64_t step);

} // namespace soybean::train
