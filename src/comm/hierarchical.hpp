#pragma once
// The back end "hierarchical": collectives in stages on fast links inside hosts and slow ones between them, each half a
// Comm of all ranks (MPI and MPI on clusters of CPUs, NCCL and staged MPI on those of GPUs). What the stages are and
// how many bytes cross which links: comm/stages.hpp. Made by make_comm.
#include "comm/layered.hpp"
#include "comm/stages.hpp"
#include "device/stream.hpp"

#include <array>
#include <memory>
#include <vector>

namespace soybean::comm {

/// Every rank starts each stage of each collective on its Comm, in an order that is the same on all ranks.
struct Halves {
  std::unique_ptr<Comm> inside;
  std::unique_ptr<Comm> between; ///< also carries control traffic
  /// For the stages after. Null: `inside` carries them too, as a back end with one queue per device needs. Then ranks
  /// must also wait for collectives in the same order: stages after come two starts later or when they are waited for.
  std::unique_ptr<Comm> after;
};

/// Stages are begun by poll and wait, each as soon as the stage before is done on this rank and earlier collectives
/// have begun theirs on the same Comm: one start per collective and Comm, so that the n-th starts of all ranks belong
/// together. On an accelerator the stages of a collective have a queue of their own, which begins when exec's queue is
/// where the collective was started. A reduce_scatter whose parts do not lie as the stages take them needs scratch.
class HierarchicalComm final : public LayeredComm {
public:
  HierarchicalComm(Halves halves, std::vector<int> hosts); ///< hosts[r]: the host of rank r
  ~HierarchicalComm() override;

  void prepare(const std::vector<std::vector<int>>& groups) override;
  std::int64_t scratch_bytes(const Collective& collective) const override;
  Token start(const Collective& collective, const device::Exec& exec) override;
  void wait(Token token) override;
  bool done(Token token) const override;
  [[noreturn]] void stalled(Token token) override;
  void abort() noexcept override;
  bool poll() override;
  void fence(const device::Event& event) override;
  Counters counters() const override;

private:
  enum class State : std::uint8_t { pending, started, waiting, done };
  /// A queue of an accelerator beside exec's.
  struct Side {
    device::Exec exec;
    device::Event begun, ended;
    Side(int threads, int device) : exec(threads, device), begun(device), ended(device) {}
  };
  /// A collective under way.
  struct Flow {
    Token token = 0;
    Collective collective;
    Stages stages;
    std::array<State, Stages::count> states{};
    std::array<Token, Stages::count> tokens{};
    bool last_listed = false; ///< the stage after is in its queue
    const device::Exec* exec = nullptr;
    std::unique_ptr<Side> side;
    const device::Exec& stage_exec() const { return side ? side->exec : *exec; }
  };
  struct Turn {
    Flow* flow;
    int stage;
  };

  Comm& half(int stage) const { return stage == 0 ? *inside_ : stage == 1 ? *between_ : after_ ? *after_ : *inside_; }
  std::size_t queue_of(int stage) const { return stage == 2 && !after_ ? 0 : static_cast<std::size_t>(stage); }
  std::unique_ptr<Flow> idle_flow(const device::Exec& exec);
  Flow& find(Token token) const;
  void list_last(Token newest); ///< queues the stages after of all flows up to this one
  bool ready(const Flow& flow, int stage) const;
  bool begin_stages();
  bool finish_stages();
  bool advance();
  void wait_for(Flow& flow, int stage);
  [[noreturn]] void report_stall();
  void report_stall_of(const Flow& flow); ///< returns if no stage of it is under way

  std::unique_ptr<Comm> inside_, after_;
  Comm* between_; ///< owned by LayeredComm
  std::vector<int> hosts_;
  mutable Stages asked_; ///< of scratch_bytes, kept for its memory
  Token started_ = 0;
  std::vector<std::unique_ptr<Flow>> flows_;            ///< under way, in order of start
  std::vector<std::unique_ptr<Flow>> idle_;             ///< for reuse
  std::array<std::vector<Turn>, Stages::count> queues_; ///< stages yet to begin, in order, by Comm
};

} // namespace soybean::comm
