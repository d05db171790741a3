#pragma once
// Errors. `Error` is the user's fault or the world's (bad input, a damaged file, a NaN loss): one readable line and an
// exit code. `Bug` is ours: a condition that must hold did not. Everything throws; only src/app catches.
#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace soybean {

/// Exit codes of the programs (an interface; see the README).
enum class ExitCode : int { done = 0, bad_input = 2, failed = 3, stopped = 75 };

/// A fault in what the user gave or in the surroundings. what() reads `where: what, got … expected …. hint`.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::bad_input)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }
  /// Whether every rank throws this same error at this same point, so that all may end in an orderly way and one of
  /// them reports it. Otherwise the rank that fails has to end the others.
  bool on_all_ranks() const noexcept { return on_all_ranks_; }
  void mark_on_all_ranks() noexcept { on_all_ranks_ = true; }

private:
  ExitCode code_;
  bool on_all_ranks_ = false;
};

/// A broken invariant. what() names the source line.
class Bug : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

/// Throws Error(bad_input) with a formatted message.
template<class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(failed): something went wrong while running, on correct input.
template<class... Args>
[[noreturn]] void fail_running(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...), ExitCode::failed);
}

/// Throws Bug, naming the calling line, when `condition` does not hold.
void ensure(bool condition, const std::string& what = "broken invariant",
            std::source_location where = std::source_location::current());

} // namespace soybean
