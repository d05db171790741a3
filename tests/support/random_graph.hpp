#pragma once
// Small random training graphs for property tests of planner, lowering and executor: convolutions (strided, dilated,
// grouped), pools, joins and slices, other orders and sizes of images, norms, arithmetic, activations, dropout,
// residual sums and products, flatten, dense layers, shared weights; odd and prime extents, batches of 1 to 9, some in
// several parts, some with recomputation; a random optimizer, with clipping, averages and layers that are frozen or
// have their own rates. Everything is a function of the seed.
#include "graph/graph.hpp"

#include <cstdint>
#include <optional>

namespace soybean::support {

struct RandomGraphOptions {
  DType precision = DType::f64;
  int layers = 6;                                 ///< at most about so many before the classifier
  std::int64_t max_batch = 9;                     ///< at least 1
  std::optional<graph::Recompute> recompute = {}; ///< nothing: a function of the seed, too
};

/// Forward, backward and update. The same seed and options always give the same graph; it passes ops::verify.
graph::Graph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

} // namespace soybean::support
