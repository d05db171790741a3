#pragma once
// What else could have been done with a layer, and what that would move: with everything else as it is (a look at every
// layer, in a moment) or planned anew (one node, each way a search). Hides the search. Called by src/explain.
#include "graph/graph.hpp"
#include "ops/form.hpp"
#include "plan/plan.hpp"
#include "plan/planner.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace soybean::plan {

/// Bytes of one step, all ranks together, control traffic left out.
struct Traffic {
  std::int64_t weights = 0;     ///< of tensors that do not run over samples: weights, their gradients, statistics
  std::int64_t activations = 0; ///< of tensors that do, and of their gradients
  std::int64_t total() const { return weights + activations; }
};

/// Of all tensors.
Traffic traffic(const graph::Graph& graph, const Plan& plan);

/// A layer's work split in another way.
struct OtherSplit {
  std::string split; ///< of its main node: "features/8"
  Traffic moved;     ///< of all tensors the layer's nodes make or use
};

/// A layer as planned, and otherwise split while all other layers stay as they are: the cheapest way found to do its
/// own nodes then and to store the tensors they touch. Looked at are splits that are the same on every cut and, for
/// layers that split the batch on some cuts alone or can do nothing else, those that differ from the plan on a single
/// cut. Nothing where there is no such way that keeps every rank busy.
struct LayerSplits {
  Traffic planned;                 ///< of all tensors the layer's nodes make or use
  std::optional<OtherSplit> batch; ///< the batch in more parts (where it is split on every cut: in as many)
  std::optional<OtherSplit> other; ///< the batch in fewer parts (where it is not split: in none)
};

/// Per layer of the graph. One rank: nothing but `planned`.
std::vector<LayerSplits> layer_splits(const graph::Graph& graph, const Plan& plan);

/// In a few words why a layer of that kind (kind_of in words.hpp) is as it is: "weights outweigh activations
/// 40:1", "features/8 would move 3.2 times as much"; empty where there is nothing to say.
std::string reason(const std::string& kind, const LayerSplits& splits);

/// What a node could do on the cuts, and the best plan in which it does nothing else.
struct Way {
  std::vector<ops::Choice> choices; ///< one of these on each cut
  Plan plan;
  bool exact = false; ///< no plan of this way is cheaper; else it is the best one found
};

struct Ways {
  std::vector<Way> found;              ///< by ascending price; what the plan does is one of them, with that very plan
  std::size_t planned = 0;             ///< which one that is
  std::vector<std::string> impossible; ///< words of what no plan can do
  bool mixed = false;                  ///< mixes of two kinds have been looked at, and are here where they are cheaper
};

/// Ways of one node under strategy "auto" with the options' pins: the same index on every cut, and, where that is not
/// too much to search, mixes of two that are cheaper than either alone.
Ways ways(const graph::Graph& graph, const Plan& plan, graph::NodeId node, const Options& options);

} // namespace soybean::plan
