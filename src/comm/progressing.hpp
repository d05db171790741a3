#pragma once
// Progress of transfers while kernels run: MPI moves messages only inside its calls. Put around the back ends of the
// host by make_comm.
#include "comm/comm.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace soybean::comm {

/// Forwards every call to the Comm below. While collectives are under way and the caller is elsewhere, a thread of its
/// own polls that Comm now and then, one call to MPI at a time (MPI_THREAD_SERIALIZED) in all Comms of this kind
/// together; what it does does not depend on who polls, so neither do results. An error met by that thread is thrown by
/// the next call.
class ProgressingComm final : public Comm {
public:
  explicit ProgressingComm(std::unique_ptr<Comm> below) : below_(std::move(below)) {}
  ~ProgressingComm() override;

  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }

  void prepare(const std::vector<std::vector<int>>& groups) override;
  std::int64_t scratch_bytes(const Collective& collective) const override { return below_->scratch_bytes(collective); }
  Token start(const Collective& collective, const device::Exec& exec) override;
  void wait(Token token) override;
  bool done(Token token) const override;
  [[noreturn]] void stalled(Token token) override;
  bool poll() override;
  void abort() noexcept override;
  void barrier() override;
  void broadcast(void* data, std::int64_t bytes, int root) override;
  std::vector<std::byte> gather_all(std::span<const std::byte> mine) override;
  void send(const void* data, std::int64_t bytes, int peer, int tag) override;
  void receive(void* data, std::int64_t bytes, int peer, int tag) override;
  Counters counters() const override;

private:
  /// The right to call the Comm below, under this one's watchdog; throws what the thread has met.
  template<class... How>
  std::unique_lock<std::mutex> turn(How... how) const;
  void progress(); ///< the thread's life
  void look();

  std::unique_ptr<Comm> below_;
  static inline std::mutex mutex_; ///< MPI is one for the process
  std::condition_variable changed_;
  int under_way_ = 0;
  bool ends_ = false;
  std::chrono::steady_clock::time_point polled_; ///< by either
  mutable std::exception_ptr error_;
  std::thread thread_; ///< from the first start on
};

} // namespace soybean::comm
