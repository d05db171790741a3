#include "train/signals.hpp"

#include <array>
#include <csignal>

namespace soybean::train {

namespace {

constexpr std::array<int, 3> handled = {SIGTERM, SIGINT, SIGUSR1};

// A handler has no other way to say that it ran.
volatile std::sig_atomic_t last_signal = 0;

extern "C" void note_signal(int signal) {
  last_signal = signal;
}

} // namespace

void note_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0; // no SA_RESTART: a write to a terminal nobody reads must give up (see output.hpp)
  for (const int signal : handled) sigaction(signal, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN); // a file size limit then shows as an error of the write
}

void obey_stop_signals() {
  for (const int signal : handled) std::signal(signal, SIG_DFL);
  if (last_signal != 0) std::raise(last_signal);
}

int stop_signal() noexcept {
  return last_signal;
}

const char* signal_name(int signal) {
  switch (signal) {
  case SIGTERM:
    return "SIGTERM";
  case SIGINT:
    return "SIGINT";
  case SIGUSR1:
    return "SIGUSR1";
  }
  return "signal";
}

} // namespace soybean::train
