#include "frontend/training.hpp"

#include "frontend/toml.hpp"

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

graph::Graph build_training_graph(const config::Table& root, const config::RunConfig& config) {
  const std::int64_t parts = config.train.microbatches;
  graph::Graph graph =
      build_graph(root.table("model"), config.data.batch / parts, config.train.precision, config.train.seed);
  graph.microbatches = parts;
  ops::add_backward_and_update(graph, optimizer(config.train));
  graph::verify(graph);
  return graph;
}

} // namespace soybean::frontend
