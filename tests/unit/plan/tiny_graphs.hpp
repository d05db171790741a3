#pragma once
// Random graphs small enough for brute force: branches that are added, multiplied or joined, tensors that several
// layers read, two losses, images and vectors, norms, optimizers with and without state; extents that ranks do not
// divide.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"

#include <random>
#include <string>
#include <vector>

namespace soybean::test {

struct TinyOptions {
  int weights = 2; ///< layers that have them, at most
  int extent = 6;  ///< features and samples, at most
};

class TinyGraphs {
public:
  explicit TinyGraphs(unsigned seed) : random_(seed) {}

  /// A training step.
  graph::Graph make(const TinyOptions& options) {
    graph_ = {};
    graph_.name = "tiny";
    extent_ = options.extent;
    left_ = options.weights - 1; // one for the classifier
    graph::TensorId x;
    if (pick(3) == 0) {
      const Shape sample{size(4), 1 + pick(3), 1 + pick(3)};
      x = image(ops::input_source(graph_, size(extent_), sample));
      x = ops::flatten_layer(graph_, "flatten", x);
    } else {
      x = vector(ops::input_source(graph_, size(extent_), {size(extent_)}));
    }
    losses(x);
    static const std::vector<std::string> optimizers = {"sgd", "sgd", "adam", "rmsprop"};
    ops::add_backward_and_update(graph_, {.name = optimizers[pick(4)], .momentum = pick(2) == 0 ? 0.9 : 0});
    return graph_;
  }

private:
  int pick(int choices) { return static_cast<int>(random_() % static_cast<unsigned>(choices)); }
  std::int64_t size(int most) { return 1 + pick(most); }
  std::string name() { return "n" + std::to_string(layers_++); }

  /// The classifier's loss; now and then that of another one beside it.
  void losses(graph::TensorId x) {
    const ops::DenseOptions options{.units = 1 + size(4), .bias = pick(4) == 0};
    ops::LossesOptions losses{.terms = {{.input = ops::dense_layer(graph_, "classifier", x, options)}}};
    if (pick(8) == 0 && left_-- > 0) {
      losses.terms[0].name = "main";
      losses.terms.push_back(
          {.name = "other", .input = ops::dense_layer(graph_, "auxiliary", x, options), .weight = 0.5});
    }
    ops::add_losses(graph_, losses);
  }

  graph::TensorId pointwise(graph::TensorId x) {
    static const std::vector<std::string> ops = {"relu", "tanh", "sigmoid"};
    return ops::pointwise_layer(graph_, name(), ops[pick(3)], x);
  }

  /// Two branches from x, joined again.
  graph::TensorId join(graph::TensorId x, graph::TensorId body) {
    if (pick(4) == 0) return concat(x, body);
    if (pick(3) == 0) return ops::mul_layer(graph_, name(), x, body);
    if (pick(4) == 0) return ops::add_layer(graph_, name(), {x, body, x});
    return ops::add_layer(graph_, name(), pick(2) == 0 ? std::vector{x, body} : std::vector{body, x});
  }

  /// Features of both, or some of them.
  graph::TensorId concat(graph::TensorId x, graph::TensorId body) {
    x = ops::concat_layer(graph_, name(), pick(2) == 0 ? std::vector{x, body} : std::vector{body, x});
    const std::int64_t features = graph_.tensors[x].shape[1], begin = pick(static_cast<int>(features) - 1);
    if (pick(2) == 0) return x;
    return ops::slice_layer(graph_, name(), x, begin, begin + size(static_cast<int>(features - begin)));
  }

  /// Layers of the same input with weights of their own, joined.
  graph::TensorId branches(graph::TensorId x, std::int64_t units) {
    graph::TensorId sum = ops::dense_layer(graph_, name(), x, {.units = units, .bias = pick(4) == 0});
    if (left_-- > 0) sum = join(sum, ops::dense_layer(graph_, name(), x, {.units = units, .bias = false}));
    return sum;
  }

  graph::TensorId vector(graph::TensorId x) {
    for (int steps = pick(3); steps >= 0; --steps) {
      const std::int64_t width = graph_.tensors[x].shape[1];
      switch (pick(4)) {
      case 0:
        if (left_-- > 0) x = branches(x, size(extent_));
        break;
      case 1:
        if (left_-- > 0) x = join(x, ops::dense_layer(graph_, name(), x, {.units = width, .bias = false}));
        break;
      case 2:
        x = pick(6) == 0 ? ops::layer_norm_layer(graph_, name(), x, {.affine = pick(2) == 0}) : pointwise(x);
        break;
      default:
        x = join(x, pick(2) == 0 ? pointwise(x) : ops::dropout_layer(graph_, name(), x, 0.5, 1));
      }
    }
    return x;
  }

  ops::Conv2dOptions convolution(std::int64_t channels, std::int64_t groups) {
    const std::int64_t kernel = pick(2) == 0 ? 1 : 3, padding = (kernel - 1) / 2;
    return {.channels = channels,
            .kernel = {kernel, kernel},
            .padding = {padding, padding},
            .groups = groups,
            .bias = pick(4) == 0};
  }

  graph::TensorId image(graph::TensorId x) {
    for (int steps = pick(3); steps >= 0; --steps) {
      const Shape shape = graph_.tensors[x].shape;
      const std::int64_t groups = shape[1] % 2 == 0 && pick(2) == 0 ? 2 : 1;
      switch (pick(4)) {
      case 0:
        if (left_-- > 0) {
          ops::Conv2dOptions options = convolution(groups * size(2), groups);
          options.stride = {size(2), 1};
          x = ops::conv2d_layer(graph_, name(), x, options);
        }
        break;
      case 1:
        if (left_-- > 0) x = join(x, ops::conv2d_layer(graph_, name(), x, convolution(shape[1], groups)));
        break;
      case 2:
        x = ops::pool_layer(graph_, name(), pick(2) == 0 ? "max_pool" : "avg_pool", x,
                            {.kernel = {size(static_cast<int>(shape[2])), 1}});
        break;
      default:
        x = join(x, pointwise(x));
      }
    }
    return x;
  }

  std::mt19937 random_;
  graph::Graph graph_;
  int left_ = 0, layers_ = 0, extent_ = 0;
};

} // namespace soybean::test
