#pragma once
// What the tests of ops share: look-ups by name, the text of an Error, a graph with every operator.
#include "base/error.hpp"
#include "graph/graph.hpp"
#include "ops/arithmetic_layers.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"
#include "ops/operator.hpp"
#include "ops/sequence_layers.hpp"
#include "ops/updates.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace soybean::ops {

inline const graph::Node& node(const graph::Graph& g, std::string_view name) {
  for (const graph::Node& n : g.nodes)
    if (n.name == name) return n;
  throw Bug(fmt::format("no node {}", name));
}

/// The first node of an operator, one with images among its operands where there is one.
inline const graph::Node& first_of(const graph::Graph& g, std::string_view op) {
  const graph::Node* found = nullptr;
  for (const graph::Node& n : g.nodes) {
    if (n.op != op) continue;
    if (found == nullptr) found = &n;
    if (g.tensors[n.inputs[0]].shape.size() == 4) return n;
  }
  ensure(found != nullptr, "no node of that operator");
  return *found;
}

inline const graph::Tensor& tensor(const graph::Graph& g, std::string_view name) {
  return g.tensors.at(graph::find_tensor(g, name));
}

/// The text of the Error that f throws, "no error" if it returns.
template<class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// The text of the Bug that f throws, from the description on.
template<class F>
std::string bug_of(F&& f) {
  try {
    f();
  } catch (const Bug& e) {
    const std::string text = e.what();
    const std::size_t end = text.rfind(": ");
    return end == std::string::npos ? text : text.substr(end + 2);
  }
  return "no bug";
}

/// Appends a parameter of its own for each further optimizer, updated with an existing gradient.
inline void add_other_updates(graph::Graph& g, std::string_view gradient) {
  for (const char* name : {"adam", "rmsprop", "lars", "lamb"}) {
    graph::Tensor w{.name = name, .dtype = g.precision, .role = graph::Role::parameter};
    w.shape = tensor(g, gradient).shape;
    const graph::TensorId parameter = append_source(g, w);
    append(g, {.name = std::string(name) + ".used",
               .op = "sum_of_squares",
               .inputs = {parameter},
               .phase = graph::Phase::backward});
    Updates updates(g, {.name = name, .clip_norm = w.name == "adam" ? 1.0 : 0.0});
    updates.add(parameter, graph::find_tensor(g, gradient));
    updates.finish();
  }
}

/// A training graph in which every operator occurs, on images first.
inline graph::Graph every_operator() {
  graph::Graph g{.name = "every"};
  graph::TensorId x = input_source(g, 4, {3, 8, 8});
  x = conv2d_layer(g, "conv0", x, {.channels = 6, .kernel = {3, 3}, .padding = {1, 1}});
  x = conv2d_layer(g, "conv1", x, {.channels = 6, .kernel = {3, 3}, .padding = {1, 1}});
  x = activate(g, "relu", x);
  x = pool_layer(g, "max", "max_pool", x, {.kernel = {2, 2}});
  x = pool_layer(g, "avg", "avg_pool", x, {.kernel = {3, 3}, .stride = Pair{1, 1}, .padding = {1, 1}});
  const graph::TensorId a = pointwise_layer(g, "tanh", "tanh", x), b = pointwise_layer(g, "sigmoid", "sigmoid", x);
  x = add_layer(g, "add", {mul_layer(g, "mul", a, b), x});
  for (const std::string op : {"relu6", "leaky_relu", "elu", "gelu", "silu", "hard_swish"})
    x = pointwise_layer(g, op, op, x);
  x = group_norm_layer(g, "gn", x, {.groups = 2});
  x = batch_norm_layer(g, "bn", x, {});
  x = layer_norm_layer(g, "ln", x, {});
  x = lrn_layer(g, "lrn", x, {.size = 3});
  x = arithmetic_layer(g, "scale", "scale", x, {{"factor", 2.0}});
  x = arithmetic_layer(g, "clamp", "clamp", x, {{"min", -1.0}, {"max", 1.0}});
  x = arithmetic_layer(g, "shift", "shift", arithmetic_layer(g, "abs", "abs", x), {{"by", 1.0}});
  x = arithmetic_layer(g, "pow", "pow", x, {{"exponent", 1.5}});
  for (const std::string op : {"sqrt", "log", "exp"}) x = arithmetic_layer(g, op, op, x);
  for (const std::string op : {"softmax", "log_softmax"}) x = softmax_layer(g, op, op, x);
  for (const std::string op : {"sub", "div", "maximum", "minimum"}) x = binary_layer(g, op, op, x, b);
  x = add_layer(g, "repeated", {x, reduce_layer(g, "mean", x, {.dims = {2, 3}, .keepdim = true})});
  const graph::TensorId vector = append_source(
      g, {.name = "vector", .shape = {6}, .role = graph::Role::parameter, .init = {graph::Init::constant, 1}});
  x = binary_layer(g, "channels", "mul", x, vector);
  x = dropout_layer(g, "drop", x, 0.5, 7);
  x = slice_layer(g, "slice", concat_layer(g, "concat", {x, a}), 2, 8);
  x = reshape_layer(g, "reshape", permute_layer(g, "permute", x, {0, 1, 3, 2}), {4, 6, 4});
  x = upsample_layer(g, "up", pad_layer(g, "pad", x, {1, 0, 0, 2}), {.scale = Pair{2, 2}});
  x = conv_transpose2d_layer(g, "transposed", x, {.channels = 6, .kernel = {2, 2}, .stride = {2, 2}});
  x = global_avg_pool_layer(g, "gap", x);
  x = flatten_layer(g, "flat", x);
  x = dense_layer(g, "fc1", x, {.units = 12});
  x = dense_layer(g, "fc2", x, {.units = 10});
  add_losses(g, {.terms = {{.name = "classes", .input = x},
                           {.name = "values", .op = "mse", .input = x, .weight = 0.5},
                           {.name = "bits", .op = "binary_cross_entropy", .input = x, .weight = 0.5},
                           {.name = "split", .input = x, .parts = 2}},
                 .main = 3,
                 .top_k = 3});
  add_backward_and_update(g, {.momentum = 0.9});
  add_other_updates(g, "fc2.weight.grad");
  return g;
}

/// A training graph of sequences with every operator that is of them alone.
inline graph::Graph every_sequence_operator() {
  graph::Graph g{.name = "sequences"};
  graph::TensorId x = tokens_source(g, 4, {.length = 6, .vocabulary = 10});
  x = positional_embedding_layer(g, "wpe", embedding_layer(g, "wte", x, {.embedding_dim = 8}), {});
  x = attention_layer(g, "attention", {rms_norm_layer(g, "norm", x, {})},
                      {.heads = 4, .kv_heads = 2, .causal = true, .rotary = 100});
  x = dense_layer(g, "fc", x, {.units = 10});
  add_losses(
      g, {.terms = {{.name = "split", .input = x, .parts = 2}, {.name = "whole", .input = x, .parts = 1}}, .top_k = 3});
  add_backward_and_update(g, {.momentum = 0.9});
  return g;
}

} // namespace soybean::ops
