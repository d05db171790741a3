#include "train/measures.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace soybean::train {

namespace {

/// "top5" of "main.top5"; "" of a loss itself.
std::string_view suffix(const graph::Graph& graph, graph::TensorId metric) {
  const graph::Tensor& tensor = graph.tensors[metric];
  const std::string_view node = graph.nodes[tensor.producer].name, name = tensor.name;
  return name.size() > node.size() ? name.substr(node.size() + 1) : std::string_view();
}

} // namespace

Measures measures(const graph::Graph& graph, bool training, std::span<const double> values, double samples) {
  Measures result;
  result.accuracy = std::numeric_limits<double>::quiet_NaN();
  std::size_t at = 0;
  for (graph::TensorId metric : graph::reported_metrics(graph, training)) {
    const graph::Node& node = graph.nodes[graph.tensors[metric].producer];
    ensure(at < values.size(), "a program without some of its metrics");
    const double value = values[at++];
    if (node.phase != graph::Phase::forward) continue; // of gradients
    const std::string_view what = suffix(graph, metric);
    if (at == 1) result.loss = value;
    if (what.empty()) {
      if (!graph.only_in_training.empty() && node.op != "total_loss") result.losses.emplace_back(node.name, value);
    } else if (std::find(graph.only_in_training.begin(), graph.only_in_training.end(), metric) !=
               graph.only_in_training.end()) {
      continue; // of an auxiliary head
    } else if (what == "correct") {
      result.accuracy = value / samples;
    } else {
      result.more.emplace_back(fmt::format("{}_accuracy", what), value / samples);
    }
  }
  return result;
}

} // namespace soybean::train
