#include "train/run_dir.hpp"

#include "base/error.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace soybean::train {

namespace fs = std::filesystem;

namespace {

/// What a run writes into its folder.
constexpr std::array run_files = {"config.toml", "plan.json", "metrics.jsonl", "summary.json", "checkpoints"};

/// "runs/x/" names the same folder as "runs/x".
fs::path folder(const std::string& dir) {
  fs::path path = fs::path(dir).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

bool holds_a_run(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir / "metrics.jsonl", ignored) || fs::exists(dir / "checkpoints" / "latest.h5", ignored);
}

std::string move_aside(const fs::path& dir) {
  int n = 1;
  while (fs::exists(dir / fmt::format("earlier-{}", n))) ++n;
  const fs::path target = dir / fmt::format("earlier-{}", n);
  std::error_code error;
  fs::create_directory(target, error);
  for (const char* name : run_files)
    if (!error && fs::exists(dir / name)) fs::rename(dir / name, target / name, error);
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
}

std::string move_earlier_run(const std::string& dir) {
  const fs::path path = folder(dir);
  return holds_a_run(path) ? move_aside(path) : std::string();
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

void truncate_metrics(const std::string& path, std::int64_t step) {
  std::ifstream file(path);
  if (!file) return;
  std::string kept, line;
  while (std::getline(file, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object() && record.contains("step") && record["step"].is_number_integer() &&
        record["step"].get<std::int64_t>() <= step)
      kept += line + "\n";
  }
  write_file(path, kept);
}

} // namespace soybean::train
