#pragma once
// Runs programs on one rank: one arena for all of them, calls prepared once, a straight loop per step. Made by the
// training loop and the tests; it alone knows how buffers, kernels and collectives come together.
#include "device/arena.hpp"
#include "device/tensor_view.hpp"
#include "device/uploader.hpp"
#include "graph/graph.hpp"
#include "program/memory.hpp"
#include "program/program.hpp"
#include "runtime/context.hpp"
#include "runtime/profile.hpp"
#include "runtime/trace.hpp"

#include <memory>
#include <vector>

namespace soybean::runtime {

/// This rank's block of a tensor that outlives a step or is written by the host.
struct Block {
  graph::TensorId tensor;
  tiling::Tiling tiling;
  device::TensorView view;
};

class Executor {
public:
  /// Places the buffers of all programs (persistent and fed ones at the same place in each) and allocates the arena,
  /// zeroed, and what the host's data passes through on its way to and from an accelerator. Copies the programs; graph
  /// and context's references must outlive it. Throws Error when there is no room.
  Executor(const graph::Graph& graph, std::vector<program::Program> programs, const Context& context);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs one step of programs[program]; on an accelerator queues it, and from its third run on launches a recording of
  /// it as a whole where the back end allows that. Collective over the context's ranks.
  void run(int program);
  /// Runs one compute instruction of a program alone, on whatever its operands hold: for verification.
  void compute(int program, std::size_t instruction);

  /// Parameters and states, in the order of their tensors: each in its stored tiling.
  const std::vector<Block>& persistent() const noexcept { return persistent_; }
  const Block& persistent(graph::TensorId tensor) const; ///< throws Bug if there is none
  /// What the host writes before each step: inputs, labels, weights, hyper, once per tiling they are needed in.
  const std::vector<Block>& fed() const noexcept { return fed_; }
  /// Writes one of them from the host's memory: all its elements, row-major by global dims, which may be reused at
  /// once.
  void feed(const Block& block, const void* host) { uploader_.write(block.view, host); }
  /// The memory of a buffer; its contents are only there during its life.
  device::TensorView view(int program, program::BufferId buffer) const;
  /// Values of Graph::metrics after the latest run of that program, those of several parts of the batch added up, the
  /// same on every rank. Waits for it.
  std::vector<double> metrics(int program) const;
  /// The same in two halves, so that an accelerator goes on while the host looks at an earlier step: queue_metrics
  /// after a run, take_metrics, in the same order, later; at most `metric_slots` may be queued.
  void queue_metrics(int program);
  std::vector<double> take_metrics();
  static constexpr int metric_slots = 2;

  /// From now on runs add their events to it; null: no more. On accelerators they are of queueing, nothing else.
  void set_trace(Trace* trace) noexcept { trace_ = trace; }

  const program::Program& program(int program) const;
  const program::Layout& layout(int program) const;
  const Profile& profile(int program) const;
  const Context& context() const noexcept { return context_; }
  std::int64_t memory_bytes() const noexcept { return arena_.bytes() + beside_arena_; }

private:
  struct Prepared; // one program, ready to run
  struct Queued;   // metrics on their way to the host
  void list_blocks();
  void run_instructions(int program);
  bool record(int program);
  void launch(int program);
  void copy_metrics(int program, Queued& slot) const;
  std::vector<double> values_of(const Queued& slot) const;
  const Prepared& at(int program) const;

  const graph::Graph& graph_;
  Context context_;
  std::vector<std::unique_ptr<Prepared>> programs_;
  device::Arena arena_;
  std::int64_t beside_arena_ = 0; ///< bytes of exec's memory
  device::Uploader uploader_;
  std::vector<Block> persistent_, fed_;
  std::unique_ptr<Queued> direct_; ///< of metrics()
  std::vector<std::unique_ptr<Queued>> slots_;
  std::int64_t queued_ = 0, taken_ = 0;
  Trace* trace_ = nullptr;
};

/// Bytes of exec's memory the programs would take on this rank: what the executor would allocate. For preflight and
/// reports.
std::int64_t memory_bytes(const graph::Graph& graph, const std::vector<program::Program>& programs,
                          const Context& context);

} // namespace soybean::runtime
