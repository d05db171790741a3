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

/// How parameters follow from their gradients g, which clipping has scaled already. Rates and bias corrections are read
/// from the `hyper` tensor, never baked in. A layer's lr_scale multiplies the rate, its weight_decay takes the place of
/// the optimizer's. w: weight, λ: weight_decay, t: the step's number from 1; states start at 0.
///
/// sgd (torch.optim.SGD)   g ← g + λw;  v ← momentum·v + g;  g ← nesterov ? g + momentum·v : v;  w ← w − lr·g
/// adam (torch.optim.Adam) g ← g + λw;  m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  amsgrad: u ← max(u, v), else u = v;
///                         w ← w − lr/(1−β₁ᵗ) · m / (√u/√(1−β₂ᵗ) + ε)
/// adamw (torch.optim.AdamW)  the same, but w ← w − lr·λ·w first in place of g ← g + λw
/// rmsprop (torch.optim.RMSprop)  g ← g + λw;  s ← αs + (1−α)g²;  centered: a ← αa + (1−α)g and d = √(s−a²) + ε,
///                         else d = √s + ε;  v ← momentum·v + g/d;  w ← w − lr·v
/// lars (You, Gitman, Ginsburg, arXiv 1708.03888, eq. 6 and algorithm 1)
///                         v ← momentum·v + lr·trust·‖w‖/(‖g‖ + λ‖w‖ + ε)·(g + λw);  w ← w − v
/// lamb (You et al., arXiv 1904.00962, algorithm 2, φ the identity)  m, v as adam's;
///                         r = m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + λw;  w ← w − lr·‖w‖/‖r‖·r
/// Norms are those of whole tensors, whatever the tiling; where ‖w‖ or ‖r‖ is 0, lars and lamb take the plain rate.
/// What is left without decay (decay_biases) is left without their norms, too, as is the custom.
struct Optimizer {
  std::string name = "sgd";
  double momentum = 0;      ///< sgd, rmsprop, lars
  double weight_decay = 0;  ///< λ
  bool nesterov = false;    ///< sgd
  double beta1 = 0.9;       ///< adam, adamw, lamb
  double beta2 = 0.999;     ///< adam, adamw, lamb
  double eps = 1e-8;        ///< all but sgd
  bool amsgrad = false;     ///< adam, adamw
  double alpha = 0.99;      ///< rmsprop
  bool centered = false;    ///< rmsprop
  double trust = 0.001;     ///< lars
  bool decay_biases = true; ///< false: no λ for parameters of one dim (biases) and those of norm layers
  double clip_norm = 0;     ///< most the norm of all gradients together may be; 0: anything
  double average_decay = 0; ///< d: after each step average ← d·average + (1−d)·w, at first average ← w; 0: none is kept
};

/// Appends backward nodes for `graph.metrics[0]` (the loss), further parts of the batch where graph.microbatches says
/// so (the graph's batch is that of one part), and one update per parameter that is not frozen, placed right after its
/// gradient is complete, or with clip_norm after all are. State is named as in PyTorch:
/// `<parameter>.momentum`, `.exp_avg`, …; `.average`. Throws Error if nothing can be trained.
void add_backward_and_update(graph::Graph& graph, const Optimizer& optimizer);

} // namespace soybean::ops
