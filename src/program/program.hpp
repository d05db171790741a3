#pragma once
// A Program: the parallel training step as a straight-line list of instructions, the same for all ranks up to offsets
// and extents. `lower` makes it from graph and plan; the executor in src/runtime runs it.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "tiling/redistribution.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::program {

using BufferId = std::int32_t;

enum class Life : std::uint8_t {
  persistent, ///< parameters and state: kept over steps, same place in every program of a run
  fed,        ///< written by the host before each step: inputs, labels, sample weights, hyper
  transient,  ///< from its first use to its last
};

/// One tensor in one tiling (physical layout: graph::Tensor::spatial).
struct Buffer {
  std::string name; ///< "<tensor>@<tiling>", made unique by "#2", …
  graph::TensorId tensor = graph::none;
  tiling::Tiling tiling;
  Life life = Life::transient;
  BufferId alias = -1; ///< shares the memory of that buffer (in place; that one's contents die here)
};

enum class Kind : std::uint8_t { compute, start, wait, slice, free };

struct Instruction {
  Kind kind = Kind::compute;
  graph::NodeId node = graph::none; ///< compute; for the others the node they serve (for reports)
  /// compute: nodes that follow `node` in the same call, each on the result of the one before in that one's place.
  std::vector<graph::NodeId> epilogue = {};
  std::vector<BufferId> inputs = {}; ///< compute: the node's, then the epilogue's further ones; start, slice: one; free
  std::vector<BufferId> outputs = {}; ///< compute: the last node's; start, slice: one
  tiling::Step step = {};             ///< start, slice
  std::int32_t token = -1;            ///< start, wait
  bool control = false;               ///< start: metrics, counted apart
};

struct Program {
  tiling::Mesh mesh;
  std::vector<Buffer> buffers; ///< persistent ones first, in the order of their tensors; then fed; then transient
  std::vector<Instruction> instructions;
  std::vector<BufferId> metrics; ///< replicated scalars to be read after the step: those of Graph::metrics it computes
  bool training = true;          ///< false: forward only (validation), dropout passes through
};

enum class Mode : std::uint8_t { train, evaluate };

/// Turns a graph and its plan into the program of a training step or of a validation batch (the nodes
/// graph::active_nodes names, same tilings). Redistributions follow tiling::path; each needed copy is made once and
/// freed after its last use.
Program lower(const graph::Graph& graph, const plan::Plan& plan, Mode mode);

/// A pass rewrites a program in place; `passes()` lists them in order. Any may be skipped by name.
struct Pass {
  std::string_view name;
  std::string_view what;
  void (*run)(const graph::Graph&, Program&);
};
const std::vector<Pass>& passes();
struct PassTime {
  std::string name;
  double seconds;
};
/// Throws Error for an unknown name.
void check_passes(const std::vector<std::string>& skip);
/// Runs every pass not in `skip`, verifying after each. Throws Error for an unknown name in `skip`.
std::vector<PassTime> run_passes(const graph::Graph& graph, Program& program,
                                 const std::vector<std::string>& skip = {});

/// Every buffer is written before it is read, holds the value its reader asks for (no parameter is read after its
/// update), is freed once; waits match starts, and each step's elements follow from its blocks. Throws Bug.
void verify(const graph::Graph& graph, const Program& program);
/// That, and: operand tilings fit the nodes' forms, and the bytes are the plan's. Throws Bug.
void verify(const graph::Graph& graph, const plan::Plan& plan, const Program& program);

/// Of a compute instruction: "dense", "conv2d+bias+relu".
std::string operators(const graph::Graph& graph, const Instruction& compute);

std::string to_string(const graph::Graph& graph, const Program& program);
std::uint64_t hash(const graph::Graph& graph, const Program& program);

/// Bytes received by all ranks together, data and control, summed over the instructions' steps.
struct PlannedBytes {
  std::int64_t data = 0, control = 0;
};
PlannedBytes planned_bytes(const graph::Graph& graph, const Program& program);

} // namespace soybean::program
