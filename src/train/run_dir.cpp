#include "train/run_dir.hpp"

#include "base/error.hpp"
#include "train/checkpoint_files.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace soybean::train {

namespace fs = std::filesystem;

namespace {

/// What a run writes into its folder.
constexpr std::array run_files = {"config.toml",  "plan.json",       "metrics.jsonl",
                                  "summary.json", "evaluation.json", "checkpoints"};
constexpr std::string_view damaged_metrics = "metrics.jsonl.damaged";

/// "runs/x/" names the same folder as "runs/x".
fs::path folder(const std::string& dir) {
  fs::path path = fs::path(dir).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

bool holds_a_run(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir / "metrics.jsonl", ignored) || fs::exists(dir / "checkpoints" / "latest.h5", ignored) ||
         !checkpoints_in(dir / "checkpoints").empty();
}

/// Makes the first `earlier-N` that is free.
fs::path make_earlier(const fs::path& dir, std::error_code& error) {
  int n = 1;
  while (fs::exists(fs::symlink_status(dir / fmt::format("earlier-{}", n), error))) ++n;
  const fs::path target = dir / fmt::format("earlier-{}", n);
  fs::create_directory(target, error);
  return target;
}

/// Moves the checkpoints of the folder that `link` leads to into a folder in there, and links `to` to that one.
void move_linked(const fs::path& link, const fs::path& to, std::error_code& error) {
  const fs::path place = fs::canonical(link, error);
  if (error) return;
  const fs::path earlier = make_earlier(place, error);
  for (const CheckpointFile& file : checkpoints_in(place))
    if (!error) fs::rename(file.path, earlier / file.path.filename(), error);
  for (const char* name : {"latest.h5", "best.h5"})
    if (std::error_code none; !error && fs::is_symlink(place / name, none))
      fs::rename(place / name, earlier / name, error);
  if (!error) fs::create_directory_symlink(earlier, to, error);
}

/// Renames; a link that is relative to its folder goes on leading to the same place.
void move_entry(const fs::path& from, const fs::path& to, std::error_code& error) {
  if (!fs::exists(fs::symlink_status(from, error))) {
    error.clear();
    return;
  }
  const bool link = fs::is_symlink(from, error);
  if (link && from.filename() == "checkpoints" && fs::is_directory(from, error)) return move_linked(from, to, error);
  const fs::path leads_to = link ? fs::read_symlink(from, error) : fs::path();
  if (link && leads_to.is_relative()) {
    fs::create_symlink(fs::absolute(from).parent_path() / leads_to, to, error);
    if (!error) fs::remove(from, error);
  } else
    fs::rename(from, to, error);
}

std::string move_aside(const fs::path& dir) {
  std::error_code error;
  const fs::path target = make_earlier(dir, error);
  for (const char* name : run_files)
    if (!error) move_entry(dir / name, target / name, error);
  std::vector<fs::path> damaged;
  std::error_code ignored;
  for (fs::directory_iterator entry(dir, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->path().filename().string().starts_with(damaged_metrics)) damaged.push_back(entry->path());
  for (const fs::path& path : damaged)
    if (!error) move_entry(path, target / path.filename(), error);
  if (error)
    fail("run.dir: '{}' holds an earlier run that can not be moved to '{}', got {} expected a writable folder. choose "
         "another run.dir, or --resume to continue that run",
         dir.string(), target.string(), error.message());
  return target.string();
}

} // namespace

RunDirLock::RunDirLock(const std::string& dir) {
  const std::string path = (folder(dir) / "lock").string();
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) return; // the folder's own checks say why
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;
    std::string holder;
    std::getline(std::ifstream(path), holder);
    close(file_);
    fail("run.dir: '{}', got a folder in which a run is active ({}) expected one of its own. wait for that run, or "
         "choose "
         "another run.dir",
         dir, holder.empty() ? "unknown process" : holder);
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string holder = fmt::format("process {} on {}\n", getpid(), host.data());
  if (ftruncate(file_, 0) != 0 || write(file_, holder.data(), holder.size()) < 0) errno = 0; // only a help for people
}

RunDirLock::~RunDirLock() {
  if (file_ >= 0) close(file_);
}

bool is_run_dir(const std::string& dir) {
  std::error_code ignored;
  return fs::exists(folder(dir) / "lock", ignored) || holds_a_run(folder(dir));
}

void make_run_dir(const std::string& dir) {
  const fs::path path = folder(dir);
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    fail("run.dir: '{}', got a file expected a folder. choose another run.dir", dir);
  fs::create_directories(path, error);
  if (error)
    fail("run.dir: '{}' can not be made, got {} expected a writable place. choose another with --set run.dir=…", dir,
         error.message());
  const fs::path probe = path / fmt::format(".write-test-{}", getpid());
  if (!std::ofstream(probe))
    fail("run.dir: '{}', got a folder without write permission ({}) expected a writable one. choose another with "
         "--set run.dir=…",
         dir, std::strerror(errno));
  fs::remove(probe, error);
  const fs::path checkpoints = path / "checkpoints";
  if (fs::is_symlink(checkpoints, error) && !fs::is_directory(checkpoints, error))
    fail("run.dir: '{}', got a link that leads to no folder ('{}') expected one for the checkpoints. make that folder, "
         "or remove the link",
         checkpoints.string(), fs::read_symlink(checkpoints, error).string());
}

std::string move_earlier_run(const std::string& dir) {
  const fs::path path = folder(dir);
  return holds_a_run(path) ? move_aside(path) : std::string();
}

std::string begin_in(const std::string& dir, const std::optional<std::string>& checkpoint, std::int64_t step) {
  if (!checkpoint) return move_earlier_run(dir);
  std::error_code error;
  fs::path source = fs::canonical(*checkpoint, error);
  if (error) fail_running("{}: can not be found, got '{}'", *checkpoint, error.message());
  const std::string earlier = move_earlier_run(dir);
  if (!fs::exists(source, error)) source = fs::path(earlier) / "checkpoints" / source.filename();
  adopt(source, step, folder(dir));
  return earlier;
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary);
    file << text;
    file.flush();
    if (!file) fail_running("{}: can not be written, got {} expected room and permission", path, std::strerror(errno));
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) fail_running("{}: can not be put in place, got {}", path, error.message());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: can not be read, got '{}' expected a readable file. check the path", path, std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) fail("{}: can not be read, got an input error expected a readable file", path);
  return text.str();
}

std::string truncate_metrics(const std::string& path, std::int64_t step) {
  std::ifstream file(path);
  if (!file) return {};
  std::string kept, line, aside;
  bool whole = true;
  while (std::getline(file, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    const bool good = record.is_object() && record.contains("step") && record["step"].is_number_integer();
    if (good && record["step"].get<std::int64_t>() <= step) kept += line + "\n";
    // A run that was killed leaves the beginning of a record as its last line.
    constexpr std::string_view beginning = "{\"step\":";
    const std::string_view shown(line);
    const bool cut_off = file.eof() && shown.substr(0, beginning.size()) == beginning.substr(0, shown.size());
    whole = whole && (good || cut_off);
  }
  file.close();
  if (!whole) {
    const std::string name = fs::path(path).parent_path() / damaged_metrics;
    aside = name;
    for (int n = 2; fs::exists(aside); ++n) aside = fmt::format("{}-{}", name, n);
    std::error_code error;
    fs::copy_file(path, aside, error);
    if (error) fail_running("{}: can not be copied to {}, got '{}'", path, aside, error.message());
  }
  write_file(path, kept);
  return aside;
}

} // namespace soybean::train
