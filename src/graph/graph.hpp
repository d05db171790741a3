#pragma once
// The serial model as plain data: tensors and nodes in execution order, forward, backward and update. Knows no
// operators: what a node means is looked up by name in src/ops. Frontends build it, autodiff extends it, planner and
// lowering read it.
#include "base/types.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace soybean::graph {

using TensorId = std::int32_t;
using NodeId = std::int32_t;
constexpr std::int32_t none = -1;

/// What a tensor is for. Sources (no producer): what comes with samples, hyper, parameter, state.
enum class Role : std::uint8_t {
  input,         ///< a batch of samples, from the reader
  label,         ///< class numbers (i32), from the reader
  partner_label, ///< those of the samples that are mixed into the batch's
  share,         ///< how much of a mixed sample is its own, from 0 to 1
  target,        ///< numbers that samples are to give, from the reader
  sample_weight, ///< one factor per row of the batch: the row's share of the mean (1/batch, 0 for padding rows)
  hyper,         ///< a vector of the step's scalars (learning rate, step number): replicated, in a device buffer
  parameter,     ///< a trained weight; its next value is produced by an update node
  state,         ///< optimizer state or running statistics; kept over steps and in checkpoints
  activation,
  gradient,
  metric,  ///< scalar sums read by the host each step (loss, correct, norm): control traffic
  control, ///< scalars (f64) the updates depend on, such as norms of gradients: control traffic
};
std::string_view to_string(Role role);
constexpr bool comes_with_samples(Role role) { ///< has a row for each sample, which the host feeds
  return role <= Role::sample_weight;
}
constexpr bool is_control(Role role) { ///< what it moves is counted apart from data
  return role == Role::metric || role == Role::control;
}

/// How a parameter's elements begin, each a function of (seed, hash of the tensor's name, logical index).
enum class Init : std::uint8_t { zeros, uniform, normal, constant };
struct Initializer {
  Init kind = Init::zeros;
  double scale = 0; ///< uniform in [-scale, scale), the standard deviation, or the value of a constant
};

struct Tensor {
  std::string name; ///< unique; parameters are `<layer>.weight`, `<layer>.bias`; gradients `<name>.grad`
  Shape shape;      ///< dim 0 is the global batch where there is one
  Shape units;      ///< blocks of dim d are whole multiples of units[d]; same length as shape
  DType dtype = DType::f32;
  Role role = Role::activation;
  /// Physical spatial size S (DESIGN §5): a logical [d0][C·S] row is stored as [d0][S][C]. Rank-4 activations have
  /// S = H·W (that is NHWC), a flattened one keeps it, the weight of a dense layer fed by it has it too; 1 is plain.
  std::int64_t spatial = 1;
  Initializer init; ///< parameters and state
  NodeId producer = none;
  std::vector<NodeId> consumers; ///< ascending, without repetition
  TensorId next = none;          ///< parameter, state: the tensor that becomes its value in the next step
  TensorId previous = none;      ///< the inverse: the parameter or state whose next value this is
  /// The state that is read in its place in validation: running statistics for those of the batch, a moving average for
  /// a parameter.
  TensorId in_evaluation = none;
  /// What the host feeds: the row of the batch that row 0 of this tensor is. Above 0 with microbatches alone.
  std::int64_t first_row = 0;
};

/// A value of an attribute. Text form: 3, 0.5, "max", [2, 2].
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// Ordered by insertion, looked up linearly (a handful per node). Getters throw Bug when absent or of another type.
class Attributes {
public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : items_(items) {}
  void set(std::string name, Attribute value);
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }

private:
  const Attribute& at(std::string_view name) const;
  std::vector<std::pair<std::string, Attribute>> items_;
};

enum class Phase : std::uint8_t { forward, backward, update };
std::string_view to_string(Phase phase);

struct Node {
  std::string name; ///< unique
  std::string op;   ///< a row of ops::table()
  Attributes attributes;
  std::vector<TensorId> inputs, outputs;
  Phase phase = Phase::forward;
  std::int32_t layer = none; ///< index into Graph::layers
  NodeId twin = none;        ///< runs where that node runs (a mask lives there): same index on every cut
};

/// A layer of the model file, for reports and for how it is trained: every node belongs to one.
struct Layer {
  std::string name;
  std::string op;
  double lr_scale = 1;                ///< its parameters are trained with the learning rate times this
  std::optional<double> weight_decay; ///< instead of the optimizer's
  bool frozen = false;                ///< its parameters stay as they are
};

/// Which results of forward nodes are computed a second time for backward nodes instead of kept.
enum class Recompute : std::uint8_t {
  none,
  cheap,    ///< what takes little time: all but convolutions and products
  segments, ///< all but what crosses from one segment of nodes to the next
};
std::string_view to_string(Recompute recompute);

struct Graph {
  std::string name;
  DType precision = DType::f32; ///< of everything but labels
  std::int64_t vocabulary = 0;  ///< above 0: samples are sequences of tokens, integers in [0, this)
  std::vector<Tensor> tensors;
  std::vector<Node> nodes; ///< in execution order
  std::vector<Layer> layers;
  /// Parts of the batch worked off one after the other, each by nodes of its own: those of parts but the first have
  /// that one's node as their twin. Metrics of the first part come first, then the same of the second, ….
  std::int64_t microbatches = 1;
  Recompute recompute = Recompute::none;
  std::vector<TensorId> metrics; ///< read by the host after each step: loss first, then correct; gradient_norm last
  /// Metrics that validation does not compute: the losses of auxiliary heads, and their sum with the main one.
  std::vector<TensorId> only_in_training;
  TensorId logits = none; ///< what the (main) loss is computed from
};

/// Stable text, one line per tensor and node. Golden tests and hashes rest on it.
std::string to_string(const Graph& graph);
std::string to_string(const Attribute& attribute);

/// Re-derives producers and consumers, uniqueness of names, order (no use before production), roles. Throws Bug.
void verify(const Graph& graph);

/// What a node that names `tensor` as an operand reads: in validation the state that stands for it, if there is one.
TensorId operand(const Graph& graph, TensorId tensor, bool training);
/// Per node, whether it is computed: in training all are, in validation those of the forward phase that lead to a
/// metric of it.
std::vector<char> active_nodes(const Graph& graph, bool training);
/// The metrics that are computed, each once: those of several parts of the batch are added up by who reads them.
std::vector<TensorId> reported_metrics(const Graph& graph, bool training);

std::int64_t bytes(const Tensor& tensor);                        ///< of the whole tensor
std::int64_t parameter_count(const Graph& graph);                ///< trained elements
TensorId find_tensor(const Graph& graph, std::string_view name); ///< none if there is no such tensor

} // namespace soybean::graph
