#include "plan/report.hpp"

#include "ops/operator.hpp"
#include "plan/planner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;
using Json = nlohmann::ordered_json;

/// "batch", "features" (any other index of the result), "sum" (an index summed over).
std::string index_word(const ops::Form& form, ops::Choice choice) {
  if (choice == ops::choose_replicated) return "replicated";
  if (choice == ops::choose_linear) return "partial";
  if (form.indices[choice].batch) return "batch";
  for (const ops::OperandForm& output : form.outputs)
    for (const ops::OperandDim& dim : output)
      if (dim.index == choice) return form.indices[choice].name == "g" ? "groups" : "features";
  return "sum";
}

/// "data", "model", "hybrid": which kinds of indices a layer's main node splits.
std::string kind_of(const Graph& graph, const Plan& plan, NodeId node) {
  const ops::Form form = ops::form(graph, graph.nodes[node]);
  bool batch = false, other = false;
  for (ops::Choice choice : plan.choices[node]) {
    const bool splits_batch = choice >= 0 && form.indices[choice].batch;
    batch = batch || splits_batch;
    other = other || (choice >= 0 && !splits_batch);
  }
  if (batch && other) return "hybrid";
  return batch ? "data" : other ? "model" : "-";
}

/// The layer a tensor's bytes are booked to: its producer's, or its first user's.
int layer_of(const Graph& graph, TensorId id) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (tensor.producer != graph::none) return graph.nodes[tensor.producer].layer;
  return tensor.consumers.empty() ? graph::none : graph.nodes[tensor.consumers[0]].layer;
}

std::string tiling_text(const tiling::Tiling& tiling) {
  const bool uniform = std::all_of(tiling.begin(), tiling.end(), [&](const auto& e) { return e == tiling[0]; });
  return to_string(uniform && tiling.size() > 1 ? tiling::Tiling{tiling[0]} : tiling);
}

using Row = std::vector<std::string>;

/// Columns padded to their widest entry; `right` says which are set to the right.
std::string table(const std::vector<Row>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line +=
          fmt::format("{}{}", c ? "  " : "  ",
                      right[c] ? fmt::format("{:>{}}", row[c], widths[c]) : fmt::format("{:<{}}", row[c], widths[c]));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string status_text(const Plan& plan) {
  switch (plan.status) {
  case Status::optimal:
    return "proven optimal";
  case Status::bounded:
    return fmt::format("within {:.1f} % of the bound", 100 * plan.gap);
  case Status::named:
    break;
  }
  return "";
}

/// ", 3.2 times that": a strategy's bytes beside the plan's.
std::string beside(const Graph& graph, const Plan& plan, const std::string& strategy) {
  const auto known = plan.others.find(strategy);
  const std::int64_t other =
      known != plan.others.end() ? known->second : make_plan(graph, plan.mesh, {.strategy = strategy}).bytes;
  return fmt::format("; {} {}{}", strategy, bytes_text(other),
                     plan.bytes > 0
                         ? fmt::format(" ({:.2f} times)", static_cast<double>(other) / static_cast<double>(plan.bytes))
                         : "");
}

/// What a tensor adds to the plan's bytes.
std::int64_t data_bytes(const Graph& graph, const Plan& plan, std::size_t tensor) {
  return graph::is_control(graph.tensors[tensor].role) ? 0 : plan.tensor_bytes[tensor];
}

Row layer_row(const Graph& graph, const Plan& plan, int layer, std::int64_t bytes) {
  Row row = {graph.layers[layer].name, "", "", "", "", bytes_text(bytes)};
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    if (node.layer != layer || node.phase != graph::Phase::forward) continue;
    row[1] = soybean::to_string(graph.tensors[node.outputs[0]].shape);
    if (!row[2].empty()) continue; // the first node is the main one
    row[2] = kind_of(graph, plan, static_cast<NodeId>(n));
    row[3] = split_text(graph, plan, static_cast<NodeId>(n));
    for (TensorId t : node.inputs)
      if (graph.tensors[t].role == graph::Role::parameter) row[4] = tiling_text(plan.stored[t]);
  }
  return row;
}

} // namespace

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{:.2f} kB", value / 1e3);
  return value < 1e12 ? fmt::format("{:.2f} MB", value / 1e6) : fmt::format("{:.2f} TB", value / 1e12);
}

std::string split_text(const Graph& graph, const Plan& plan, NodeId node) {
  const ops::Form form = ops::form(graph, graph.nodes[node]);
  std::vector<std::pair<std::string, int>> words;
  for (std::size_t cut = 0; cut < plan.choices[node].size(); ++cut) {
    const std::string word = index_word(form, plan.choices[node][cut]);
    const auto same = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == word; });
    if (same == words.end())
      words.emplace_back(word, plan.mesh.cuts[cut]);
    else
      same->second *= plan.mesh.cuts[cut];
  }
  std::string text;
  for (const auto& [word, parts] : words) text += fmt::format("{}{}/{}", text.empty() ? "" : " ", word, parts);
  return text.empty() ? "whole" : text;
}

std::string report(const Graph& graph, const Plan& plan, bool pinned) {
  const int ranks = tiling::ranks(plan.mesh);
  std::string text = fmt::format("{} on {} rank{} (mesh {}), strategy {}: {} moved per step", graph.name, ranks,
                                 ranks == 1 ? "" : "s", to_string(plan.mesh), plan.strategy, bytes_text(plan.bytes));
  if (const std::string status = status_text(plan); !status.empty()) text += ", " + status;
  if (ranks > 1)
    for (const std::string strategy : {"data", "model"})
      if (plan.strategy != strategy) text += beside(graph, plan, strategy) + (pinned ? " without the pins" : "");
  std::vector<std::int64_t> bytes(graph.layers.size(), 0);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (const int layer = layer_of(graph, static_cast<TensorId>(t)); layer != graph::none)
      bytes[layer] += data_bytes(graph, plan, t);
  std::vector<Row> rows = {{"layer", "output", "parallel", "split", "weight", "moved"}};
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
    rows.push_back(layer_row(graph, plan, static_cast<int>(layer), bytes[layer]));
  return text + '\n' + table(rows, {false, false, false, false, false, true});
}

std::string comparison(const std::vector<Compared>& plans, bool pinned) {
  const bool timed = std::any_of(plans.begin(), plans.end(), [](const Compared& c) { return c.seconds.has_value(); });
  std::vector<Row> rows = {{"strategy", "moved per step", "ratio", "step time", "memory per rank", ""}};
  const std::int64_t first = plans.empty() ? 0 : plans[0].plan.bytes;
  for (const Compared& compared : plans) {
    const Plan& plan = compared.plan;
    const double ratio = static_cast<double>(plan.bytes) / static_cast<double>(std::max<std::int64_t>(first, 1));
    rows.push_back({plan.strategy, bytes_text(plan.bytes), first > 0 ? fmt::format("{:.2f}", ratio) : "-",
                    compared.seconds ? fmt::format("{:.3f} ms", 1e3 * *compared.seconds) : "-",
                    bytes_text(compared.peak_memory.value_or(plan.held_bytes)), status_text(plan)});
  }
  if (!timed)
    for (Row& row : rows) row.erase(row.begin() + 3);
  std::vector<bool> right = {false, true, true, true, false};
  if (timed) right.insert(right.begin() + 3, true);
  return table(rows, right) + (pinned ? "  (the pins hold for the first line only)\n" : "");
}

std::string to_json(const Graph& graph, const JsonReport& report) {
  const Plan& first = report.plans.at(0).plan;
  Json json = {
      {"model", graph.name},           {"ranks", tiling::ranks(first.mesh)},          {"batch", report.batch},
      {"objective", report.objective}, {"planning_seconds", report.planning_seconds}, {"strategies", Json::object()},
      {"tensors", Json::array()}};
  for (const Compared& compared : report.plans) {
    const Plan& plan = compared.plan;
    Json& entry = json["strategies"][plan.strategy];
    entry = {{"bytes", plan.bytes}, {"seconds", nullptr}, {"peak_memory", nullptr}};
    if (compared.seconds) entry["seconds"] = *compared.seconds;
    if (compared.peak_memory) entry["peak_memory"] = *compared.peak_memory;
    entry["status"] = std::string(to_string(plan.status));
    entry["gap"] = plan.status == Status::named ? Json(nullptr) : Json(plan.gap);
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    json["tensors"].push_back({{"name", tensor.name},
                               {"shape", tensor.shape},
                               {"role", std::string(graph::to_string(tensor.role))},
                               {"tiling", tiling::to_string(first.stored[t])},
                               {"bytes", data_bytes(graph, first, t)}});
  }
  if (!report.machine.empty()) {
    json["machine"] = report.machine;
    for (const auto& [name, value] : report.time) json["time"][name] = value;
  }
  return json.dump() + '\n';
}

} // namespace soybean::plan
