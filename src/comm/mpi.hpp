#pragma once
// The MPI back ends, "mpi" and "mpi_library": they differ in who schedules the messages of reductions. Made by
// make_comm; nobody else includes this but tests that want other message sizes.
#include "comm/comm.hpp"
#include "comm/mpi_check.hpp"
#include "comm/mpi_library.hpp"
#include "comm/schedule.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace soybean::comm {

struct MpiOptions {
  bool library = false; ///< reductions by MPI's own collectives
  MessageSizes sizes;
  std::vector<int> hosts; ///< rank → host, to count what comes from other hosts; may be empty
};

/// Collectives by non-blocking point-to-point messages on one communicator, control traffic on another. A collective's
/// messages carry its number in order of start as their tag, so several may be in flight, in groups of any shape,
/// without communicators of their own. Each collective is a Schedule, advanced whenever poll or wait is called:
/// messages are posted and completed in the schedule's order, so neither results nor counts depend on timing. Memory
/// for staging and bookkeeping is kept for the next collective.
class MpiComm final : public Comm {
public:
  explicit MpiComm(const MpiOptions& options);
  ~MpiComm() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Token start(const Collective& collective, const device::Exec& exec) override;
  void wait(Token token) override;
  bool done(Token token) const override;
  [[noreturn]] void stalled(Token token) override { report_stall(**find(token)); }
  bool poll() override;
  void barrier() override;
  void broadcast(void* data, std::int64_t bytes, int root) override;
  std::vector<std::byte> gather_all(std::span<const std::byte> mine) override;
  void send(const void* data, std::int64_t bytes, int peer, int tag) override;
  void receive(void* data, std::int64_t bytes, int peer, int tag) override;
  Counters counters() const override { return counters_; }

private:
  static constexpr std::int64_t window = 64; ///< messages posted at a time, each way
  /// Of these, chunks to be reduced. Over TCP their permissions to send wait behind the other direction's data: with 4
  /// a link of 1 Gb/s ran at 58 % of its rate, with 16 at 95 %.
  static constexpr std::int64_t staged_window = 16;

  /// A collective under way. Counts are positions in the schedule; request i is at i % window.
  struct Flow {
    Token token = 0;
    Collective collective;
    Schedule schedule;
    int threads = 1;
    std::int64_t receives_posted = 0, receives_done = 0, sends_posted = 0, sends_done = 0, staged = 0;
    std::array<MPI_Request, window> receive_requests, send_requests;
    std::array<std::byte*, window> staging; ///< of receives that are reduced
    LibraryCalls library;                   ///< instead of a schedule
    bool done() const;
  };

  std::unique_ptr<Flow> idle_flow();
  bool advance(Flow& flow); ///< these return whether anything moved
  bool post(Flow& flow);
  void post_receive(Flow& flow);
  void post_send(Flow& flow);
  bool complete_receives(Flow& flow);
  bool complete_sends(Flow& flow);
  bool advance_all();
  bool advance_everything(); ///< also what is built on this Comm
  using FlowAt = std::vector<std::unique_ptr<Flow>>::const_iterator;
  FlowAt find(Token token) const;
  void count(const Flow& flow, const Receive& receive);
  int tag_of(const Flow& flow) const { return static_cast<int>(flow.token % tags_); }
  std::byte* borrow_staging();
  [[noreturn]] void report_stall(const Flow& flow) const;
  /// Waits for a request of control traffic, under the watchdog.
  void finish(MPI_Request& request, const std::string& what, const std::string& whom);

  MpiOptions options_;
  OwnedComm data_, control_;
  std::thread::id computes_ = std::this_thread::get_id(); ///< has the threads of kernels; others add alone
  int rank_ = 0, size_ = 1;
  Token tags_ = 32768; ///< number of tags MPI allows
  Token started_ = 0;
  std::vector<std::unique_ptr<Flow>> flows_; ///< under way, in order of start
  std::vector<std::unique_ptr<Flow>> idle_;  ///< for reuse
  std::vector<std::unique_ptr<std::byte[]>> staging_;
  std::vector<std::byte*> free_staging_;
  MpiLibrary library_;
  Counters counters_;
};

} // namespace soybean::comm
