#pragma once
// Random graphs small enough for brute force: branches, residual edges, products, shared inputs, images and vectors.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"

#include <random>
#include <string>
#include <vector>

namespace soybean::test {

class TinyGraphs {
public:
  explicit TinyGraphs(unsigned seed) : random_(seed) {}

  /// A training step with at most so many layers that have weights.
  graph::Graph make(int weights) {
    graph_ = {};
    graph_.name = "tiny";
    left_ = weights - 1; // one for the classifier
    graph::TensorId x;
    if (pick(3) == 0) {
      x = image(ops::input_source(graph_, 1 + pick(5), {1 + pick(4), 1 + pick(2), 1 + pick(2)}));
      x = ops::flatten_layer(graph_, "flatten", x);
    } else {
      x = vector(ops::input_source(graph_, 1 + pick(5), {1 + pick(6)}));
    }
    x = ops::dense_layer(graph_, "classifier", x, {.units = 2 + pick(4), .bias = pick(4) == 0});
    ops::loss_layer(graph_, x);
    ops::add_backward_and_update(graph_, {.momentum = pick(2) == 0 ? 0.9 : 0});
    return graph_;
  }

private:
  int pick(int choices) { return static_cast<int>(random_() % static_cast<unsigned>(choices)); }
  std::string name() { return "n" + std::to_string(layers_++); }

  graph::TensorId pointwise(graph::TensorId x) {
    static const std::vector<std::string> ops = {"relu", "tanh", "sigmoid"};
    return ops::pointwise_layer(graph_, name(), ops[pick(3)], x);
  }

  /// Two branches from x, joined again.
  graph::TensorId join(graph::TensorId x, graph::TensorId body) {
    if (pick(3) == 0) return ops::mul_layer(graph_, name(), x, body);
    if (pick(4) == 0) return ops::add_layer(graph_, name(), {x, body, x});
    return ops::add_layer(graph_, name(), pick(2) == 0 ? std::vector{x, body} : std::vector{body, x});
  }

  graph::TensorId vector(graph::TensorId x) {
    for (int steps = pick(3); steps >= 0; --steps) {
      const std::int64_t width = graph_.tensors[x].shape[1];
      switch (pick(4)) {
      case 0:
        if (left_-- > 0) x = ops::dense_layer(graph_, name(), x, {.units = 1 + pick(5), .bias = pick(4) == 0});
        break;
      case 1:
        if (left_-- > 0) x = join(x, ops::dense_layer(graph_, name(), x, {.units = width, .bias = false}));
        break;
      case 2:
        x = pointwise(x);
        break;
      default:
        x = join(x, pick(2) == 0 ? pointwise(x) : ops::dropout_layer(graph_, name(), x, 0.5, 1));
      }
    }
    return x;
  }

  graph::TensorId image(graph::TensorId x) {
    for (int steps = pick(3); steps >= 0; --steps) {
      const std::int64_t channels = graph_.tensors[x].shape[1];
      const ops::Pair kernel = pick(2) == 0 ? ops::Pair{1, 1} : ops::Pair{3, 3};
      const ops::Pair padding{(kernel[0] - 1) / 2, (kernel[1] - 1) / 2};
      const std::int64_t groups = channels % 2 == 0 && pick(2) == 0 ? 2 : 1;
      switch (pick(4)) {
      case 0:
        if (left_-- > 0)
          x = ops::conv2d_layer(graph_, name(), x,
                                {.channels = groups * (1 + pick(2)),
                                 .kernel = kernel,
                                 .padding = padding,
                                 .groups = groups,
                                 .bias = pick(4) == 0});
        break;
      case 1:
        if (left_-- > 0)
          x = join(x,
                   ops::conv2d_layer(
                       graph_, name(), x,
                       {.channels = channels, .kernel = kernel, .padding = padding, .groups = groups, .bias = false}));
        break;
      case 2:
        x = ops::pool_layer(graph_, name(), pick(2) == 0 ? "max_pool" : "avg_pool", x, {.kernel = {1, 1}});
        break;
      default:
        x = join(x, pointwise(x));
      }
    }
    return x;
  }

  std::mt19937 random_;
  graph::Graph graph_;
  int left_ = 0, layers_ = 0;
};

} // namespace soybean::test
