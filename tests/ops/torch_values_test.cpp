// Models of one or a few layers against PyTorch's values in fp64: tests/golden/operator_values.json, written by
// make_operator_values.py beside it, which says what is in it.
#include "base/error.hpp"
#include "config/table.hpp"
#include "frontend/toml.hpp"
#include "ops/autodiff.hpp"
#include "ops/compare.hpp"
#include "ops/golden.hpp"
#include "ops/layers.hpp"
#include "support/interpreter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace soybean::ops_test {
namespace {

using graph::Graph;
using graph::TensorId;
using nlohmann::json;
using support::Values;

constexpr double bound = 1e-11;

const json& all_cases() {
  static const json cases = read_golden("operator_values.json");
  return cases;
}

/// The forward graph of a model with its input multiplied by a parameter `factor` of the same shape.
Graph with_factor(const Graph& model) {
  Graph graph{.name = model.name, .precision = model.precision};
  graph.layers = model.layers;
  std::vector<TensorId> mapped(model.tensors.size(), graph::none);
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    graph::Tensor tensor = model.tensors[t];
    if (tensor.producer != graph::none) continue;
    tensor.consumers.clear();
    mapped[t] = ops::append_source(graph, tensor);
    if (tensor.role != graph::Role::input || tensor.name != "input") continue;
    tensor.name = "factor";
    tensor.role = graph::Role::parameter;
    const TensorId factor = ops::append_source(graph, tensor);
    mapped[t] = ops::append(graph, {.name = "scaled", .op = "mul", .inputs = {mapped[t], factor}}).front();
  }
  for (const graph::Node& node : model.nodes) {
    ops::NewNode copy{.name = node.name, .op = node.op, .attributes = node.attributes, .layer = node.layer};
    for (TensorId t : node.inputs) copy.inputs.push_back(mapped[t]);
    const bool has_target = node.op == "mse" || node.op == "binary_cross_entropy";
    if (has_target && model.tensors[node.inputs[1]].role == graph::Role::input) // the samples as they are
      copy.inputs[1] = graph::find_tensor(graph, "input");
    copy.twin = node.twin == graph::none ? graph::none : node.twin + 1; // after "scaled"
    const std::vector<TensorId> results = ops::append(graph, std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i) mapped[node.outputs[i]] = results[i];
  }
  for (std::size_t t = 0; t < model.tensors.size(); ++t)
    if (const TensorId state = model.tensors[t].in_evaluation; state != graph::none)
      graph.tensors[mapped[t]].in_evaluation = mapped[state];
  for (TensorId t : model.metrics) graph.metrics.push_back(mapped[t]);
  for (TensorId t : model.only_in_training) graph.only_in_training.push_back(mapped[t]);
  graph.logits = mapped[model.logits];
  return graph;
}

Graph build(const json& given) {
  const config::Table root = config::Table::parse("[model]\n" + given["model"].get<std::string>(), "case.toml");
  Graph graph =
      with_factor(frontend::build_graph(root.table("model"), given["batch"], DType::f64, 1, given.contains("mixed")));
  root.report_unread();
  ops::add_backward_and_update(graph, {});
  ops::verify(graph);
  return graph;
}

TensorId find(const Graph& graph, const std::string& name) {
  const TensorId t = graph::find_tensor(graph, name);
  if (t == graph::none) throw Bug("the graph has no tensor " + name);
  return t;
}

Values values_of(const Graph& graph, const json& inputs) {
  Values values = support::allocate(graph);
  support::fill_sources(graph, values, 1); // hyper
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.producer == graph::none && tensor.role != graph::Role::hyper)
      support::set_logical(values[find(graph, tensor.name)], inputs.at(tensor.name).get<std::vector<double>>());
  return values;
}

void compare(const support::Block& got, const json& expected, const std::string& what) {
  const std::vector<double> ours = support::logical(got), theirs = expected.get<std::vector<double>>();
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  Difference d;
  for (std::size_t i = 0; i < ours.size(); ++i) d.add(ours[i], theirs[i]);
  EXPECT_LE(d.error, bound * std::max(d.norm, 1e-3)) << what; // what cancels is zero only but for rounding
}

class TorchValues : public ::testing::TestWithParam<std::string> {};

TEST_P(TorchValues, AreOurs) {
  const json& given = all_cases().at(GetParam());
  const Graph graph = build(given);
  const device::Exec exec(1);
  Values values = values_of(graph, given["inputs"]);
  support::run_serial(exec, graph, values);
  for (const auto& [name, expected] : given["values"].items()) compare(values[find(graph, name)], expected, name);
  for (const auto& [name, expected] : given["gradients"].items()) {
    const graph::Tensor& next = graph.tensors[graph.tensors[find(graph, name)].next];
    compare(values[graph.nodes[next.producer].inputs[1]], expected, "gradient of " + name);
  }
  if (given["evaluated"].empty()) return;
  values = values_of(graph, given["inputs"]);
  support::run_serial(exec, graph, values, support::Part::forward, {.training = false});
  for (const auto& [name, expected] : given["evaluated"].items())
    compare(values[find(graph, name)], expected, name + " in validation");
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& item : all_cases().items()) all.push_back(item.key());
  return all;
}
INSTANTIATE_TEST_SUITE_P(Models, TorchValues, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

} // namespace
} // namespace soybean::ops_test
