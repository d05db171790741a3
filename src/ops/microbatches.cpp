#include "ops/microbatches.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

class Parts {
public:
  Parts(Graph& graph, const std::vector<ParameterGradient>& gradients)
      : graph_(graph),
        nodes_(graph.nodes.size()),
        metrics_(graph.metrics),
        only_in_training_(graph.only_in_training),
        totals_(graph.tensors.size(), graph::none),
        parameters_(graph.tensors.size()),
        first_add_(graph.tensors.size(), graph::none) {
    for (const Tensor& tensor : graph.tensors)
      last_reader_.push_back(tensor.consumers.empty() ? graph::none : tensor.consumers.back());
    for (const ParameterGradient& g : gradients) {
      totals_[g.gradient] = g.gradient;
      parameters_[g.gradient].push_back(g.parameter);
    }
  }

  /// Appends part `part` (from 2); calls complete where it is the last.
  void append_part(std::int64_t part, const std::function<void(const ParameterGradient&)>& complete) {
    part_ = part;
    suffix_ = fmt::format(":{}", part);
    copy_sources();
    std::vector<ParameterGradient> whole; // their parameters are still to be read
    for (std::size_t n = 0; n < nodes_; ++n) {
      copy_node(static_cast<NodeId>(n));
      for (const TensorId t : std::vector<TensorId>(graph_.nodes[n].outputs)) {
        if (totals_[t] == graph::none) continue;
        add_up(t, graph_.nodes[n].layer);
        if (part == graph_.microbatches)
          for (TensorId parameter : parameters_[t]) whole.push_back({parameter, totals_[t]});
      }
      std::erase_if(whole, [&](const ParameterGradient& g) {
        const bool done = last_reader_[g.parameter] <= static_cast<NodeId>(n);
        if (done) complete(g);
        return done;
      });
    }
    for (TensorId metric : metrics_) graph_.metrics.push_back(own_[metric]);
    for (TensorId metric : only_in_training_) graph_.only_in_training.push_back(own_[metric]);
  }

private:
  void copy_sources() {
    own_.assign(totals_.size(), graph::none);
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (graph_.tensors[t].producer != graph::none) continue;
      const Role role = graph_.tensors[t].role;
      own_[t] = static_cast<TensorId>(t);
      if (role == Role::parameter || role == Role::hyper) continue;
      Tensor copy = graph_.tensors[t];
      copy.name += suffix_;
      copy.consumers.clear();
      copy.first_row = (part_ - 1) * copy.shape[0];
      own_[t] = append_source(graph_, std::move(copy));
    }
  }

  void copy_node(NodeId n) {
    const Node& node = graph_.nodes[n];
    NewNode copy{.name = node.name + suffix_,
                 .op = node.op,
                 .attributes = node.attributes,
                 .phase = node.phase,
                 .layer = node.layer,
                 .twin = n};
    for (TensorId t : node.inputs) copy.inputs.push_back(own_[t]);
    if (node.attributes.has("stream")) // random masks are drawn by the place in the whole batch
      copy.attributes.set("first_row", (part_ - 1) * graph_.tensors[node.inputs[0]].shape[0]);
    const std::vector<TensorId> results = append(graph_, std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i) own_[graph_.nodes[n].outputs[i]] = results[i];
  }

  void add_up(TensorId gradient, std::int32_t layer) {
    totals_[gradient] = append(graph_, {.name = fmt::format("{}:sum{}", graph_.tensors[gradient].name, part_),
                                        .op = "add",
                                        .inputs = {totals_[gradient], own_[gradient]},
                                        .phase = Phase::backward,
                                        .layer = layer,
                                        .twin = first_add_[gradient]})
                            .front();
    if (first_add_[gradient] == graph::none) first_add_[gradient] = graph_.tensors[totals_[gradient]].producer;
  }

  Graph& graph_;
  std::size_t nodes_; // of the first part
  std::vector<TensorId> metrics_, only_in_training_;
  std::vector<TensorId> totals_;                  // per gradient of the first part: the sum so far
  std::vector<std::vector<TensorId>> parameters_; // per gradient of the first part
  std::vector<NodeId> first_add_;
  std::vector<NodeId> last_reader_; // per tensor of the first part, in it
  std::vector<TensorId> own_;       // per tensor of the first part: the current part's
  std::int64_t part_ = 1;
  std::string suffix_;
};

} // namespace

void repeat_parts(Graph& graph, const std::vector<ParameterGradient>& gradients,
                  const std::function<void(const ParameterGradient&)>& complete) {
  if (graph.microbatches == 1) return;
  for (const Tensor& tensor : graph.tensors)
    if (tensor.role == Role::state)
      fail("train.microbatches: got {} for a model with running statistics ({}) expected 1. batch norm by parts of the "
           "batch is not supported yet",
           graph.microbatches, tensor.name);
  Parts parts(graph, gradients);
  for (std::int64_t part = 2; part <= graph.microbatches; ++part) parts.append_part(part, complete);
}

} // namespace soybean::ops
