#include "plan/diff.hpp"

#include "base/error.hpp"
#include "plan/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;

std::string signed_bytes(std::int64_t bytes) {
  if (bytes == 0) return "-";
  return (bytes > 0 ? "+" : "-") + bytes_text(std::abs(bytes));
}

std::string layer_name(const Graph& graph, int layer) {
  return layer == graph::none ? "" : graph.layers[layer].name;
}

/// "1 node", "2 nodes".
std::string count_text(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<NodeId> nodes_apart(const Graph& graph, const Plan& a, const Plan& b) {
  std::vector<NodeId> nodes;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].twin == graph::none && a.choices[n] != b.choices[n]) nodes.push_back(static_cast<NodeId>(n));
  return nodes;
}

/// The largest difference first. The next value of a tensor lies where the tensor does.
std::vector<TensorId> tensors_apart(const Graph& graph, const Plan& a, const Plan& b) {
  std::vector<TensorId> tensors;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].previous == graph::none && !graph::is_control(graph.tensors[t].role) &&
        (a.stored[t] != b.stored[t] || a.tensor_bytes[t] != b.tensor_bytes[t]))
      tensors.push_back(static_cast<TensorId>(t));
  const auto apart = [&](TensorId t) { return std::abs(b.tensor_bytes[t] - a.tensor_bytes[t]); };
  std::stable_sort(tensors.begin(), tensors.end(), [&](TensorId x, TensorId y) { return apart(x) > apart(y); });
  return tensors;
}

std::string node_table(const Graph& graph, const NamedPlan& a, const NamedPlan& b, const std::vector<NodeId>& nodes) {
  std::vector<Row> rows = {{"node", "operator", "layer", "in A", "in B"}};
  for (const NodeId n : nodes)
    rows.push_back({graph.nodes[n].name, graph.nodes[n].op, layer_name(graph, graph.nodes[n].layer),
                    split_text(graph, a.plan, n), split_text(graph, b.plan, n)});
  return table(rows, {false, false, false, false, false});
}

std::string tensor_table(const Graph& graph, const NamedPlan& a, const NamedPlan& b,
                         const std::vector<TensorId>& tensors) {
  std::vector<Row> rows = {{"tensor", "layer", "in A", "in B", "moved in A", "moved in B", "difference"}};
  const auto row = [](std::string name, std::string layer, std::string in_a, std::string in_b, std::int64_t bytes_a,
                      std::int64_t bytes_b) {
    return Row{std::move(name),
               std::move(layer),
               std::move(in_a),
               std::move(in_b),
               bytes_text(bytes_a),
               bytes_text(bytes_b),
               signed_bytes(bytes_b - bytes_a)};
  };
  std::int64_t sum_a = 0, sum_b = 0;
  for (const TensorId t : tensors) {
    sum_a += a.plan.tensor_bytes[t];
    sum_b += b.plan.tensor_bytes[t];
    rows.push_back(row(graph.tensors[t].name, layer_name(graph, layer_of(graph, t)),
                       tiling_words(a.plan.stored[t], a.plan.mesh), tiling_words(b.plan.stored[t], b.plan.mesh),
                       a.plan.tensor_bytes[t], b.plan.tensor_bytes[t]));
  }
  rows.push_back(row("all others", "", "", "", a.plan.bytes - sum_a, b.plan.bytes - sum_b));
  rows.push_back(row("total", "", "", "", a.plan.bytes, b.plan.bytes));
  return table(rows, {false, false, false, false, true, true, true});
}

} // namespace

std::string difference(const Graph& graph, const NamedPlan& a, const NamedPlan& b) {
  ensure(a.plan.mesh == b.plan.mesh, "plans of one mesh are compared");
  std::string text = fmt::format("{} on {} ranks (mesh {})\n  A  {}: {} moved per step\n  B  {}: {}, {}", graph.name,
                                 tiling::ranks(a.plan.mesh), to_string(a.plan.mesh), a.name, bytes_text(a.plan.bytes),
                                 b.name, bytes_text(b.plan.bytes),
                                 a.plan.bytes == b.plan.bytes ? "as much" : signed_bytes(b.plan.bytes - a.plan.bytes));
  if (a.plan.bytes > 0)
    text += fmt::format(" ({:.2f} times)", static_cast<double>(b.plan.bytes) / static_cast<double>(a.plan.bytes));
  const std::vector<NodeId> nodes = nodes_apart(graph, a.plan, b.plan);
  const std::vector<TensorId> tensors = tensors_apart(graph, a.plan, b.plan);
  if (nodes.empty() && tensors.empty()) return text + "\nthe plans are the same\n";
  std::set<int> layers;
  for (const NodeId n : nodes) layers.insert(graph.nodes[n].layer);
  for (const TensorId t : tensors) layers.insert(layer_of(graph, t));
  layers.erase(graph::none);
  text += fmt::format("\n{} and {} of {} differ\n", count_text(nodes.size(), "node"),
                      count_text(tensors.size(), "tensor"), count_text(layers.size(), "layer"));
  if (!nodes.empty()) text += "\n" + node_table(graph, a, b, nodes);
  if (!tensors.empty()) text += "\n" + tensor_table(graph, a, b, tensors);
  return text;
}

} // namespace soybean::plan
