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

/// Numbers for every element of the input, laid out as it is. Losses of inputs of one shape but another layout have
/// sources of their own for the same numbers.
TensorId targets_like(Graph& graph, const LossTerm& term) {
  const Tensor& x = graph.tensors[term.input];
  Tensor wanted{.name = "targets",
                .shape = x.shape,
                .units = x.units,
                .dtype = graph.precision,
                .role = Role::target,
                .spatial = x.spatial};
  const TensorId found = graph::find_tensor(graph, wanted.name);
  if (found == graph::none) return append_source(graph, std::move(wanted));
  const Tensor& other = graph.tensors[found];
  if (other.shape != wanted.shape)
    fail("{}: target, got targets for shape {} expected {}, that of another loss with targets. samples have targets of "
         "one shape",
         where(term.name, term.op), to_string(wanted.shape), to_string(other.shape));
  if (other.spatial == wanted.spatial && other.units == wanted.units) return found;
  wanted.name += "." + term.name;
  return source(graph, std::move(wanted));
}

/// One per sample, or of logits of sequences one per position; all losses read the same.
TensorId labels_for(Graph& graph, const LossTerm& term) {
  const Shape& shape = graph.tensors[term.input].shape;
  const Shape wanted = term.op == "softmax_cross_entropy" ? label_shape(shape) : Shape{shape[0]};
  const TensorId labels = source(graph, {.name = "labels", .shape = wanted, .dtype = DType::i32, .role = Role::label});
  if (graph.tensors[labels].shape != wanted)
    fail("{}: labels, got {} of another loss expected {}. samples have labels of one shape", where(term.name, term.op),
         to_string(graph.tensors[labels].shape), to_string(wanted));
  return labels;
}

/// What a term compares its input with; brings the input into its shape.
TensorId target_of(Graph& graph, const LossTerm& term, std::int32_t layer, TensorId& input) {
  const Shape shape = graph.tensors[input].shape;
  if (term.against == Against::targets) return targets_like(graph, term);
  if (term.against == Against::labels) return labels_for(graph, term);
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

void check_classes(const std::string& at, const LossTerm& term, std::int64_t classes, std::int64_t top_k) {
  if (!(term.label_smoothing >= 0 && term.label_smoothing <= 1))
    fail("{}: label_smoothing, got {} expected between 0 and 1", at, term.label_smoothing);
  if (top_k != 0 && (top_k < 2 || top_k > classes))
    fail("{}: top_k, got {} expected between 2 and {}, the number of classes", at, top_k, classes);
}

/// What a loss of classes is told of samples; the last two of mixed ones alone.
struct Known {
  TensorId labels = graph::none, weights = graph::none, partners = graph::none, shares = graph::none;
  bool mixed() const { return partners != graph::none; }
};

/// softmax_cross_entropy as nodes that let the classes be split; results that are metrics.
std::vector<TensorId> add_split_term(Graph& graph, const LossTerm& term, std::int64_t parts, std::int64_t top_k,
                                     const Known& known, std::int32_t layer) {
  const TensorId logits = term.input, labels = known.labels;
  const bool smooth = term.label_smoothing != 0;
  const auto add = [&](const std::string& suffix, const std::string& op, graph::Attributes attributes,
                       std::vector<TensorId> inputs) {
    return append(graph, {.name = term.name + suffix,
                          .op = op,
                          .attributes = std::move(attributes),
                          .inputs = std::move(inputs),
                          .layer = layer});
  };
  std::vector<TensorId> inputs = add(".parts", "softmax_parts", {{"parts", parts}}, {logits});
  const std::vector<TensorId> target =
      add(".target", "label_logit", {{"mean", std::int64_t{smooth}}}, {logits, labels});
  inputs.insert(inputs.end(), {target[0], labels, known.weights});
  graph::Attributes attributes{{"classes", graph.tensors[logits].shape[1]}};
  if (smooth) {
    inputs.push_back(target[1]);
    attributes.set("label_smoothing", term.label_smoothing);
  }
  if (term.weight != 1) attributes.set("factor", term.weight);
  if (top_k != 0) {
    inputs.push_back(add(".rank", "label_rank", {}, {logits, target[0], labels}).front());
    attributes.set("top_k", top_k);
  }
  if (known.mixed()) {
    const TensorId partner =
        add(".partner", "label_logit", {{"mean", std::int64_t{0}}}, {logits, known.partners}).front();
    inputs.insert(inputs.end(), {partner, known.partners, known.shares});
  }
  std::vector<TensorId> results = add("", "split_softmax_loss", std::move(attributes), std::move(inputs));
  results.erase(results.begin() + 2); // logsumexp, for the gradient
  return results;
}

std::vector<TensorId> add_term(Graph& graph, const LossTerm& term, std::int64_t top_k, bool mixed) {
  const std::int32_t layer = add_layer_entry(graph, term.name, term.op);
  const std::string at = where(term.name, term.op);
  TensorId input = term.input;
  const Shape shape = graph.tensors[input].shape;
  const bool classes = term.op == "softmax_cross_entropy";
  if (classes && shape.size() != 2 && !is_sequence(shape))
    fail("{}: input, got {} dims ({}) expected 2. put a flatten or dense layer before the loss", at, shape.size(),
         to_string(shape));
  if (classes) check_classes(at, term, shape[1], top_k);
  const TensorId target = target_of(graph, term, layer, input);
  const TensorId weights = source(
      graph, {.name = "sample_weights", .shape = {shape[0]}, .dtype = graph.precision, .role = Role::sample_weight});
  Known known{.labels = target, .weights = weights};
  std::vector<TensorId> inputs{input, target, weights};
  if (classes && mixed && is_sequence(shape)) fail("{}: input, got sequences expected samples that can be mixed", at);
  if (classes && mixed) {
    known.partners = source(
        graph, {.name = "partner_labels", .shape = {shape[0]}, .dtype = DType::i32, .role = Role::partner_label});
    known.shares =
        source(graph, {.name = "shares", .shape = {shape[0]}, .dtype = graph.precision, .role = Role::share});
    inputs.insert(inputs.end(), {known.partners, known.shares});
  }
  const std::int64_t parts = classes ? term.parts.value_or(class_parts(shape[1])) : 1;
  if (parts > 1 && (is_sequence(shape) || graph.tensors[input].spatial == 1))
    return add_split_term(graph, term, parts, top_k, known, layer);
  graph::Attributes attributes;
  if (term.label_smoothing != 0) attributes.set("label_smoothing", term.label_smoothing);
  if (term.weight != 1) attributes.set("factor", term.weight);
  if (top_k != 0) attributes.set("top_k", top_k);
  return append(graph, {.name = term.name,
                        .op = term.op,
                        .attributes = std::move(attributes),
                        .inputs = std::move(inputs),
                        .layer = layer});
}

} // namespace

void add_losses(Graph& graph, const LossesOptions& options) {
  ensure(options.main < options.terms.size(), "losses without a main one");
  std::vector<std::vector<TensorId>> results;
  results.reserve(options.terms.size());
  for (std::size_t i = 0; i < options.terms.size(); ++i)
    results.push_back(add_term(graph, options.terms[i], i == options.main ? options.top_k : 0, options.mixed));
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

std::int64_t class_parts(std::int64_t classes) {
  constexpr std::int64_t worthwhile = 256, most = 32;
  std::int64_t best = 1;
  if (classes < worthwhile) return best;
  const auto twos = [](std::int64_t n) { return n & -n; };
  for (std::int64_t n = 2; n <= most; ++n)
    if (classes % n == 0 && twos(n) >= twos(best)) best = n;
  return best;
}

std::int64_t label_classes(const Graph& graph) {
  std::int64_t classes = any_label;
  for (const graph::Node& node : graph.nodes) {
    if (node.phase != graph::Phase::forward) continue;
    for (TensorId t : node.inputs) {
      if (graph.tensors[t].role != Role::label) continue;
      if (node.op == "split_softmax_loss" || node.op == "label_rank") continue; // label_logit tells
      const std::int64_t features = input(graph, node, 0).shape[1];
      if (features > 1)
        classes = std::min(classes, features);
      else if (node.op != "mse")
        classes = std::min<std::int64_t>(classes, node.op == "binary_cross_entropy" ? 2 : 1);
    }
  }
  return classes;
}

bool can_be_mixed(const Graph& graph) {
  bool some = false;
  for (const graph::Node& node : graph.nodes) {
    if (node.op == "softmax_cross_entropy" || node.op == "split_softmax_loss") some = true;
    if (node.op != "mse" && node.op != "binary_cross_entropy") continue;
    const Role role = input(graph, node, 1).role;
    if (role == Role::label || role == Role::target) return false;
  }
  return some;
}

} // namespace soybean::ops
