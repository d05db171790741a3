#pragma once
// The table of operators. One row each: shapes, index form, gradient, work. Kernels are elsewhere (src/kernels), keyed
// by the same names. Adding an operator: ops/x.cpp, kernels/x.cpp, a row in each table, tests/ops/x.cpp.
#include "graph/graph.hpp"
#include "ops/form.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace soybean::ops {

/// What `infer` says of one result.
struct Result {
  std::string suffix; ///< tensor name is node name + suffix ("" for the main result)
  Shape shape;
  Shape units; ///< empty: all 1
  DType dtype = DType::f32;
  graph::Role role = graph::Role::activation;
  std::int64_t spatial = 1;
};

class Backward; // ops/autodiff.hpp

struct Operator {
  std::string_view name;
  /// Shapes of the results. Throws Error naming the layer when inputs or attributes do not fit.
  std::vector<Result> (*infer)(const graph::Graph&, const graph::Node&);
  Form (*form)(const graph::Graph&, const graph::Node&);
  /// Appends backward nodes; nullptr for nodes of the backward and update phases.
  void (*gradient)(Backward&, const graph::Node&);
  /// Floating-point operations of the whole node (a multiply-add counts 2).
  double (*flops)(const graph::Graph&, const graph::Node&);
  /// Result i may overwrite input in_place[i] when that input dies here (-1: none); same shape, tiling and layout.
  std::vector<int> in_place = {};
  /// The results have no dim that runs over samples, though operands may: sums over them.
  bool sums_batch = false;
  /// Appends the update nodes of the state a forward node keeps whatever is trained (running statistics).
  void (*update_state)(graph::Graph&, const graph::Node&) = nullptr;
};

const std::vector<Operator>& table();
const Operator& find(std::string_view name); ///< throws Bug
bool exists(std::string_view name);

/// What a new node is given; the results follow from its operator.
struct NewNode {
  std::string name;
  std::string op;
  graph::Attributes attributes = {};
  std::vector<graph::TensorId> inputs = {};
  graph::Phase phase = graph::Phase::forward;
  std::int32_t layer = graph::none;
  graph::NodeId twin = graph::none;
};
/// Appends the node and its result tensors, keeping producers and consumers. Returns the results. Throws Error, naming
/// the layer, when the operator refuses its operands, a result is too large or a name is in use.
std::vector<graph::TensorId> append(graph::Graph& graph, NewNode node);
/// Appends a tensor without producer. `units` empty means all 1. Throws Error when its name is in use or it is empty or
/// too large.
graph::TensorId append_source(graph::Graph& graph, graph::Tensor tensor);

inline Form form(const graph::Graph& g, const graph::Node& n) {
  return find(n.op).form(g, n);
}
inline double flops(const graph::Graph& g, const graph::Node& n) {
  return find(n.op).flops(g, n);
}
double flops(const graph::Graph& graph, graph::Phase phase);

/// graph::verify, and that every node's results are what its operator infers and its form fits. Throws Bug.
void verify(const graph::Graph& graph);

} // namespace soybean::ops
