#include "ops/losses.hpp"

#include "base/error.hpp"
#include "ops/building.hpp"
#include "ops/common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace soybean::ops {

using graph::Graph;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

namespace {

constexpr std::int64_t any_label = std::numeric_limits<std::int32_t>::max();

TensorId source(Graph& graph, Tensor tensor) {
  const TensorId found = graph::find_tensor(graph, tensor.name);
  return found != graph::none ? found : append_source(graph, std::move(tensor));
}

/// What a term compares its input with; brings the input into its shape.
TensorId target_of(Graph& graph, const LossTerm& term, std::int32_t layer, TensorId& input) {
  const Shape shape = graph.tensors[input].shape;
  if (!term.against_samples)
    return source(graph, {.name = "labels", .shape = {shape[0]}, .dtype = DType::i32, .role = Role::label});
  const TensorId samples = graph::find_tensor(graph, "input");
  const Shape wanted = graph.tensors[samples].shape;
  if (shape.size() == 2 && wanted.size() == 4 && volume(shape) == volume(wanted))
    input =
        append(graph, {.name = term.name + ".image",
                       .op = "reshape",
                       .attributes = {{"tail", Shape(wanted.begin() + 1, wanted.end())}, {"spatial", std::int64_t{1}}},
                       .inputs = {input},
                       .layer = layer})
            .front();
  return samples;
}

std::vector<TensorId> add_term(Graph& graph, const LossTerm& term, std::int64_t top_k) {
  const std::int32_t layer = add_layer_entry(graph, term.name, term.op);
  const std::string at = where(term.name, term.op);
  TensorId input = term.input;
  const Shape shape = graph.tensors[input].shape;
  if (term.op == "softmax_cross_entropy" && shape.size() != 2)
    fail("{}: input, got {} dims ({}) expected 2. put a flatten or dense layer before the loss", at, shape.size(),
         to_string(shape));
  const TensorId target = target_of(graph, term, layer, input);
  const TensorId weights = source(
      graph, {.name = "sample_weights", .shape = {shape[0]}, .dtype = graph.precision, .role = Role::sample_weight});
  graph::Attributes attributes;
  if (term.label_smoothing != 0) attributes.set("label_smoothing", term.label_smoothing);
  if (term.weight != 1) attributes.set("factor", term.weight);
  if (top_k != 0) attributes.set("top_k", top_k);
  return append(graph, {.name = term.name,
                        .op = term.op,
                        .attributes = std::move(attributes),
                        .inputs = {input, target, weights},
                        .layer = layer});
}

} // namespace

void add_losses(Graph& graph, const LossesOptions& options) {
  ensure(options.main < options.terms.size(), "losses without a main one");
  std::vector<std::vector<TensorId>> results;
  for (std::size_t i = 0; i < options.terms.size(); ++i)
    results.push_back(add_term(graph, options.terms[i], i == options.main ? options.top_k : 0));
  graph.logits = options.terms[options.main].input;
  graph.metrics = results[options.main];
  if (options.terms.size() == 1 && options.terms[0].weight == 1) return;
  graph::Attributes factors;
  std::vector<TensorId> parts;
  for (std::size_t i = 0; i < options.terms.size(); ++i) {
    factors.set(fmt::format("factor_{}", i), options.terms[i].weight);
    parts.push_back(results[i][0]);
  }
  const std::int32_t layer = add_layer_entry(graph, "loss", "total_loss");
  const TensorId total =
      append(graph, {.name = "loss", .op = "total_loss", .attributes = factors, .inputs = parts, .layer = layer})
          .front();
  graph.metrics.insert(graph.metrics.begin(), total);
  graph.only_in_training = {total};
  for (std::size_t i = 0; i < results.size(); ++i)
    if (i != options.main) {
      graph.metrics.insert(graph.metrics.end(), results[i].begin(), results[i].end());
      graph.only_in_training.insert(graph.only_in_training.end(), results[i].begin(), results[i].end());
    }
}

std::int64_t label_classes(const Graph& graph) {
  std::int64_t classes = any_label;
  for (const graph::Node& node : graph.nodes) {
    if (node.phase != graph::Phase::forward) continue;
    for (TensorId t : node.inputs) {
      if (graph.tensors[t].role != Role::label) continue;
      const std::int64_t features = input(graph, node, 0).shape[1];
      if (features > 1)
        classes = std::min(classes, features);
      else if (node.op != "mse")
        classes = std::min<std::int64_t>(classes, node.op == "binary_cross_entropy" ? 2 : 1);
    }
  }
  return classes;
}

} // namespace soybean::ops
