#pragma once
// Layers under a plan: how each is split and why, what it moves, takes and holds; and the comparison of strategies,
// with that table above it. Called by soybean_plan and by the page.
#include "explain/costed.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace soybean::explain {

struct LayerFigures {
  std::string kind;              ///< "data", "spatial", "model", "hybrid", "-"
  std::string split;             ///< of its main node: "batch/4 features/2"
  std::string why;               ///< from what the alternatives would move, the rest as planned
  std::int64_t bytes = 0;        ///< its tensors move, all ranks together
  std::int64_t held = 0;         ///< its share of what the fullest rank holds at the peak
  std::optional<double> seconds; ///< computing, packing and waiting
};

/// As Graph::layers.
std::vector<LayerFigures> layer_figures(const Subject& subject, const Costed& costed);

/// The plan's headline, a line per layer, and what the columns mean.
std::string layer_table(const Subject& subject, const Costed& costed);

/// One line per plan, the first of them being what the others are measured by (plan::comparison).
std::string strategy_table(const Subject& subject, const std::vector<Costed>& plans);

} // namespace soybean::explain
