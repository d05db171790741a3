#pragma once
// Requests to stop: SIGTERM, SIGINT and SIGUSR1 ask for a checkpoint and an orderly end. soybean_train notes them from
// its first line to its last, the training loop acts on them.
#include <csignal>

namespace soybean::train {

/// From now to the end of the program the signals are only noted, and only in stop_signal() and say(): elsewhere they
/// are blocked, in this thread and in those it starts. (oneDNN's products keep the stack pointer in the heap for a
/// while, where a handler would overwrite what lies below: uxlfoundation/oneDNN#4845.) So call it before any thread is
/// started. One that comes while a run starts stops it after its first step, and one that comes while it ends (srun
/// --kill-on-bad-exit sends SIGTERM as soon as another rank has ended with 75) does not change its exit code. A write
/// to a pipe nobody reads, or beyond a limit on the size of files, does not end the program but fails.
void note_stop_signals();

/// For work that is not stopped in order: from now on the signals end the program at once, as does one already noted,
/// and a write to a pipe nobody reads.
void obey_stop_signals();

/// Lets signals in for its life time: they are noted, and interrupt a call that waits.
class HearSignals {
public:
  HearSignals();
  ~HearSignals();
  HearSignals(const HearSignals&) = delete;
  HearSignals& operator=(const HearSignals&) = delete;

private:
  sigset_t before_;
};

/// This thread's mask of signals with them let in, for calls that let them in for as long as they wait (ppoll).
sigset_t mask_letting_signals_in() noexcept;

/// The last signal this rank has received, 0 if none.
int stop_signal() noexcept;

const char* signal_name(int signal);

} // namespace soybean::train
