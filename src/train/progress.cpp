#include "train/progress.hpp"

#include "train/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace soybean::train {

namespace {

/// mpirun gives every rank a pseudo-terminal wherever its own output goes, so under it what counts is mpirun's.
bool shown_on_a_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  std::error_code error;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), error).string();
  return !error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

} // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string accuracy_text(double accuracy, int decimals) {
  if (std::isnan(accuracy)) return "";
  return fmt::format("  accuracy {:{}.{}f} %", 100 * accuracy, decimals == 1 ? 5 : 0, decimals);
}

double plain(double number) {
  return std::isnan(number) ? std::abs(number) : number;
}

Progress::Progress(std::int64_t first_step, std::int64_t last_step, std::int64_t log_every)
    : first_(first_step),
      last_(last_step),
      log_every_(std::max<std::int64_t>(1, log_every)),
      terminal_(shown_on_a_terminal()),
      begin_(std::chrono::steady_clock::now()),
      last_draw_(begin_ - std::chrono::hours(1)) {}

void Progress::show(const ProgressLine& line) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double done = static_cast<double>(std::max<std::int64_t>(1, line.step - first_));
  const double left = elapsed / done * static_cast<double>(last_ - line.step);
  const std::string numbers =
      fmt::format("step {}/{}  epoch {:.2f}  loss {:.4f}{}  {:.0f} samples/s  left {}", line.step, last_, line.epoch,
                  plain(line.loss), accuracy_text(line.accuracy, 1), line.samples_per_second, duration_text(left));
  if (!terminal_) {
    if (line.step % log_every_ == 0 || line.step == last_) {
      say(numbers + "\n");
    }
    return;
  }
  if (now - last_draw_ < std::chrono::milliseconds(100) && line.step != last_) return;
  last_draw_ = now;
  constexpr int width = 24;
  const int filled = static_cast<int>(width * line.step / std::max<std::int64_t>(1, last_));
  say(fmt::format("\r\033[K[{:=<{}}{: <{}}] {}", "", filled, "", width - filled, numbers));
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) say("\r\033[K");
  drawn_ = false;
}

void Progress::note(const std::string& text) {
  erase();
  say(text + "\n");
}

void Progress::finish() {
  if (drawn_) say("\n");
  drawn_ = false;
}

} // namespace soybean::train
