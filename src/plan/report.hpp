#pragma once
// Plans in words: the table of layers a run prints, the comparison of strategies, and the same for scripts. Called by
// the programs and src/train.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "plan/words.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace soybean::plan {

/// The plan's bytes beside those of data and model parallelism, which know of no pins: `pinned` has that said. A line.
std::string headline(const graph::Graph& graph, const Plan& plan, bool pinned = false);

/// The headline, then one line per layer: output shape, how the layer is split (data, spatial, model, hybrid; forward),
/// weight's tiling, bytes moved in one step (without control traffic). Ends with a newline.
std::string report(const graph::Graph& graph, const Plan& plan, bool pinned = false);

/// A strategy's plan with what only the caller knows.
struct Compared {
  Plan plan;
  std::optional<std::int64_t> peak_memory; ///< bytes of the fullest rank
  std::optional<double> seconds = {};      ///< of a step, where there is a machine to predict it for
  std::string bottleneck = {};             ///< the layer or link that takes most
};

/// One line per strategy: bytes, ratio to the first one's, step time and its ratio where there is one, memory per rank
/// (held_bytes if no peak is given), what takes most, what is proven. `pinned`: the first one has pins, the others not.
std::string comparison(const std::vector<Compared>& plans, bool pinned = false);

/// What `soybean_plan --json` prints (DESIGN §7). The first plan is the one whose tensors are listed; their bytes add
/// up to its bytes (those of metrics are control traffic and count as 0).
struct JsonReport {
  std::int64_t batch = 0;
  std::string objective = "bytes";
  double planning_seconds = 0;
  std::vector<Compared> plans;
  /// Where there is a machine: its name, and figures of the first plan's step, which become the object "time".
  std::string machine = {};
  std::vector<std::pair<std::string, double>> time = {};
};
std::string to_json(const graph::Graph& graph, const JsonReport& report);

} // namespace soybean::plan
