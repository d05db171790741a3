#pragma once
// A plan: the tiling of every tensor and what every node does on every cut, with its cost. Made by src/plan, read by
// lowering, reports and plan files.
#include "graph/graph.hpp"
#include "ops/form.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace soybean::plan {

enum class Objective : std::uint8_t {
  bytes, ///< moved in one step, all ranks together
  time,  ///< of one step, on a machine: its kernels and moves one after the other
};

enum class Status : std::uint8_t {
  optimal, ///< proven
  bounded, ///< within `gap` of a proven lower bound
  named,   ///< a named strategy or a file: no claim
};

struct Plan {
  std::string strategy; ///< "auto", "data", "model", "owt", "kcut", "file"
  tiling::Mesh mesh;
  std::vector<std::vector<ops::Choice>> choices; ///< per node, per cut
  /// Per tensor: the one partial-free tiling it is kept in. A tensor whose only consumer takes it partial is never
  /// stored; its entry is that partial tiling. Sources that are not kept over steps (inputs, labels) have the tiling of
  /// their first consumer. The tensor that is `next` of a parameter or state has that one's stored tiling.
  std::vector<tiling::Tiling> stored;
  std::vector<std::int64_t> tensor_bytes; ///< moved for each tensor in one step, all ranks together
  std::int64_t bytes = 0;                 ///< their sum, control traffic left out
  std::int64_t control_bytes = 0;         ///< metrics, and scalars the updates depend on
  std::int64_t nanoseconds = 0;           ///< of one step, where that is the objective
  std::int64_t held_bytes = 0;            ///< stored plus copied bytes of the fullest rank (the tie break)
  Objective objective = Objective::bytes; ///< what is the least; not saved
  Status status = Status::named;
  double gap = 0;                             ///< (price - bound) / bound
  std::map<std::string, std::int64_t> others; ///< prices of other strategies' plans, where they are known; not saved

  /// Of what is held, in units of the objective, while a search looks for plans that hold less; else 0.
  std::int64_t penalty = 0;

  std::int64_t price() const { return (objective == Objective::time ? nanoseconds : bytes) + penalty; }
};

/// How the distinct tilings of a tensor come about under a plan: produced → stored → each needed one.
struct TensorMoves {
  tiling::Tiling produced;            ///< empty for a source
  bool stored = true;                 ///< false: passes from producer to its one consumer partial
  std::vector<tiling::Tiling> needed; ///< distinct, in the order of first use, all different from the stored one
};
TensorMoves moves(const graph::Graph& graph, const Plan& plan, graph::TensorId tensor);

/// Bytes a step moves for one tensor under the plan, all ranks together.
std::int64_t cost_bytes(const graph::Graph& graph, const Plan& plan, graph::TensorId tensor);

/// Fills tensor_bytes, bytes, control_bytes, held_bytes from choices and stored.
void evaluate(const graph::Graph& graph, Plan& plan);

/// Checks that every choice is allowed by its form, stored tilings are legal, twins agree and the costs add up. Throws
/// Bug.
void verify(const graph::Graph& graph, const Plan& plan);

std::string to_string(const graph::Graph& graph, const Plan& plan); ///< stable text, for tests and hashes
std::string_view to_string(Status status);

} // namespace soybean::plan
