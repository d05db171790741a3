#include "train/signals.hpp"

#include <array>

namespace soybean::train {

namespace {

constexpr std::array<int, 3> handled = {SIGTERM, SIGINT, SIGUSR1};
constexpr std::array<int, 2> errors_of_writes = {SIGXFSZ, SIGPIPE}; // ignored, the write itself fails

// A handler has no other way to say that it ran.
volatile std::sig_atomic_t last_signal = 0;

extern "C" void note_signal(int signal) {
  last_signal = signal;
}

/// Blocks or unblocks them in this thread, gives what was blocked before.
sigset_t mask(int how) noexcept {
  sigset_t set, before;
  sigemptyset(&set);
  for (const int signal : handled) sigaddset(&set, signal);
  pthread_sigmask(how, &set, &before);
  return before;
}

} // namespace

void note_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0; // no SA_RESTART: a write to a terminal nobody reads must give up (see output.hpp)
  for (const int signal : handled) sigaction(signal, &action, nullptr);
  mask(SIG_BLOCK);
  for (const int signal : errors_of_writes) std::signal(signal, SIG_IGN);
}

void obey_stop_signals() {
  for (const int signal : handled) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  mask(SIG_UNBLOCK);
  if (last_signal != 0) std::raise(last_signal);
}

HearSignals::HearSignals() : before_(mask(SIG_UNBLOCK)) {}

HearSignals::~HearSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

sigset_t mask_letting_signals_in() noexcept {
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  for (const int signal : handled) sigdelset(&set, signal);
  return set;
}

int stop_signal() noexcept {
  const HearSignals now;
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
  default:
    return "signal";
  }
}

} // namespace soybean::train
