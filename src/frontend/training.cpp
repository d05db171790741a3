#include "frontend/training.hpp"

#include "frontend/toml.hpp"
#include "ops/losses.hpp"

#include <algorithm>
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

} // namespace

graph::Graph build_training_graph(const config::Table& root, const config::RunConfig& config) {
  const std::int64_t parts = config.train.microbatches;
  const std::vector<config::AugmentStep>& steps = config.data.augment;
  const bool mixed = std::any_of(steps.begin(), steps.end(), config::mixes);
  graph::Graph graph =
      build_graph(root.table("model"), config.data.batch / parts, config.train.precision, config.train.seed, mixed);
  if (mixed) check_mixed(root.table("data"), config, graph);
  graph.microbatches = parts;
  ops::add_backward_and_update(graph, optimizer(config.train));
  graph::verify(graph);
  return graph;
}

} // namespace soybean::frontend
