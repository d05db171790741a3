#pragma once
// The predicted step as bars that can be drawn: kernels and transfers, short neighbours taken together. Called inside
// src/explain.
#include "explain/costed.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace soybean::explain {

struct TimelineBar {
  double begin = 0, end = 0; ///< seconds from the start of the step
  std::string what;          ///< "conv2: conv2d+bias+relu", "17 kernels"
  int kind = 0;              ///< of kernels: graph::Phase, or 3 for packing
};

struct TimelineItem {
  std::string what, layer;
  double seconds = 0;
};

struct Timeline {
  std::vector<TimelineBar> kernels, transfers;
  std::vector<TimelineItem> longest; ///< kernels and transfers, the longest first
};

/// Of a plan that has a step. `longest`: how many of those are listed.
Timeline make_timeline(const graph::Graph& graph, const Costed& costed, std::size_t longest);

} // namespace soybean::explain
