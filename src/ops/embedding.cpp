// Tables of one row per token, or per position of a sequence, as torch.nn.Embedding. A sequence of T tokens becomes an
// image of T rows and one column with as many channels as the table has columns: a row of memory per token.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &tokens = input(graph, node, 0), &weight = input(graph, node, 1);
  if (tokens.dtype != DType::i32 || tokens.shape.size() != 2)
    fail("{}: input, got {} of {} dims expected tokens. set model.vocabulary and let the layer take `input`",
         where(graph, node), tokens.dtype == DType::i32 ? "integers" : "numbers", tokens.shape.size());
  ensure(weight.shape.size() == 2, "the weight of an embedding has 2 dims");
  const Shape shape{tokens.shape[0], weight.shape[1], tokens.shape[1], 1};
  return {{.shape = shape,
           .units = {tokens.units[0], weight.units[1], tokens.units[1], 1},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(shape)}};
}

/// Rows of parts of the table that do not have a token are zero: splitting the vocabulary gives partial sums.
Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b h, v c -> b c h .", .split = "b v c h"});
}

void gradient(Backward& backward, const Node& node) {
  const Shape& table = backward.graph().tensors[node.inputs[1]].shape;
  backward.contribute(node, node.inputs[1],
                      {.op = "embedding_grad",
                       .attributes = {{"rows", table[0]}},
                       .inputs = {backward.gradient_of(node.outputs[0]), node.inputs[0]}});
}

/// Attribute rows: those of the table.
std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &tokens = input(graph, node, 1);
  ensure(dy.shape.size() == 4 && tokens.shape == Shape({dy.shape[0], dy.shape[2]}) && tokens.dtype == DType::i32,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {node.attributes.integer("rows"), dy.shape[1]},
           .units = {1, dy.units[1]},
           .dtype = graph.precision,
           .role = role_of(node)}};
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h ., b h -> v c", .split = "b c h v"});
}

/// Of a table with more rows than there are positions, none of them is split.
std::string rows_text(const Shape& sequence, std::int64_t rows) {
  return rows == sequence[2] ? "h c" : ". c";
}

std::vector<Result> infer_positions(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &x = input(graph, node, 0), &weight = input(graph, node, 1);
  expect_sequence(where(graph, node), input(graph, node, 0).shape);
  if (weight.shape[0] < x.shape[2])
    fail("{}: num_embeddings, got {} with sequences of {} expected at least as many", where(graph, node),
         weight.shape[0], x.shape[2]);
  ensure(weight.shape.size() == 2 && weight.shape[1] == x.shape[1],
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

Form form_positions(const Graph& graph, const Node& node) {
  const std::string rows = rows_text(input(graph, node, 0).shape, input(graph, node, 1).shape[0]);
  return make_form(graph, node, {.text = "b c h ., " + rows + " -> b c h .", .split = "b c h"});
}

void gradient_positions(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]);
  backward.contribute(node.inputs[0], dy);
  const Shape& table = backward.graph().tensors[node.inputs[1]].shape;
  backward.contribute(node, node.inputs[1],
                      {.op = "positional_embedding_grad", .attributes = {{"rows", table[0]}}, .inputs = {dy}});
}

std::vector<Result> infer_positions_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  const std::int64_t rows = node.attributes.integer("rows");
  ensure(dy.shape.size() == 4 && rows >= dy.shape[2], fmt::format("the operand of node '{}' does not fit", node.name));
  return {{.shape = {rows, dy.shape[1]},
           .units = {rows == dy.shape[2] ? dy.units[2] : 1, dy.units[1]},
           .dtype = graph.precision,
           .role = role_of(node)}};
}

Form form_positions_grad(const Graph& graph, const Node& node) {
  const std::string rows = rows_text(input(graph, node, 0).shape, node.attributes.integer("rows"));
  return make_form(graph, node, {.text = "b c h . -> " + rows, .split = "b c h"});
}

/// One operation per element of x or dy, operand 0; of an embedding, which copies rows, none.
double flops_positions(const Graph& graph, const Node& node) {
  return static_cast<double>(volume(input(graph, node, 0).shape));
}
double no_flops(const Graph&, const Node&) {
  return 0;
}

} // namespace

std::vector<Operator> embedding_family() {
  return {{"embedding", infer, form_of, gradient, no_flops},
          {"embedding_grad", infer_grad, form_grad, nullptr, flops_positions, {}, true},
          {"positional_embedding", infer_positions, form_positions, gradient_positions, flops_positions, {0}},
          {"positional_embedding_grad", infer_positions_grad, form_positions_grad, nullptr, flops_positions, {}, true}};
}

} // namespace soybean::ops
