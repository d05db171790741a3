#include "train/output.hpp"

#include "train/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <poll.h>
#include <string_view>
#include <unistd.h>

namespace soybean::train {

namespace {

/// Waits until a pipe takes PIPE_BUF bytes without blocking: for ever as long as the run goes on, a tenth of a second
/// once it is to stop. A signal that arrives at any moment before the wait ends it (ppoll unblocks and waits at once).
bool writable() {
  constexpr timespec briefly = {.tv_sec = 0, .tv_nsec = 100'000'000};
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  const sigset_t heard = mask_letting_signals_in();
  int ready = -1;
  while (ready < 0) {
    ready = ppoll(&out, 1, stop_signal() == 0 ? nullptr : &briefly, &heard);
    if (ready < 0 && errno != EINTR) return false;
  }
  if (ready == 0) errno = EAGAIN;
  return ready > 0;
}

} // namespace

bool say(const std::string& text) {
  std::fflush(stdout); // what was printed before
  std::string_view left = text;
  while (!left.empty()) {
    if (!writable()) return false;
    const HearSignals now; // a terminal may have room for less than that
    const ssize_t written = ::write(STDOUT_FILENO, left.data(), std::min<std::size_t>(left.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

} // namespace soybean::train
