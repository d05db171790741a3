#pragma once
// Reverse-mode differentiation of a Graph, and the update of its parameters.
#include "graph/graph.hpp"
#include "ops/operator.hpp"

#include <string>
#include <vector>

namespace soybean::ops {

/// What an operator's `gradient` works with.
class Backward {
public:
  /// Differentiates graph.metrics[0]. Throws Error when a layer does not lead to it.
  explicit Backward(graph::Graph& graph);
  const graph::Graph& graph() const { return graph_; }
  /// Gradient of the loss by a tensor: the sum (one `add` node, made on first request) of what its consumers
  /// contributed; none when nothing did.
  graph::TensorId gradient_of(graph::TensorId tensor);
  /// False for inputs, labels and everything no parameter feeds: their gradients are not computed.
  bool wanted(graph::TensorId tensor) const;
  /// Appends a backward node for the same layer as `of`; sets phase. Returns its results.
  std::vector<graph::TensorId> append(const graph::Node& of, NewNode node);
  /// Hands an existing tensor through as one term of a tensor's gradient.
  void contribute(graph::TensorId tensor, graph::TensorId gradient);
  /// If it is wanted, appends a node whose result is one term of `tensor`'s gradient; its name is chosen here:
  /// `<tensor>.grad`, or `<tensor>.grad.<k>` when there are several terms.
  void contribute(const graph::Node& of, graph::TensorId tensor, NewNode node);
  graph::NodeId id_of(const graph::Node& node) const; ///< for `twin`

private:
  void find_wanted();
  void count_terms();

  graph::Graph& graph_;
  std::vector<std::vector<graph::TensorId>> terms_; ///< per tensor of the forward graph
  std::vector<bool> wanted_;
  std::vector<int> expected_; ///< how many terms each tensor's gradient will have
};

/// Says that `next`, the result of an update node, becomes the value of a parameter or state in the next step.
void link_next(graph::Graph& graph, graph::TensorId value, graph::TensorId next);

/// Stochastic gradient descent as in PyTorch's torch.optim.SGD:
///   g ← g + weight_decay·w;  v ← momentum·v + g (v starts at 0);  g ← nesterov ? g + momentum·v : v;  w ← w − lr·g.
/// lr is read from the `hyper` tensor, never baked in. weight_decay applies to weights and biases alike, as there.
struct Sgd {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// Appends backward nodes for `graph.metrics[0]` (the loss) and one update node per parameter, placed right after its
/// gradient is complete. Parameters get `.momentum` state when momentum != 0. Throws Error if nothing can be trained.
void add_backward_and_update(graph::Graph& graph, const Sgd& optimizer);

} // namespace soybean::ops
