#include "train/checkpoint_files.hpp"

#include "base/error.hpp"
#include "io/hdf5.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace soybean::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view unfinished = ".tmp";

/// The number between `before` and `after`, which are all else in `text`.
std::optional<std::int64_t> number_between(std::string_view text, std::string_view before, std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after) || text.size() <= before.size() + after.size())
    return std::nullopt;
  const char* const begin = text.data() + before.size();
  const char* const end = text.data() + text.size() - after.size();
  if (!std::all_of(begin, end, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  std::int64_t number = 0;
  return std::from_chars(begin, end, number).ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Where a link of this folder points, else the path itself.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error) ? path.parent_path() / fs::read_symlink(path, error) : path;
}

/// Makes the link `to` (a name in its folder) or points it elsewhere.
void point(const fs::path& folder, const std::string& link, const std::string& to) {
  std::error_code error;
  const fs::path target = folder / link, new_link = folder / (link + std::string(unfinished));
  fs::remove(new_link, error);
  fs::create_symlink(to, new_link, error);
  if (!error) fs::rename(new_link, target, error);
  if (error) fail_running("{}: can not be put in place, got '{}'", target.string(), error.message());
}

void bring_to_disk(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int status = -1;
  if (file >= 0) do
      status = ::fsync(file);
    while (status != 0 && errno == EINTR);
  const int code = errno;
  if (file >= 0) ::close(file);
  if (status != 0) fail_running("{}: can not be brought to the disk, got '{}'", path.string(), std::strerror(code));
}

} // namespace

fs::path checkpoint_folder(const std::string& run_dir) {
  return fs::path(run_dir) / "checkpoints";
}

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("step-{:08d}.h5", step);
}

std::optional<std::int64_t> step_of(const std::string& name) {
  return number_between(name, "step-", ".h5");
}

std::vector<CheckpointFile> checkpoints_in(const fs::path& folder) {
  std::vector<CheckpointFile> found;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto step = step_of(entry->path().filename().string()); step && entry->is_regular_file(ignored))
      found.push_back({entry->path(), *step});
  std::sort(found.begin(), found.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
    return std::tie(a.step, a.path) < std::tie(b.step, b.path);
  });
  return found;
}

void put_in_place(const fs::path& folder, const fs::path& temporary, const std::string& name) {
  std::error_code error;
  fs::rename(temporary, folder / name, error);
  if (error) fail_running("{}: can not be put in place, got '{}'", (folder / name).string(), error.message());
  point(folder, "latest.h5", name);
}

void mark_best(const fs::path& folder, const std::string& name) {
  point(folder, "best.h5", name);
}

void prune(const fs::path& folder, const std::string& name, std::int64_t keep) {
  std::error_code ignored; // one that can not be removed does no harm
  const std::vector<CheckpointFile> all = checkpoints_in(folder);
  const fs::path best = resolved(folder / "best.h5");
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i)
    if (all[i].path.filename() != name && all[i].path != best) fs::remove(all[i].path, ignored);
}

std::string latest_in(const std::string& run_dir) {
  const fs::path link = checkpoint_folder(run_dir) / "latest.h5";
  std::error_code error;
  // A copied folder may hold files instead of links.
  if (fs::is_symlink(link, error) || fs::exists(link, error)) return resolved(link).string();
  const std::vector<CheckpointFile> all = checkpoints_in(checkpoint_folder(run_dir));
  return all.empty() ? std::string() : all.back().path.string();
}

std::string one_before(const std::string& path) {
  const fs::path file = resolved(path);
  const auto step = step_of(file.filename().string());
  std::string before;
  if (!step) return before;
  for (const CheckpointFile& other : checkpoints_in(file.has_parent_path() ? file.parent_path() : "."))
    if (other.step < *step) before = other.path.string();
  return before;
}

std::string moved_to(const std::string& path) {
  const fs::path file = fs::absolute(path);
  std::error_code error;
  if (fs::exists(file, error) || file.parent_path().filename() != "checkpoints") return {};
  const fs::path run = file.parent_path().parent_path();
  std::int64_t newest = -1;
  std::string found;
  for (fs::directory_iterator entry(run, error), end; !error && entry != end; entry.increment(error)) {
    const auto n = number_between(entry->path().filename().string(), "earlier-", "");
    const fs::path candidate = entry->path() / "checkpoints" / file.filename();
    std::error_code ignored;
    if (!n || *n <= newest || !fs::exists(candidate, ignored)) continue;
    newest = *n;
    found = (fs::path(path).parent_path().parent_path() / candidate.lexically_relative(run)).string();
  }
  return found;
}

void adopt(const std::string& source, std::int64_t step, const std::string& run_dir) {
  const fs::path folder = checkpoint_folder(run_dir);
  const std::string name = checkpoint_name(step);
  const fs::path temporary = folder / (name + std::string(unfinished));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_running("{}: can not be made, got '{}'", folder.string(), error.message());
  const fs::path original = fs::canonical(source, error);
  if (error) fail_running("{}: can not be found, got '{}'", source, error.message());
  fs::remove(temporary, error);
  fs::create_hard_link(original, temporary, error);
  if (error) {
    const std::uintmax_t bytes = fs::file_size(original, error);
    if (!error) io::check_room(temporary.string(), static_cast<std::int64_t>(bytes));
    if (!error) fs::copy_file(original, temporary, error);
    if (error) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      fail_running("{}: can not be copied to {}, got '{}'", source, folder.string(), error.message());
    }
    bring_to_disk(temporary);
  }
  put_in_place(folder, temporary, name);
  fs::remove(temporary, error); // where both were the same file already, the renaming left it
}

std::vector<std::string> remove_unfinished(const std::string& run_dir) {
  std::vector<std::string> names;
  std::error_code error, ignored;
  const fs::path folder = checkpoint_folder(run_dir);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (number_between(name, "step-", ".h5.tmp") && entry->is_regular_file(ignored)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::erase_if(names, [&](const std::string& name) { return !fs::remove(folder / name, ignored); });
  return names;
}

} // namespace soybean::train
