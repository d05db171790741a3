#include "frontend/training.hpp"

#include "base/error.hpp"
#include "frontend/toml.hpp"
#include "ops/losses.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace soybean::frontend {

ops::Optimizer optimizer(const config::TrainOptions& options) {
  const config::OptimizerOptions& o = options.optimizer;
  return {.name = o.name,
          .momentum = o.momentum,
          .weight_decay = o.weight_decay,
          .nesterov = o.nesterov,
          .beta1 = o.betas[0],
          .beta2 = o.betas[1],
          .eps = o.eps,
          .amsgrad = o.amsgrad,
          .alpha = o.alpha,
          .centered = o.centered,
          .trust = o.trust_coefficient,
          .decay_biases = o.decay_biases,
          .clip_norm = options.clip_norm,
          .average_decay = options.ema};
}

namespace {

/// Throws Error at a step that mixes samples for losses that have no use for mixed ones.
void check_mixed(const config::Table& data, const config::RunConfig& config, const graph::Graph& graph) {
  if (ops::can_be_mixed(graph)) return;
  for (std::size_t i = 0; i < config.data.augment.size(); ++i)
    if (config::mixes(config.data.augment[i]))
      data.tables("augment")[i].reject("op", "none that mixes classes with losses that know none",
                                       "use loss = \"softmax_cross_entropy\", without others of labels or targets");
}

/// Where in the file the cause of an error about the step's further tensors is: a layer it names, else the layers.
std::string place_of(const std::string& error, const config::Table& root,
                     const std::map<std::string, std::string>& layers) {
  if (error.starts_with("train.microbatches")) return root.table("train").where("microbatches");
  for (const auto& [name, place] : layers)
    if (error.find(fmt::format("got '{}'", name)) != std::string::npos) return place;
  return root.table("model").where("layers");
}

} // namespace

std::optional<graph::Recompute> recompute_of(const config::TrainOptions& options) {
  for (const graph::Recompute recompute : {graph::Recompute::none, graph::Recompute::cheap, graph::Recompute::segments})
    if (options.recompute == graph::to_string(recompute)) return recompute;
  return std::nullopt;
}

config::RunConfig with_savings(config::RunConfig config, std::int64_t microbatches, graph::Recompute recompute) {
  config.train.microbatches = microbatches;
  config.train.recompute = graph::to_string(recompute);
  return config;
}

std::string shapes_note(const graph::Graph& graph) {
  std::string note;
  if (graph.microbatches > 1)
    note = fmt::format("shapes are those of a microbatch, one of the {} that a batch is worked off in; bytes those of "
                       "a step\n",
                       graph.microbatches);
  if (graph.recompute != graph::Recompute::none)
    note += fmt::format("what the forward pass computes is computed again where backward needs it ({})\n",
                        graph::to_string(graph.recompute));
  return note;
}

graph::Graph build_training_graph(const config::Table& root, const config::RunConfig& config) {
  const std::int64_t parts = std::max<std::int64_t>(config.train.microbatches, 1);
  const std::vector<config::AugmentStep>& steps = config.data.augment;
  const bool mixed = std::any_of(steps.begin(), steps.end(), config::mixes);
  std::map<std::string, std::string> places;
  graph::Graph graph = build_graph(root.table("model"), config.data.batch / parts, config.train.precision,
                                   config.train.seed, mixed, &places);
  if (mixed) check_mixed(root.table("data"), config, graph);
  graph.microbatches = parts;
  graph.recompute = recompute_of(config.train).value_or(graph::Recompute::none);
  try {
    ops::add_backward_and_update(graph, optimizer(config.train));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", place_of(error.what(), root, places), error.what()), error.code());
  }
  graph::verify(graph);
  return graph;
}

} // namespace soybean::frontend
