#include "train/signals.hpp"

#include "train/output.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

namespace soybean::train {
namespace {

// Each in a process of its own: the handlers stay for good.

TEST(Signals, AreNoted) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
    EXPECT_EXIT(
        {
          note_stop_signals();
          const int before = stop_signal();
          std::raise(signal);
          std::exit(before == 0 && stop_signal() == signal ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << signal_name(signal);
}

TEST(Signals, EndTheProgramWhereWorkIsNotStoppedInOrder) {
  EXPECT_EXIT(
      {
        note_stop_signals();
        obey_stop_signals();
        say("");
        std::raise(SIGTERM);
        std::exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(Signals, OneNotedEarlierEndsTheProgramThen) {
  EXPECT_EXIT(
      {
        note_stop_signals();
        std::raise(SIGINT);
        obey_stop_signals();
        std::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

bool waits(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

// A handler must not run in the middle of a kernel, on whichever thread.
TEST(Signals, AreLetInOnlyWhereTheyAreAskedFor) {
  EXPECT_EXIT(
      {
        note_stop_signals();
        std::thread other([] { kill(getpid(), SIGUSR1); });
        other.join();
        const bool kept_out = waits(SIGUSR1);
        const bool noted = stop_signal() == SIGUSR1;
        std::exit(kept_out && noted && !waits(SIGUSR1) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

/// Writes to the pipe until it holds no more.
void fill(int pipe) {
  fcntl(pipe, F_SETFL, O_NONBLOCK);
  while (write(pipe, "x", 1) == 1) continue;
  fcntl(pipe, F_SETFL, 0);
}

TEST(Signals, InterruptAWriteThatWaits) {
  EXPECT_EXIT(
      {
        note_stop_signals();
        int ends[2] = {};
        if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) std::exit(2);
        fill(STDOUT_FILENO);
        std::thread other([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          kill(getpid(), SIGTERM);
        });
        alarm(20);
        say("nobody reads this");
        other.join();
        std::_Exit(stop_signal() == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace soybean::train
