#pragma once
// Collectives on buffers in an accelerator's memory by a Comm that knows the host's memory alone: copied out to
// page-locked memory, communicated, copied back. But for exchanges by an MPI that takes them, MPI never sees an
// accelerator's address, so it can not touch the device and may run beside NCCL. Made by make_comm for parallel.comm =
// "mpi" on accelerators.
#include "comm/layered.hpp"
#include "device/stream.hpp"

#include <memory>
#include <vector>

namespace soybean::comm {

struct StagedOptions {
  bool always = false; ///< stage buffers of the host's memory too, for tests
  /// The Comm below takes messages in an accelerator's memory (comm/mpi_device.hpp): exchanges are not copied. Sums are
  /// taken on the host all the same.
  bool device_exchanges = false;
};

/// A collective on a host Exec goes straight to the Comm below. All others pass, each on a queue of its own, through:
/// exec's queue has come to the start → copy out → the collective below → copy back → exec's queue may go on. They are
/// begun below in the order of their starts, as are those of host Execs among them, so all ranks begin the same ones in
/// the same order. Only what a rank sends and gets is copied; what it sends to itself stays on the device. Queues and
/// page-locked memory are kept for the next collective: each program's steps need the same.
class StagedComm final : public LayeredComm {
public:
  explicit StagedComm(std::unique_ptr<Comm> host, const StagedOptions& options = {});
  ~StagedComm() override;

  void prepare(const std::vector<std::vector<int>>& groups) override { below().prepare(groups); }
  /// That of the Comm below, for host Execs; staged collectives take it from page-locked memory.
  std::int64_t scratch_bytes(const Collective& c) const override { return below().scratch_bytes(c); }
  Token start(const Collective& collective, const device::Exec& exec) override;
  /// Returns when exec's queue has been made to wait for the copy back.
  void wait(Token token) override;
  bool done(Token token) const override;
  [[noreturn]] void stalled(Token token) override;
  bool poll() override;
  Counters counters() const override;

private:
  enum class State : std::uint8_t { copying_out, communicating, waiting, copying_back };
  /// A collective under way.
  struct Flow {
    Token token = 0, below = 0;
    State state = State::copying_out;
    bool staged = false, copies = false; ///< on a queue; by page-locked memory
    Collective collective;               ///< as started
    Collective host;                     ///< what is started below
    const device::Exec* exec = nullptr;
    device::Stream stream;
    device::Event reached, copied; ///< exec's queue is at the start; the last copies are done
    device::HostBuffer buffer;
    explicit Flow(int device) : stream(device), reached(device), copied(device) {}
  };

  std::unique_ptr<Flow> idle_flow(int device, std::int64_t bytes);
  void copy_out(Flow& flow, const device::Exec& exec);
  void copy_back(Flow& flow);
  bool begin(); ///< these return whether anything moved
  bool finish();
  void wait_below(Flow& flow);
  Flow& find(Token token) const;

  StagedOptions options_;
  std::unique_ptr<device::Exec> host_; ///< of the collectives below
  Token started_ = 0;
  std::vector<std::unique_ptr<Flow>> flows_; ///< under way, in order of start
  std::vector<std::unique_ptr<Flow>> idle_;  ///< for reuse
};

} // namespace soybean::comm
