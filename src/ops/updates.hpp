#pragma once
// The update part of a training graph: which nodes and states an optimizer needs for a parameter and its gradient, and
// what the update operators' files share about their operands. Included by autodiff.cpp and the optimizers' files only.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/form.hpp"
#include "ops/operator.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace soybean::ops {

/// Appends the updates of parameters.
class Updates {
public:
  /// Throws Error when the optimizer's settings make no sense.
  Updates(graph::Graph& graph, const Optimizer& optimizer);
  /// The parameter's gradient is complete: updates it now, or at the end where that depends on other gradients.
  void add(graph::TensorId parameter, graph::TensorId gradient);
  /// All gradients are there.
  void finish();

private:
  struct Pending {
    graph::TensorId parameter, gradient;
  };
  void append_clipping();
  void update(const Pending& pending);
  void append_direction(const graph::Tensor& w, NewNode& node);
  graph::TensorId norms_of(const graph::Tensor& w, std::int32_t layer, std::vector<graph::TensorId> tensors);
  graph::TensorId state(const graph::Tensor& w, std::string_view name);
  std::vector<graph::TensorId> finish_node(const graph::Tensor& w, NewNode node);
  double decay_of(const graph::Tensor& w, std::int32_t layer) const;
  bool is_exempt(const graph::Tensor& w, std::int32_t layer) const;

  graph::Graph& graph_;
  Optimizer optimizer_;
  std::vector<Pending> pending_;
  graph::TensorId factor_ = graph::none; ///< of clipping
};

/// What an update node reads, in this order: weight, gradient, hyper, its states (the moving average last, where the
/// attribute `average` is there), `norms` where it has them, the factor of clipping where the attribute `clipped` is.
/// It makes the next weight and states: result i may take the memory of states_in_place()[i].
struct UpdateOperands {
  std::vector<std::string> states; ///< suffixes, without the average
  bool norms = false;
  bool direction = false; ///< makes a direction to go in, not the next weight
};
std::vector<Result> update_results(const graph::Graph& graph, const graph::Node& node, const UpdateOperands& operands);
Form update_form(const graph::Graph& graph, const graph::Node& node, const UpdateOperands& operands);
/// `per_weight` operations of the optimizer itself, and those of clipping and of the average.
double update_flops(const graph::Graph& graph, const graph::Node& node, double per_weight);
/// For a next weight and up to four states.
inline std::vector<int> states_in_place() {
  return {0, 3, 4, 5, 6};
}

} // namespace soybean::ops
