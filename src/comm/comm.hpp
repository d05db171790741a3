#pragma once
// Collectives between ranks. `Comm` is one of the project's two virtual interfaces: back ends are mpi (own ring and
// pairwise schedules), mpi_library (MPI's own collectives), self (one rank) and those on top of others: hierarchical,
// staged, and in CUDA builds nccl. Counts bytes where they are handed over, so that planned and moved bytes can be
// compared.
#include "base/types.hpp"
#include "device/exec.hpp"
#include "device/stream.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace soybean::comm {

enum class Kind : std::uint8_t { all_reduce, reduce_scatter, exchange };

/// A message to or from a peer: `count` elements at `data`.
struct Message {
  int peer; ///< world rank; this rank itself: a local copy, not counted
  void* data;
  std::int64_t count;
};

/// One collective as started by this rank. All ranks start the same collectives in the same order, each in its own
/// group (the groups of one collective partition the ranks; a group of one is legal): the n-th start of one rank
/// belongs to the n-th start of all others.
struct Collective {
  Kind kind;
  DType dtype = DType::f32;
  std::vector<int> group; ///< world ranks, the same order on all members; exchange: empty (everyone)
  /// all_reduce: `counts` = {n}; `send` has n terms, `recv` n sums (may be the same memory; else send is preserved).
  /// reduce_scatter: counts[m] elements for member m, packed in group order in `send`; `recv` gets this rank's
  /// counts[me] sums. `send` is used as scratch and not preserved. `recv` may be this rank's own chunk of `send`, else
  /// they do not overlap. Counts may be 0.
  void* send = nullptr;
  void* recv = nullptr;
  void* scratch = nullptr; ///< of Comm::scratch_bytes bytes in exec's memory, until wait; null where that is 0
  std::vector<std::int64_t> counts;
  std::vector<Message> sends, receives; ///< exchange; at most one message per ordered pair of ranks
  std::string label;                    ///< names the instruction in the watchdog's message
  bool control = false;                 ///< counted apart
};

using Token = std::int64_t;

struct Counters {
  std::int64_t received_bytes = 0; ///< data received by this rank, counted from the receives actually posted
  std::int64_t control_bytes = 0;  ///< received by collectives marked control and by the blocking helpers
  double waiting_seconds = 0;      ///< in wait()
  /// Of received_bytes, those that MPI brought from ranks of other hosts, where the back end was told who is where.
  std::int64_t outside_bytes = 0;
};

class Comm {
public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Makes what reductions in these groups need (an accelerator's communicators), so that start need not. Called before
  /// the first start; every rank gives the groups it is in, as many as all others and in the same order.
  virtual void prepare(const std::vector<std::vector<int>>& groups) { static_cast<void>(groups); }
  /// Memory that a collective needs beside its buffers; whoever starts it brings it, so that it can be planned.
  virtual std::int64_t scratch_bytes(const Collective& collective) const { return static_cast<void>(collective), 0; }
  /// Begins a collective on what exec's queued kernels have written, in exec's memory; never blocks on other ranks.
  /// Buffers and exec must stay valid until wait.
  virtual Token start(const Collective& collective, const device::Exec& exec) = 0;
  /// Returns when the collective is done on this rank, on an accelerator: when kernels queued from now on come after
  /// it. Progresses all that are under way. If `stall_seconds` pass without any progress, the watchdog throws
  /// Error(failed) naming the label and the ranks that are missing.
  virtual void wait(Token token) = 0;
  /// True when wait(token) would return at once and hold up no kernel. Progresses nothing.
  virtual bool done(Token token) const = 0;
  /// Throws the watchdog's Error for a collective under way, for a Comm on top that has waited in vain.
  [[noreturn]] virtual void stalled(Token token);
  /// Gives up what is under way on accelerators, so that nothing queued there waits for other ranks any more. Called
  /// while an error unwinds, before anything is released that queued work uses; then the Comm may only be destroyed.
  virtual void abort() noexcept {}
  /// Progresses what is under way without blocking; called between kernels. Returns whether anything moved.
  virtual bool poll() = 0;
  /// Whether collectives of Execs on accelerators are nothing but queued work, so that a step can be recorded and
  /// launched again (device/stream.hpp), between begin_recording and end_recording, with nothing under way at either.
  virtual bool recordable() const { return false; }
  virtual void begin_recording() {}
  /// What one launch moves on this rank; nothing was moved yet.
  virtual Counters end_recording() { return {}; }
  /// Counts a launch of what was recorded.
  virtual void count_launch(const Counters& step) { static_cast<void>(step); }
  /// The host waits for what the event marks, and so for the collectives before it, under the watchdog.
  virtual void fence(const device::Event& event) { event.synchronise(); }

  // Small blocking helpers for control traffic (never counted as data), in program order on the calling thread.
  virtual void barrier() = 0;
  virtual void broadcast(void* data, std::int64_t bytes, int root) = 0;
  /// Every rank's `bytes` bytes, concatenated by rank, on every rank.
  virtual std::vector<std::byte> gather_all(std::span<const std::byte> mine) = 0;
  /// Point to point, for checkpoints and reports.
  virtual void send(const void* data, std::int64_t bytes, int peer, int tag) = 0;
  virtual void receive(void* data, std::int64_t bytes, int peer, int tag) = 0;

  virtual Counters counters() const = 0;
  double stall_seconds = 600;
  /// Set by a Comm on top of this one: called while a call here blocks, returns whether it moved anything.
  std::function<bool()> meanwhile;
};

/// Summed over ranks (in rank order), the largest of all ranks; every rank gets the result.
double sum(Comm& comm, double value);
std::int64_t sum(Comm& comm, std::int64_t value);
double max(Comm& comm, double value);
std::int64_t max(Comm& comm, std::int64_t value);
std::string broadcast_text(Comm& comm, const std::string& text, int root = 0);

/// Where the ranks run, for back ends that need to know.
struct Place {
  int device = -1;                     ///< this rank's accelerator; -1: the host
  bool device_messages = true;         ///< "mpi" may be given an accelerator's memory where it takes that
  std::vector<std::string> hosts = {}; ///< the host of each rank (comm/mpi_session.hpp: host_names); empty: all on one
};

/// Back ends by name. MPI must be initialised (comm/mpi_session.hpp); all ranks ask for the same. One rank always gets
/// "self".
/// auto          nccl on accelerators of a build that has it, none of which is shared by ranks; else mpi
/// mpi           own schedules of MPI messages; data of accelerators goes by way of the host's memory, but exchanges
///               directly where the library takes an accelerator's memory (comm/mpi_device.hpp)
/// mpi_library   the same with the library's reductions
/// hierarchical  in stages inside hosts (nccl where auto gives it, else mpi) and between them (mpi)
/// nccl          NCCL everywhere; in a program that trains on the host: mpi
/// Throws Error, on all ranks, for other names and those this build has not.
std::unique_ptr<Comm> make_comm(const std::string& name, const Place& place = {});
std::unique_ptr<Comm> make_self_comm();

} // namespace soybean::comm
