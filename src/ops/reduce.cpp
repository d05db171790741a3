// Sums over channels, image positions or samples, times a factor (1/n makes them means), and the inverse, which repeats
// what was summed. A sum of two operands is one of their product: the gradient of a repeated operand.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

bool has(const std::vector<std::int64_t>& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

void check_dims(const Graph& graph, const Node& node, const Tensor& x) {
  const std::vector<std::int64_t>& dims = node.attributes.integers("dims");
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  if (rank != 2 && rank != 4)
    fail("{}: input, got {} dims ({}) expected 2 or 4", where(graph, node), rank, to_string(x.shape));
  bool good = !dims.empty();
  for (std::size_t i = 0; i < dims.size(); ++i)
    good = good && dims[i] >= (node.op == "reduce" ? 1 : 0) && dims[i] < rank && (i == 0 || dims[i - 1] < dims[i]);
  if (!good || (rank == 4 && has(dims, 2) != has(dims, 3)))
    fail("{}: dims, got {} expected some of {}", where(graph, node), graph::to_string(graph::Attribute(dims)),
         rank == 4 ? "1 (channels), 2 and 3 (both image dims together), ascending" : "1 (features)");
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 1 || node.inputs.size() == 2, "reduce takes 1 or 2 operands");
  const Tensor& x = input(graph, node, 0);
  ensure(input(graph, node, node.inputs.size() - 1).shape == x.shape, "the operands of reduce differ");
  check_dims(graph, node, x);
  const std::vector<std::int64_t>& dims = node.attributes.integers("dims");
  const auto rank = static_cast<std::size_t>(node.attributes.integer("rank"));
  Shape shape = x.shape, units = x.units;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (has(dims, d)) shape[d] = units[d] = 1;
  if (rank != shape.size()) { // image dims of 1 are left out
    if (shape.size() != 4 || rank != 2 || !has(dims, 2))
      fail("{}: keepdim, got false for dims {} expected true. only 2 and 3 can be left out", where(graph, node),
           graph::to_string(graph::Attribute(dims)));
    shape.resize(rank), units.resize(rank);
  }
  return {{.shape = shape,
           .units = units,
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(shape)}};
}

std::vector<Result> infer_batch(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 1 || node.inputs.size() == 2, "reduce_batch takes 1 or 2 operands");
  const Tensor& x = input(graph, node, 0);
  ensure(input(graph, node, node.inputs.size() - 1).shape == x.shape, "the operands of reduce_batch differ");
  check_dims(graph, node, x);
  return {{.shape = {x.shape[1]}, .units = {x.units[1]}, .dtype = graph.precision, .role = role_of(node)}};
}

std::string operands_text(const Graph& graph, const Node& node) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), true);
  return node.inputs.size() == 1 ? dims : dims + ", " + dims;
}

/// "b c . ." of a tensor with the dims of a larger one summed; `rank` of them.
std::string summed_text(const Shape& full, const Shape& summed) {
  static constexpr std::string_view names[] = {"b", "c", "h", "w"};
  std::string text = "b";
  for (std::size_t d = 1; d < summed.size(); ++d) text.append(" ").append(full[d] == summed[d] ? names[d] : ".");
  return text;
}

Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = operands_text(graph, node) + " -> " +
                            summed_text(input(graph, node, 0).shape, output(graph, node).shape),
                    .split = and_spatial("b c", input(graph, node, 0).shape.size()),
                    .linear = node.inputs.size() == 1});
}

Form form_batch(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = operands_text(graph, node) + " -> c",
                    .split = and_spatial("b c", input(graph, node, 0).shape.size()),
                    .linear = node.inputs.size() == 1});
}

void gradient(Backward& backward, const Node& node) {
  ensure(node.inputs.size() == 1, "a product's sum has no gradient");
  const Tensor& x = backward.graph().tensors[node.inputs[0]];
  backward.contribute(node, node.inputs[0],
                      {.op = "expand",
                       .attributes = {{"sample", Shape(x.shape.begin() + 1, x.shape.end())},
                                      {"unit", x.units[1]},
                                      {"spatial", x.spatial},
                                      {"factor", node.attributes.real("factor")}},
                       .inputs = {backward.gradient_of(node.outputs[0])}});
}

std::vector<Result> infer_expand(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& x = input(graph, node, 0);
  Shape shape = node.attributes.integers("sample");
  shape.insert(shape.begin(), x.shape[0]);
  Shape units(shape.size(), 1);
  units[0] = x.units[0];
  units[1] = node.attributes.integer("unit");
  ensure(x.shape.size() <= shape.size() && x.shape.size() >= 2 && shape.size() % 2 == 0,
         fmt::format("the operand of node '{}' does not fit", node.name));
  for (std::size_t d = 0; d < x.shape.size(); ++d)
    ensure(x.shape[d] == shape[d] || x.shape[d] == 1, fmt::format("the operand of node '{}' does not fit", node.name));
  if (x.shape[1] == shape[1]) units[1] = std::min(shape[1], std::lcm(units[1], x.units[1]));
  return {{.shape = shape,
           .units = units,
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = node.attributes.integer("spatial")}};
}

Form form_expand(const Graph& graph, const Node& node) {
  const Shape &from = input(graph, node, 0).shape, &to = output(graph, node).shape;
  return make_form(graph, node,
                   {.text = summed_text(to, from) + " -> " + dims_text(to.size(), true),
                    .split = and_spatial("b c", to.size()),
                    .linear = true});
}

double operands(const Graph& graph, const Node& node) {
  return static_cast<double>(node.inputs.size()) * static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::vector<Operator> reduce_family() {
  return {{"reduce", infer, form_of, gradient, operands},
          {"reduce_batch", infer_batch, form_batch, nullptr, operands, {}, true},
          {"expand", infer_expand, form_expand, nullptr, result_elements}};
}

} // namespace soybean::ops
