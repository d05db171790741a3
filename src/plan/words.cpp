#include "plan/words.hpp"

#include "ops/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;

/// Characters of UTF-8 text.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Of an index of the result that does not run over samples.
std::string word_of_result(const std::string& index) {
  if (index == "g") return "groups";
  if (index == "h" || index == "h'") return "height";
  if (index == "w" || index == "w'") return "width";
  return "features";
}

} // namespace

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{:.2f} kB", value / 1e3);
  return value < 1e12 ? fmt::format("{:.2f} MB", value / 1e6) : fmt::format("{:.2f} TB", value / 1e12);
}

std::string seconds_text(double seconds) {
  if (seconds == 0) return "-";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string price_text(Objective objective, std::int64_t price) {
  return objective == Objective::time ? seconds_text(1e-9 * static_cast<double>(price)) : bytes_text(price);
}

std::string index_word(const ops::Form& form, ops::Choice choice) {
  if (choice == ops::choose_replicated) return "replicated";
  if (choice == ops::choose_linear) return "partial";
  if (form.indices[choice].batch) return "batch";
  if (form.indices[choice].spatial) return form.indices[choice].name == "h" ? "height" : "width";
  for (const ops::OperandForm& output : form.outputs)
    for (const ops::OperandDim& dim : output)
      if (dim.index == choice) return word_of_result(form.indices[choice].name);
  return "sum";
}

std::string spread_text(const ops::Form& form, const tiling::Mesh& mesh, const std::vector<ops::Choice>& choices) {
  std::vector<std::pair<std::string, int>> words;
  for (std::size_t cut = 0; cut < choices.size(); ++cut) {
    const std::string word = index_word(form, choices[cut]);
    const auto same = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == word; });
    if (same == words.end())
      words.emplace_back(word, mesh.cuts[cut]);
    else
      same->second *= mesh.cuts[cut];
  }
  std::string text;
  for (const auto& [word, parts] : words) text += fmt::format("{}{}/{}", text.empty() ? "" : " ", word, parts);
  return text.empty() ? "whole" : text;
}

std::string split_text(const Graph& graph, const Plan& plan, NodeId node) {
  return spread_text(ops::form(graph, graph.nodes[node]), plan.mesh, plan.choices[node]);
}

std::string kind_of(const Graph& graph, const Plan& plan, NodeId node) {
  const ops::Form form = ops::form(graph, graph.nodes[node]);
  bool batch = false, spatial = false, other = false;
  for (ops::Choice choice : plan.choices[node]) {
    if (choice < 0) continue;
    const ops::LoopIndex& index = form.indices[choice];
    (index.batch ? batch : index.spatial ? spatial : other) = true;
  }
  if (batch + spatial + other > 1) return "hybrid";
  return batch ? "data" : spatial ? "spatial" : other ? "model" : "-";
}

NodeId main_node(const Graph& graph, int layer) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].layer == layer && graph.nodes[n].phase == graph::Phase::forward) return static_cast<NodeId>(n);
  return graph::none;
}

int layer_of(const Graph& graph, TensorId id) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (tensor.producer != graph::none) return graph.nodes[tensor.producer].layer;
  return tensor.consumers.empty() ? graph::none : graph.nodes[tensor.consumers[0]].layer;
}

std::int64_t data_bytes(const Graph& graph, const Plan& plan, TensorId tensor) {
  return graph::is_control(graph.tensors[tensor].role) ? 0 : plan.tensor_bytes[tensor];
}

std::vector<std::int64_t> bytes_by_layer(const Graph& graph, const Plan& plan) {
  std::vector<std::int64_t> bytes(graph.layers.size(), 0);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (const int layer = layer_of(graph, id); layer != graph::none) bytes[layer] += data_bytes(graph, plan, id);
  }
  return bytes;
}

std::string tiling_text(const tiling::Tiling& tiling) {
  const bool uniform = std::all_of(tiling.begin(), tiling.end(), [&](const auto& e) { return e == tiling[0]; });
  return to_string(uniform && tiling.size() > 1 ? tiling::Tiling{tiling[0]} : tiling);
}

std::string tiling_words(const tiling::Tiling& tiling, const tiling::Mesh& mesh) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < tiling.size(); begin = end) {
    int parts = 1;
    for (end = begin; end < tiling.size() && tiling[end] == tiling[begin]; ++end) parts *= mesh.cuts[end];
    text += fmt::format("{}{}/{}", text.empty() ? "" : " ", to_string(tiling::Tiling{tiling[begin]}), parts);
  }
  return text.empty() ? "whole" : text;
}

std::string status_text(const Plan& plan) {
  switch (plan.status) {
  case Status::optimal:
    return "proven optimal";
  case Status::bounded:
    return fmt::format("within {:.1f} % of the bound", std::max(0.1, 100 * plan.gap)); // never as if it were nothing
  case Status::named:
    break;
  }
  return "";
}

std::string table(const std::vector<Row>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - width(row[c]), ' ');
      line += "  " + (right[c] ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

} // namespace soybean::plan
