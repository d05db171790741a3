#include "plan/report.hpp"

#include "ops/operator.hpp"
#include "plan/planner.hpp"
#include "plan/savings.hpp"

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

/// "; data 7.75 MB (3.20 times)": a strategy's price beside the plan's. Nothing where it takes the machine to know it.
std::string beside(const Graph& graph, const Plan& plan, const std::string& strategy) {
  const auto known = plan.others.find(strategy);
  if (known == plan.others.end() && plan.objective == Objective::time) return "";
  const std::int64_t price = plan.price(), other = known != plan.others.end()
                                                       ? known->second
                                                       : make_plan(graph, plan.mesh, {.strategy = strategy}).bytes;
  return fmt::format("; {} {}{}", strategy, price_text(plan.objective, other),
                     price > 0 ? fmt::format(" ({:.2f} times)", static_cast<double>(other) / static_cast<double>(price))
                               : "");
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

std::string headline(const Graph& graph, const Plan& plan, bool pinned) {
  const int ranks = tiling::ranks(plan.mesh);
  std::string text = fmt::format("{} on {} rank{} (mesh {}), strategy {}: {} moved{}", graph.name, ranks,
                                 ranks == 1 ? "" : "s", to_string(plan.mesh), plan.strategy, bytes_text(plan.bytes),
                                 plan.objective == Objective::time
                                     ? fmt::format(", {} per step", price_text(plan.objective, plan.price()))
                                     : " per step");
  if (const std::string status = status_text(plan); !status.empty()) text += ", " + status;
  text += savings_text(graph);
  if (ranks > 1)
    for (const std::string strategy : {"data", "model"})
      if (const std::string other = plan.strategy == strategy ? "" : beside(graph, plan, strategy); !other.empty())
        text += other + (pinned ? " without the pins" : "");
  return text + '\n';
}

std::string report(const Graph& graph, const Plan& plan, bool pinned) {
  const std::vector<std::int64_t> bytes = bytes_by_layer(graph, plan);
  std::vector<Row> rows = {{"layer", "output", "parallel", "split", "weight", "moved"}};
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
    rows.push_back(layer_row(graph, plan, static_cast<int>(layer), bytes[layer]));
  return headline(graph, plan, pinned) + table(rows, {false, false, false, false, false, true});
}

std::string comparison(const std::vector<Compared>& plans, bool pinned) {
  const bool timed = std::any_of(plans.begin(), plans.end(), [](const Compared& c) { return c.seconds.has_value(); });
  std::vector<Row> rows = {
      {"strategy", "moved per step", "ratio", "step time", "ratio", "memory per rank", "takes most", ""}};
  const auto ratio = [](double part, double whole) { return whole > 0 ? fmt::format("{:.2f}", part / whole) : "-"; };
  for (const Compared& compared : plans) {
    const Plan& plan = compared.plan;
    rows.push_back({plan.strategy, bytes_text(plan.bytes),
                    ratio(static_cast<double>(plan.bytes), static_cast<double>(plans[0].plan.bytes)),
                    compared.seconds ? fmt::format("{:.3f} ms", 1e3 * *compared.seconds) : "-",
                    ratio(compared.seconds.value_or(0), plans[0].seconds.value_or(0)),
                    bytes_text(compared.peak_memory.value_or(plan.held_bytes)), compared.bottleneck,
                    status_text(plan)});
  }
  std::vector<bool> right = {false, true, true, true, true, true, false, false};
  const auto drop = [&](std::ptrdiff_t column) {
    for (Row& row : rows) row.erase(row.begin() + column);
    right.erase(right.begin() + column);
  };
  if (std::all_of(plans.begin(), plans.end(), [](const Compared& c) { return c.bottleneck.empty(); })) drop(6);
  if (!timed) {
    drop(4);
    drop(3);
  }
  return table(rows, right) + (pinned ? "  (the pins hold for the first line only)\n" : "");
}

std::string to_json(const Graph& graph, const JsonReport& report) {
  const Plan& first = report.plans.at(0).plan;
  Json json = {{"model", graph.name},
               {"ranks", tiling::ranks(first.mesh)},
               {"batch", report.batch},
               {"objective", report.objective},
               {"planning_seconds", report.planning_seconds},
               {"microbatches", graph.microbatches},
               {"recompute", std::string(graph::to_string(graph.recompute))},
               {"strategies", Json::object()},
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
                               {"bytes", data_bytes(graph, first, static_cast<TensorId>(t))}});
  }
  if (!report.machine.empty()) {
    json["machine"] = report.machine;
    for (const auto& [name, value] : report.time) json["time"][name] = value;
  }
  return json.dump() + '\n';
}

} // namespace soybean::plan
