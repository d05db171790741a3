#pragma once
// Requests to stop: SIGTERM, SIGINT and SIGUSR1 ask for a checkpoint and an orderly end. soybean_train notes them from
// its first line to its last, the training loop acts on them.
namespace soybean::train {

/// From now to the end of the program the signals are only noted. So one that comes while a run starts stops it after
/// its first step, and one that comes while it ends (srun --kill-on-bad-exit sends SIGTERM as soon as another rank has
/// ended with 75) does not change its exit code.
void note_stop_signals();

/// For work that is not stopped in order: from now on the signals end the program at once, as does one already noted.
void obey_stop_signals();

/// The last signal this rank has noted, 0 if none.
int stop_signal() noexcept;

const char* signal_name(int signal);

} // namespace soybean::train
