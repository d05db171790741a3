#include "ops/updates.hpp"

#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace soybean::ops {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

namespace {

bool has_moments(const Optimizer& optimizer) {
  return optimizer.name == "adam" || optimizer.name == "adamw" || optimizer.name == "lamb";
}

void check(const Optimizer& o) {
  constexpr std::array<std::string_view, 6> names = {"sgd", "adam", "adamw", "rmsprop", "lars", "lamb"};
  if (std::find(names.begin(), names.end(), o.name) == names.end())
    fail("optimizer: name, got '{}' expected sgd, adam, adamw, rmsprop, lars or lamb", o.name);
  const auto at_least_zero = [](std::string_view name, double value) {
    if (!(value >= 0)) fail("optimizer: {}, got {} expected at least 0", name, value);
  };
  at_least_zero("momentum", o.momentum);
  at_least_zero("weight_decay", o.weight_decay);
  at_least_zero("clip_norm", o.clip_norm);
  if (o.nesterov && o.momentum == 0)
    fail("optimizer: nesterov, got momentum 0 expected a positive one. set momentum or drop nesterov");
  const auto fraction = [](std::string_view name, double value) {
    if (!(value >= 0 && value < 1)) fail("optimizer: {}, got {} expected at least 0 and below 1", name, value);
  };
  fraction("beta1", o.beta1);
  fraction("beta2", o.beta2);
  fraction("average_decay", o.average_decay);
}

} // namespace

Updates::Updates(Graph& graph, const Optimizer& optimizer) : graph_(graph), optimizer_(optimizer) {
  check(optimizer);
  constexpr std::int64_t with_corrections = 4;
  if (has_moments(optimizer)) graph.tensors[hyper_source(graph)].shape = {with_corrections};
}

void Updates::add(TensorId parameter, TensorId gradient) {
  ensure(gradient != graph::none, fmt::format("parameter '{}' has no gradient", graph_.tensors[parameter].name));
  if (optimizer_.clip_norm > 0)
    pending_.push_back({parameter, gradient});
  else
    update({parameter, gradient});
}

void Updates::finish() {
  if (optimizer_.clip_norm > 0) append_clipping();
  for (const Pending& pending : pending_) update(pending);
}

/// The factor of torch.nn.utils.clip_grad_norm_: each rank sums the squares of what it has of each gradient, and all
/// sums added up are reduced once.
void Updates::append_clipping() {
  std::vector<TensorId> squares;
  for (const Pending& pending : pending_) {
    const Tensor& w = graph_.tensors[pending.parameter];
    squares.push_back(append(graph_, {.name = w.name + ".grad.squares",
                                      .op = "sum_of_squares",
                                      .inputs = {pending.gradient},
                                      .phase = Phase::backward,
                                      .layer = graph_.nodes[w.consumers.front()].layer})
                          .front());
  }
  const TensorId total =
      append(graph_, {.name = "gradient_squares", .op = "sum_of_sums", .inputs = squares, .phase = Phase::backward})
          .front();
  const auto results = append(graph_, {.name = "gradient_norm",
                                       .op = "clip_factor",
                                       .attributes = {{"most", optimizer_.clip_norm}},
                                       .inputs = {total},
                                       .phase = Phase::backward});
  graph_.metrics.push_back(results[0]);
  factor_ = results[1];
}

TensorId Updates::state(const Tensor& w, std::string_view name) {
  return append_source(graph_, {.name = fmt::format("{}.{}", w.name, name),
                                .shape = w.shape,
                                .units = w.units,
                                .dtype = w.dtype,
                                .role = Role::state,
                                .spatial = w.spatial});
}

bool Updates::is_exempt(const Tensor& w, std::int32_t layer) const {
  if (optimizer_.decay_biases) return false;
  return w.shape.size() < 2 || (layer != graph::none && graph_.layers[layer].op.ends_with("_norm"));
}

double Updates::decay_of(const Tensor& w, std::int32_t layer) const {
  if (is_exempt(w, layer)) return 0;
  const auto own = layer == graph::none ? std::nullopt : graph_.layers[layer].weight_decay;
  return own.value_or(optimizer_.weight_decay);
}

/// Σ of squares of each tensor, reduced as one vector.
TensorId Updates::norms_of(const Tensor& w, std::int32_t layer, std::vector<TensorId> tensors) {
  return append(graph_, {.name = w.name + ".norms",
                         .op = "sum_of_squares",
                         .inputs = std::move(tensors),
                         .phase = Phase::update,
                         .layer = layer})
      .front();
}

/// Appends the node and links the states it reads (after hyper) and the weight with what it makes of them. Its inputs
/// are complete but for the factor of clipping.
std::vector<TensorId> Updates::finish_node(const Tensor& w, NewNode node) {
  const bool direction = node.op == "lamb_direction";
  if (factor_ != graph::none && node.op != "lamb_update") {
    node.inputs.push_back(factor_);
    node.attributes.set("clipped", std::int64_t{1});
  }
  const std::vector<TensorId> inputs = node.inputs;
  const std::vector<TensorId> results = append(graph_, std::move(node));
  if (!direction) link_next(graph_, inputs[0], results[0]);
  for (std::size_t s = 1; s < results.size(); ++s) link_next(graph_, inputs[2 + s], results[s]);
  if (!direction && optimizer_.average_decay != 0)
    graph_.tensors[inputs[0]].in_evaluation = graph::find_tensor(graph_, w.name + ".average");
  return results;
}

/// lamb: replaces the gradient among the node's inputs by the direction that follows from it and its moments.
void Updates::append_direction(const Tensor& w, NewNode& node) {
  NewNode direction{.name = w.name + ".direction",
                    .op = "lamb_direction",
                    .attributes = {{"beta1", optimizer_.beta1},
                                   {"beta2", optimizer_.beta2},
                                   {"eps", optimizer_.eps},
                                   {"weight_decay", decay_of(w, node.layer)}},
                    .inputs = node.inputs,
                    .phase = Phase::update,
                    .layer = node.layer};
  direction.inputs.push_back(state(w, "exp_avg"));
  direction.inputs.push_back(state(w, "exp_avg_sq"));
  node.inputs[1] = finish_node(w, std::move(direction))[0];
}

namespace {

/// The node of an optimizer's update and its states.
struct Kind {
  std::string op;
  graph::Attributes attributes;
  std::vector<std::string_view> states = {};
};

/// `adapted`: with rates by layer, where the optimizer has such.
Kind kind_of(const Optimizer& o, double decay, bool adapted) {
  const std::string_view momentum = "momentum";
  const auto with_momentum = [&](std::vector<std::string_view> states) {
    if (o.momentum != 0) states.push_back(momentum);
    return states;
  };
  if (o.name == "sgd")
    return {"sgd_update",
            {{"momentum", o.momentum}, {"weight_decay", decay}, {"nesterov", std::int64_t{o.nesterov}}},
            with_momentum({})};
  if (o.name == "rmsprop")
    return {"rmsprop_update",
            {{"alpha", o.alpha},
             {"eps", o.eps},
             {"weight_decay", decay},
             {"momentum", o.momentum},
             {"centered", std::int64_t{o.centered}}},
            with_momentum(o.centered ? std::vector<std::string_view>{"square_avg", "grad_avg"}
                                     : std::vector<std::string_view>{"square_avg"})};
  if (o.name == "lars")
    return {"lars_update",
            {{"momentum", o.momentum},
             {"weight_decay", decay},
             {"trust", o.trust},
             {"eps", o.eps},
             {"adapted", std::int64_t{adapted}}},
            with_momentum({})};
  if (o.name == "lamb") return {"lamb_update", {{"adapted", std::int64_t{adapted}}}};
  Kind adam{"adam_update",
            {{"beta1", o.beta1},
             {"beta2", o.beta2},
             {"eps", o.eps},
             {"weight_decay", decay},
             {"decoupled", std::int64_t{o.name == "adamw"}},
             {"amsgrad", std::int64_t{o.amsgrad}}},
            {"exp_avg", "exp_avg_sq"}};
  if (o.amsgrad) adam.states.emplace_back("max_exp_avg_sq");
  return adam;
}

} // namespace

void Updates::update(const Pending& pending) {
  const Tensor w = graph_.tensors[pending.parameter];
  const std::int32_t layer = graph_.nodes[w.consumers.front()].layer;
  const bool adapted = !is_exempt(w, layer);
  Kind kind = kind_of(optimizer_, decay_of(w, layer), adapted);
  NewNode node{.name = w.name,
               .op = std::move(kind.op),
               .attributes = std::move(kind.attributes),
               .inputs = {pending.parameter, pending.gradient, hyper_source(graph_)},
               .phase = Phase::update,
               .layer = layer};
  if (node.op == "lamb_update") append_direction(w, node);
  for (std::string_view name : kind.states) node.inputs.push_back(state(w, name));
  const double scale = layer == graph::none ? 1 : graph_.layers[layer].lr_scale;
  if (scale != 1) node.attributes.set("lr_scale", scale);
  if (optimizer_.average_decay != 0) {
    node.inputs.push_back(state(w, "average"));
    node.attributes.set("average", optimizer_.average_decay);
  }
  if (node.attributes.has("adapted") && adapted)
    node.inputs.push_back(norms_of(w, layer, {node.inputs[0], node.inputs[1]}));
  finish_node(w, std::move(node));
}

std::vector<Result> update_results(const Graph& graph, const Node& node, const UpdateOperands& operands) {
  std::vector<std::string> states = operands.states;
  if (node.attributes.has("average")) states.emplace_back("average");
  const bool clipped = node.attributes.has("clipped");
  expect_inputs(node, 3 + states.size() + (operands.norms ? 1 : 0) + (clipped ? 1 : 0));
  const auto require = [&](bool condition) {
    ensure(condition, fmt::format("the operands of node '{}' do not fit", node.name));
  };
  const Tensor &w = input(graph, node, 0), &grad = input(graph, node, 1), &hyper = input(graph, node, 2);
  require(grad.shape == w.shape && grad.spatial == w.spatial && hyper.role == Role::hyper);
  std::vector<Result> results{{.suffix = operands.direction ? "" : ".next",
                               .shape = w.shape,
                               .units = w.units,
                               .dtype = graph.precision,
                               .role = operands.direction ? Role::gradient : Role::parameter,
                               .spatial = w.spatial}};
  for (std::size_t s = 0; s < states.size(); ++s) {
    const Tensor& state = input(graph, node, 3 + s);
    require(state.shape == w.shape && state.units == w.units && state.spatial == w.spatial &&
            state.role == Role::state);
    results.push_back(results[0]);
    results.back().suffix = "." + states[s] + ".next";
    results.back().role = Role::state;
  }
  if (operands.norms) require(input(graph, node, 3 + states.size()).shape == Shape{2});
  if (clipped) require(input(graph, node, node.inputs.size() - 1).shape.empty());
  return results;
}

Form update_form(const Graph& graph, const Node& node, const UpdateOperands& operands) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), false);
  const std::size_t states = operands.states.size() + (node.attributes.has("average") ? 1 : 0);
  std::string inputs = dims + ", " + dims + ", .", outputs = dims;
  for (std::size_t s = 0; s < states; ++s) {
    inputs += ", " + dims;
    outputs += ", " + dims;
  }
  if (operands.norms) inputs += ", .";
  if (node.attributes.has("clipped")) inputs += ", 1";
  return make_form(graph, node, {.text = inputs + " -> " + outputs, .split = "d0 d1", .replicable = true});
}

double update_flops(const Graph& graph, const Node& node, double per_weight) {
  const double extra = (node.attributes.has("clipped") ? 1 : 0) + (node.attributes.has("average") ? 3 : 0);
  return (per_weight + extra) * result_elements(graph, node);
}

} // namespace soybean::ops
