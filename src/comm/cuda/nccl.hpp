#pragma once
// The back end "nccl": collectives on buffers in an accelerator's memory by NCCL, queued beside kernels, the host never
// waiting. Made by make_comm (comm/accelerator.hpp); host code, compiled without a CUDA compiler.
#include "comm/layered.hpp"
#include "device/stream.hpp"

#include <nccl.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace soybean::comm {

/// One communicator of all ranks, split once per group in prepare, and one queue for all of them: collectives run in
/// program order whatever the communicator, so that no two can wait for each other. A collective begins when exec's
/// queue is where it was started, and wait makes exec's queue wait for its end, both by events. Nothing but NCCL
/// touches the device's memory: collectives of host Execs and control traffic go to a Comm on the host's memory (MPI),
/// and MPI is never given an accelerator's address, so the two are never in flight together on one device.
///
/// NCCL reports errors late: poll, wait and fence ask for them, abort all communicators and throw. Only fence makes the
/// host wait, so there is the watchdog; NCCL does not tell which rank is missing. Aborting ends what is queued at once,
/// but NCCL's call returns only when recordings of collectives are gone, which others own: a thread makes it, and only
/// the destructor waits for that.
///
/// reduce_scatter with equal counts is NCCL's own; with other counts a reduction to each member, grouped to run as one.
/// Bytes are counted nominally from the buffers handed over (comm/schedule.hpp), whatever algorithm NCCL takes:
/// all_reduce 2(p-1) times the j-th of p nearly equal blocks for member j, reduce_scatter (p-1) times its own part.
class NcclComm final : public LayeredComm {
public:
  /// `control` has all ranks, each of which gives an accelerator of its own.
  NcclComm(std::unique_ptr<Comm> control, int device);
  ~NcclComm() override;

  void prepare(const std::vector<std::vector<int>>& groups) override;
  Token start(const Collective& collective, const device::Exec& exec) override;
  void wait(Token token) override;
  bool done(Token token) const override;
  [[noreturn]] void stalled(Token token) override;
  void abort() noexcept override;
  bool poll() override;
  bool recordable() const override { return true; }
  void begin_recording() override;
  Counters end_recording() override;
  void count_launch(const Counters& step) override;
  void fence(const device::Event& event) override;
  Counters counters() const override;

private:
  struct Traits {
    using Handle = ncclComm_t;
    static Handle null() { return nullptr; }
    static void release(Handle handle) noexcept { static_cast<void>(ncclCommDestroy(handle)); }
  };
  using Owned = Unique<Traits>;

  /// A collective under way.
  struct Flow {
    Token token = 0, below = -1; ///< below >= 0: one of a host Exec
    const device::Exec* exec = nullptr;
    std::string label;
    device::Event reached, ended; ///< exec's queue is at the start; the collective is done
    explicit Flow(int device) : reached(device), ended(device) {}
  };
  using Flows = std::vector<std::unique_ptr<Flow>>;

  ncclComm_t communicator(const std::vector<int>& group) const;
  void split(const std::vector<int>& group, bool missing);
  std::unique_ptr<Flow> idle_flow();
  void queue(const Collective& collective);
  void reduce_scatter(const Collective& collective, ncclComm_t comm);
  void exchange(const Collective& collective);
  void count(const Collective& collective);
  void check(ncclResult_t code, const char* call);
  void begin_group();
  void end_group();
  void check_errors(); ///< of what is under way
  [[noreturn]] void report_stall(const std::string& what);
  [[noreturn]] void give_up(const std::string& what);
  Flows::const_iterator find(Token token) const;

  int device_;
  std::vector<int> everyone_;
  bool failed_ = false, in_group_ = false, recording_ = false;
  device::Stream stream_;
  Owned world_;
  std::map<std::vector<int>, Owned> groups_; ///< parts of world_
  Token started_ = 0;
  Flows flows_; ///< under way, in order of start
  Flows ended_; ///< waited for by exec's queue, perhaps not yet done
  Flows idle_;  ///< for reuse
  Counters counted_, before_recording_;
  std::size_t ended_before_recording_ = 0;
  double checked_ = 0;         ///< when errors were last asked for
  std::future<void> aborting_; ///< ready when all communicators are gone
};

} // namespace soybean::comm
