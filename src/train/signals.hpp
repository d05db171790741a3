#pragma once
// Requests to stop: SIGTERM, SIGINT and SIGUSR1 ask for a checkpoint and an orderly end. Used by the training loop.
namespace soybean::train {

/// Installs the handlers for its life time and restores the earlier ones after.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal this rank has received, 0 if none.
  static int received() noexcept;
};

const char* signal_name(int signal);

} // namespace soybean::train
