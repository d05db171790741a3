// Every optimizer, with clipping, moving averages, settings by layer and frozen layers, against the values of
// tests/golden/optimizer_values.json (written by make_optimizer_values.py beside it): losses and norms of every step,
// weights and averages at the end.
#include "ops/autodiff.hpp"
#include "ops/case_parts.hpp"
#include "ops/compare.hpp"
#include "ops/golden.hpp"
#include "ops/layers.hpp"
#include "support/interpreter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace soybean::ops_test {
namespace {

using graph::Graph;
using graph::TensorId;
using nlohmann::json;
using support::Values;

constexpr double bound = 1e-11;

const json& golden() {
  static const json values = read_golden("optimizer_values.json");
  return values;
}

ops::Optimizer optimizer(const json& o) {
  ops::Optimizer result{.name = o["name"], .weight_decay = o.value("weight_decay", 0.0)};
  result.momentum = o.value("momentum", 0.0);
  result.nesterov = o.value("nesterov", false);
  result.beta1 = o.value("beta1", result.beta1);
  result.beta2 = o.value("beta2", result.beta2);
  result.eps = o.value("eps", o["name"] == "lars" ? 0 : result.eps);
  result.amsgrad = o.value("amsgrad", false);
  result.alpha = o.value("alpha", result.alpha);
  result.centered = o.value("centered", false);
  result.trust = o.value("trust", result.trust);
  result.decay_biases = o.value("decay_biases", true);
  result.clip_norm = o.value("clip_norm", 0.0);
  result.average_decay = o.value("average", 0.0);
  return result;
}

Graph network(const json& options) {
  Graph graph = start(DType::f64);
  TensorId x = ops::input_source(graph, 4, {6});
  x = ops::dense_layer(graph, "fc1", x, {.units = 5});
  const json own = options.value("layers", json::object()).value("fc1", json::object());
  graph::Layer& layer = graph.layers.back();
  layer.lr_scale = own.value("lr_scale", 1.0);
  if (own.contains("weight_decay")) layer.weight_decay = own["weight_decay"].get<double>();
  layer.frozen = own.value("frozen", false);
  x = ops::pointwise_layer(graph, "tanh", "tanh", x);
  return finish(graph, ops::dense_layer(graph, "fc2", x, {.units = 4}), optimizer(options));
}

support::Block& value(const Graph& graph, Values& values, const std::string& name) {
  const TensorId t = graph::find_tensor(graph, name);
  EXPECT_NE(t, graph::none) << name;
  return values[t];
}

Values first_values(const Graph& graph) {
  Values values = support::allocate(graph);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (tensor.producer != graph::none) continue;
    std::vector<double> elements(static_cast<std::size_t>(volume(tensor.shape)), 0.0); // states
    if (tensor.role == graph::Role::parameter) elements = golden()["initial"][tensor.name].get<std::vector<double>>();
    if (tensor.role == graph::Role::sample_weight) elements.assign(elements.size(), 0.25);
    support::set_logical(values[t], elements);
  }
  return values;
}

void feed(const Graph& graph, Values& values, const json& options, std::size_t step) {
  const std::size_t batch = step % golden()["inputs"].size();
  support::set_logical(value(graph, values, "input"), golden()["inputs"][batch].get<std::vector<double>>());
  support::set_logical(value(graph, values, "labels"), golden()["labels"][batch].get<std::vector<double>>());
  const auto t = static_cast<double>(step + 1);
  const std::vector<double> scalars{options["lr"], static_cast<double>(step),
                                    1 - std::pow(options.value("beta1", 0.9), t),
                                    std::sqrt(1 - std::pow(options.value("beta2", 0.999), t))};
  support::Block& hyper = value(graph, values, "hyper");
  for (std::int64_t i = 0; i < hyper.size(); ++i) hyper.set(i, scalars[static_cast<std::size_t>(i)]);
}

void expect_close(const support::Block& got, const json& expected, const std::string& what) {
  const std::vector<double> mine = support::logical(got);
  ASSERT_EQ(mine.size(), expected.size()) << what;
  Difference d;
  for (std::size_t i = 0; i < mine.size(); ++i) d.add(mine[i], expected[i]);
  EXPECT_LE(d.relative(), bound) << what;
}

class Optimizers : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Optimizers, FollowTheirReference) {
  const json& expected = golden()["cases"][GetParam()];
  const json& options = expected["options"];
  const Graph graph = network(options);
  ops::verify(graph);
  Values values = first_values(graph);
  const device::Exec exec(1);
  for (std::size_t step = 0; step < expected["losses"].size(); ++step) {
    feed(graph, values, options, step);
    support::run_serial(exec, graph, values);
    ASSERT_NEAR(values[graph.metrics[0]].get(0), expected["losses"][step].get<double>(), bound) << "step " << step;
    if (expected.contains("norms")) {
      ASSERT_NEAR(value(graph, values, "gradient_norm").get(0), expected["norms"][step].get<double>(), bound);
    }
    support::take_next(graph, values);
  }
  for (const auto& [name, weights] : expected["weights"].items())
    expect_close(value(graph, values, name), weights, name);
  if (expected.contains("averages")) {
    for (const auto& [name, weights] : expected["averages"].items())
      expect_close(value(graph, values, name + ".average"), weights, name + ".average");
  }
}

std::string name_of(const ::testing::TestParamInfo<std::size_t>& info) {
  return golden()["cases"][info.param]["name"];
}
INSTANTIATE_TEST_SUITE_P(Cases, Optimizers, ::testing::Range(std::size_t{0}, golden()["cases"].size()), name_of);

} // namespace
} // namespace soybean::ops_test
