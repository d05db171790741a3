#pragma once
// What the numbers a program leaves (Graph::metrics) mean: the loss, the accuracy, and what else a model asks for by
// name. Called by the loop.
#include "graph/graph.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace soybean::train {

struct Measures {
  double loss = 0;
  double accuracy = 0;                                ///< NaN where the model has none
  std::vector<std::pair<std::string, double>> more;   ///< "top5_accuracy"
  std::vector<std::pair<std::string, double>> losses; ///< of each part, by name, where the loss has several
};

/// `values`: of the metrics that the program of a training step, or of validation, computes, in their order; counts are
/// of `samples`.
Measures measures(const graph::Graph& graph, bool training, std::span<const double> values, double samples);

} // namespace soybean::train
