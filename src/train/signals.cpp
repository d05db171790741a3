#include "train/signals.hpp"

#include <array>
#include <csignal>

namespace soybean::train {

namespace {

constexpr std::array<int, 3> handled = {SIGTERM, SIGINT, SIGUSR1};

// A handler has no other way to say that it ran.
volatile std::sig_atomic_t last_signal = 0;
struct sigaction earlier[handled.size()];

extern "C" void note_signal(int signal) {
  last_signal = signal;
}

} // namespace

StopSignals::StopSignals() {
  last_signal = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0; // no SA_RESTART: a write to a terminal nobody reads must give up (see output.hpp)
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &action, &earlier[i]);
  std::signal(SIGXFSZ, SIG_IGN); // a file size limit then shows as an error of the write
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &earlier[i], nullptr);
}

int StopSignals::received() noexcept {
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
