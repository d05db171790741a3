// What the heads of a transformer do with their queries, keys and values: rotary encodings of positions (Su et al.,
// arXiv 2104.09864, halves rotated as in Llama) and attention as torch.nn.functional.scaled_dot_product_attention, with
// heads that share keys and values (Ainslie et al., arXiv 2305.13245). Sequences are images of one column, channels
// those of one head after the other.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;
using graph::TensorId;

std::int64_t count_of(const Node& node, std::string_view name) {
  return node.attributes.integer(name);
}

void check_heads(const Graph& graph, const Node& node, std::string_view key, std::int64_t channels) {
  const std::int64_t heads = count_of(node, key);
  if (heads < 1 || channels % heads != 0)
    fail("{}: {}, got {} with {} features expected a divisor of them", where(graph, node), key, heads, channels);
}

Result like(const Graph& graph, const Node& node, const Tensor& x) {
  return {.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial};
}

std::vector<Result> infer_rotary(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_sequence(where(graph, node), input(graph, node, 0).shape);
  const Tensor& x = input(graph, node, 0);
  check_heads(graph, node, "heads", x.shape[1]);
  if (x.shape[1] / count_of(node, "heads") % 2 != 0)
    fail("{}: heads, got {} of {} features expected heads of an even number of them", where(graph, node),
         count_of(node, "heads"), x.shape[1] / count_of(node, "heads"));
  return {like(graph, node, x)};
}

Form form_rotary(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = "b g h . -> b g h .", .split = "b g h", .linear = true, .groups = count_of(node, "heads")});
}

/// The rotation back.
void gradient_rotary(Backward& backward, const Node& node) {
  graph::Attributes attributes = node.attributes;
  attributes.set("inverse", std::int64_t{1} - count_of(node, "inverse"));
  backward.contribute(node, node.inputs[0],
                      {.op = "rotary", .attributes = attributes, .inputs = {backward.gradient_of(node.outputs[0])}});
}

/// Operands q [B, heads·D, T, 1], k and v [B, kv_heads·D, S, 1]. Attributes heads, kv_heads, causal (0 or 1).
void check_operands(const Graph& graph, const Node& node, std::size_t first) {
  for (std::size_t i = first; i < first + 3; ++i) expect_sequence(where(graph, node), input(graph, node, i).shape);
  const Tensor &q = input(graph, node, first), &k = input(graph, node, first + 1), &v = input(graph, node, first + 2);
  const std::int64_t heads = count_of(node, "heads"), kv_heads = count_of(node, "kv_heads");
  check_heads(graph, node, "heads", q.shape[1]);
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail("{}: kv_heads, got {} with {} heads expected a divisor of them", where(graph, node), kv_heads, heads);
  if (k.shape != v.shape || k.shape[1] != q.shape[1] / heads * kv_heads || k.shape[0] != q.shape[0])
    fail("{}: inputs, got queries {}, keys {} and values {} expected {} heads of {} features for keys and values",
         where(graph, node), to_string(q.shape), to_string(k.shape), to_string(v.shape), kv_heads, q.shape[1] / heads);
  if (count_of(node, "causal") == 1 && k.shape[2] != q.shape[2])
    fail("{}: causal, got queries of {} and keys of {} positions expected as many", where(graph, node), q.shape[2],
         k.shape[2]);
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 3);
  check_operands(graph, node, 0);
  const Tensor& q = input(graph, node, 0);
  std::vector<Result> results{like(graph, node, q), like(graph, node, q)};
  results[0].units = {q.units[0], 1, q.units[2], 1};
  results[1].suffix = ".logsumexp";
  results[1].shape[1] = count_of(node, "heads");
  results[1].units = results[0].units;
  return results;
}

/// Operands dy, y, q, k, v, logsumexp.
std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 6);
  check_operands(graph, node, 2);
  const Tensor& q = input(graph, node, 2);
  ensure(input(graph, node, 0).shape == q.shape && input(graph, node, 1).shape == q.shape &&
             input(graph, node, 5).shape == Shape({q.shape[0], count_of(node, "heads"), q.shape[2], 1}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  std::vector<Result> results;
  for (std::size_t i = 2; i < 5; ++i) results.push_back(like(graph, node, input(graph, node, i)));
  results[0].suffix = ".query";
  results[1].suffix = ".key";
  results[2].suffix = ".value";
  return results;
}

/// g runs over heads of keys and values and what of the queries belongs to them; queries may be split along the
/// sequence, of which every part needs all keys and values.
Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = "b g h ., b g . ., b g . . -> b g h ., b g h .",
                    .split = "b g h",
                    .groups = count_of(node, "kv_heads")});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = "b g h ., b g h ., b g h ., b g . ., b g . ., b g h . -> b g h ., b g . ., b g . .",
                    .split = "b g h",
                    .groups = count_of(node, "kv_heads")});
}

void gradient(Backward& backward, const Node& node) {
  const TensorId q = node.inputs[0], k = node.inputs[1], v = node.inputs[2];
  if (!backward.wanted(q) && !backward.wanted(k) && !backward.wanted(v)) return;
  const TensorId dy = backward.gradient_of(node.outputs[0]);
  const std::vector<TensorId> results =
      backward.append(node, {.name = node.name + ".grads",
                             .op = "attention_grad",
                             .attributes = node.attributes,
                             .inputs = {dy, node.outputs[0], q, k, v, node.outputs[1]}});
  for (std::size_t i = 0; i < 3; ++i)
    if (backward.wanted(node.inputs[i])) backward.contribute(node.inputs[i], results[i]);
}

/// Pairs of a query and a key that are looked at, times the features of all heads.
double pairs(const Graph& graph, const Node& node, std::size_t first) {
  const Shape &q = input(graph, node, first).shape, &k = input(graph, node, first + 1).shape;
  const auto queries = static_cast<double>(q[2]), keys = static_cast<double>(k[2]);
  const double looked_at = count_of(node, "causal") == 1 ? queries * (queries + 1) / 2 : queries * keys;
  return static_cast<double>(q[0] * q[1]) * looked_at;
}
double flops_of(const Graph& graph, const Node& node) {
  return 4 * pairs(graph, node, 0);
}
double flops_grad(const Graph& graph, const Node& node) {
  return 10 * pairs(graph, node, 2);
}
double flops_rotary(const Graph& graph, const Node& node) {
  return 3 * result_elements(graph, node);
}

} // namespace

std::vector<Operator> attention_family() {
  return {{"rotary", infer_rotary, form_rotary, gradient_rotary, flops_rotary, {0}},
          {"attention", infer, form_of, gradient, flops_of},
          {"attention_grad", infer_grad, form_grad, nullptr, flops_grad}};
}

} // namespace soybean::ops
