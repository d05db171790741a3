#include "train/signals.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

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

} // namespace
} // namespace soybean::train
