// Functions of two operands, of which either may be repeated along dims where it has extent 1: images against one value
// per channel ([B, C, 1, 1] or [B, C]), per position ([B, 1, H, W]) or per sample, and against a vector [C]. The
// gradient by a repeated operand is summed over those dims (reduce.cpp).
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
using graph::TensorId;

/// The extents of an operand as an image's or a feature vector's: [B, C] stands for [B, C, 1, 1], [C] for all samples.
Shape aligned(const Tensor& tensor, std::size_t rank, std::int64_t batch) {
  Shape shape = tensor.shape;
  if (shape.size() == 1) shape.insert(shape.begin(), batch);
  while (shape.size() < rank) shape.push_back(1);
  return shape;
}

/// The shape that all operands from input `first` on are repeated to; empty when they do not fit.
Shape joined(const Graph& graph, const Node& node) {
  std::size_t rank = 0;
  std::int64_t batch = 1;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& t = input(graph, node, i);
    if (t.shape.size() != 1 && t.shape.size() != 2 && t.shape.size() != 4) return {};
    if (t.shape.size() > 1) batch = t.shape[0];
    rank = std::max(rank, t.shape.size());
  }
  if (rank < 2) return {};
  Shape result(rank, 1);
  result[0] = batch;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Shape shape = aligned(input(graph, node, i), rank, batch);
    for (std::size_t d = 0; d < rank; ++d) {
      if (shape[d] != result[d] && shape[d] != 1 && (result[d] != 1 || d == 0)) return {};
      if (d == 0 && shape[d] != batch) return {};
      result[d] = std::max(result[d], shape[d]);
    }
  }
  for (std::size_t i = 0; i < node.inputs.size() && rank == 4; ++i) { // an image is repeated along both of its dims
    const Shape shape = aligned(input(graph, node, i), rank, batch);
    const bool same = shape[2] == result[2] && shape[3] == result[3];
    if (!same && (shape[2] != 1 || shape[3] != 1)) return {};
  }
  return result;
}

bool all_alike(const Graph& graph, const Node& node) {
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (input(graph, node, i).shape != input(graph, node, 0).shape) return false;
  return true;
}

std::vector<Result> infer_operands(const Graph& graph, const Node& node) {
  if (all_alike(graph, node)) return {elementwise_result(graph, node, node.inputs.size())};
  const Tensor &a = input(graph, node, 0), &b = input(graph, node, 1);
  const Shape shape = joined(graph, node);
  if (shape.empty())
    fail(
        "{}: inputs, got shapes {} and {} expected equal ones, or such as can be repeated: both image dims 1, channels "
        "1, or one vector per sample or for all",
        where(graph, node), to_string(a.shape), to_string(b.shape));
  Shape units(shape.size(), 1);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& t = input(graph, node, i);
    if (t.shape.size() == 2 && t.spatial != 1)
      fail("{}: inputs, got shapes {} and {} expected equal ones. repeating along a flattened image is not supported "
           "yet",
           where(graph, node), to_string(a.shape), to_string(b.shape));
    const std::size_t channel = t.shape.size() == 1 ? 0 : 1;
    if (t.shape.size() > 1) units[0] = std::lcm(units[0], t.units[0]);
    if (t.shape[channel] == shape[1]) units[1] = std::lcm(units[1], t.units[channel]);
  }
  for (std::size_t d = 0; d < 2; ++d) units[d] = std::min(units[d], shape[d]);
  return {{.shape = shape,
           .units = units,
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(shape)}};
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) fail("{}: inputs, got {} expected 2", where(graph, node), node.inputs.size());
  return infer_operands(graph, node);
}

std::vector<Result> infer_greater_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 3);
  return infer_operands(graph, node);
}

/// The indices along an operand's dims: "." where it is repeated.
std::string operand_text(const Tensor& tensor, const Shape& result) {
  static constexpr std::string_view names[] = {"b", "c", "h", "w"};
  if (tensor.shape.size() == 1) return "c";
  std::string text = "b";
  for (std::size_t d = 1; d < tensor.shape.size(); ++d)
    text.append(" ").append(tensor.shape[d] == result[d] ? names[d] : ".");
  return text;
}

Form form_of(const Graph& graph, const Node& node, bool linear) {
  if (all_alike(graph, node)) return elementwise_form(graph, node, linear);
  const Shape& result = output(graph, node).shape;
  std::string text;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    text += (i ? ", " : "") + operand_text(input(graph, node, i), result);
  return make_form(
      graph, node,
      {.text = text + " -> " + dims_text(result.size(), true), .split = and_spatial("b c", result.size())});
}
Form form_plain(const Graph& graph, const Node& node) {
  return form_of(graph, node, false);
}
Form form_linear(const Graph& graph, const Node& node) {
  return form_of(graph, node, true);
}

/// What the gradients of one node are made with.
class Gradients {
public:
  Gradients(Backward& backward, const Node& node)
      : backward_(backward), node_(node), dy_(backward.gradient_of(node.outputs[0])) {}

  TensorId dy() const { return dy_; }
  bool wanted(std::size_t i) const { return backward_.wanted(node_.inputs[i]); }
  const Shape& result() const { return backward_.graph().tensors[node_.outputs[0]].shape; }
  bool repeated(std::size_t i) const { return backward_.graph().tensors[node_.inputs[i]].shape != result(); }

  /// An intermediate node for operand i.
  TensorId step(std::size_t i, std::string_view what, const std::string& op, std::vector<TensorId> inputs,
                graph::Attributes attributes = {}) {
    return backward_
        .append(node_, {.name = fmt::format("{}.grad_{}.{}", node_.name, i, what),
                        .op = op,
                        .attributes = std::move(attributes),
                        .inputs = std::move(inputs)})
        .front();
  }
  /// The sum of a product of tensors of the result's shape (or of one) over what operand i is repeated along.
  NewNode sum(std::size_t i, std::vector<TensorId> factors) const {
    const Tensor& target = backward_.graph().tensors[node_.inputs[i]];
    const Shape shape = aligned(target, result().size(), target.shape.size() == 1 ? 1 : result()[0]);
    std::vector<std::int64_t> dims;
    if (target.shape.size() == 1) dims.push_back(0);
    if (shape[1] != result()[1]) dims.push_back(1);
    const bool left_out = result().size() > target.shape.size();
    if (result().size() == 4 && (left_out || shape[2] != result()[2] || shape[3] != result()[3]))
      dims.insert(dims.end(), {2, 3});
    return {.op = target.shape.size() == 1 ? "reduce_batch" : "reduce",
            .attributes = {{"dims", dims}, {"rank", static_cast<std::int64_t>(target.shape.size())}, {"factor", 1.0}},
            .inputs = std::move(factors)};
  }
  TensorId summed(std::size_t i, std::vector<TensorId> factors) {
    NewNode node = sum(i, std::move(factors));
    node.name = fmt::format("{}.grad_{}.sum", node_.name, i);
    return backward_.append(node_, std::move(node)).front();
  }
  void add(std::size_t i, NewNode node) { backward_.contribute(node_, node_.inputs[i], std::move(node)); }
  /// `whole`, of the result's shape, summed as far as need be.
  void add(std::size_t i, TensorId whole) {
    if (repeated(i))
      add(i, sum(i, {whole}));
    else
      backward_.contribute(node_.inputs[i], whole);
  }

private:
  Backward& backward_;
  const Node& node_;
  TensorId dy_;
};

void gradient_add(Backward& backward, const Node& node) {
  Gradients g(backward, node);
  for (std::size_t i = 0; i < 2; ++i)
    if (g.wanted(i)) g.add(i, g.dy());
}

void gradient_sub(Backward& backward, const Node& node) {
  Gradients g(backward, node);
  if (g.wanted(0)) g.add(0, g.dy());
  if (!g.wanted(1)) return;
  const TensorId sum = g.repeated(1) ? g.summed(1, {g.dy()}) : g.dy();
  g.add(1, NewNode{.op = "scale", .attributes = {{"factor", -1.0}}, .inputs = {sum}});
}

void gradient_mul(Backward& backward, const Node& node) {
  Gradients g(backward, node);
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorId other = node.inputs[1 - i];
    if (!g.wanted(i)) continue;
    if (!g.repeated(i))
      g.add(i, NewNode{.op = "mul", .inputs = {g.dy(), other}});
    else if (!g.repeated(1 - i))
      g.add(i, g.sum(i, {g.dy(), other}));
    else
      g.add(i, g.sum(i, {g.step(i, "product", "mul", {g.dy(), other})}));
  }
}

/// By a: dy/b. By b: −dy·y/b, where b may be taken out of the sum.
void gradient_div(Backward& backward, const Node& node) {
  Gradients g(backward, node);
  const TensorId b = node.inputs[1], y = node.outputs[0];
  if (g.wanted(0)) {
    if (g.repeated(0))
      g.add(0, g.sum(0, {g.step(0, "quotient", "div", {g.dy(), b})}));
    else
      g.add(0, NewNode{.op = "div", .inputs = {g.dy(), b}});
  }
  if (!g.wanted(1)) return;
  const TensorId product = g.repeated(1) ? g.summed(1, {g.dy(), y}) : g.step(1, "product", "mul", {g.dy(), y});
  const TensorId quotient = g.step(1, "quotient", "div", {product, b});
  g.add(1, NewNode{.op = "scale", .attributes = {{"factor", -1.0}}, .inputs = {quotient}});
}

/// Each operand has dy where it is the result, half of it where both are.
void gradient_extreme(Backward& backward, const Node& node) {
  Gradients g(backward, node);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!g.wanted(i)) continue;
    TensorId greater = node.inputs[i], less = node.inputs[1 - i];
    if (node.op == "minimum") std::swap(greater, less);
    const std::vector<TensorId> operands{g.dy(), greater, less};
    if (g.repeated(i))
      g.add(i, g.sum(i, {g.step(i, "share", "greater_grad", operands)}));
    else
      g.add(i, NewNode{.op = "greater_grad", .inputs = operands});
  }
}

double twice(const Graph& graph, const Node& node) {
  return 2 * result_elements(graph, node);
}

} // namespace

std::vector<Operator> broadcast_family() {
  return {{"mul", infer, form_plain, gradient_mul, result_elements},
          {"add_repeated", infer, form_plain, gradient_add, result_elements},
          {"sub", infer, form_linear, gradient_sub, result_elements},
          {"div", infer, form_plain, gradient_div, result_elements},
          {"maximum", infer, form_plain, gradient_extreme, result_elements},
          {"minimum", infer, form_plain, gradient_extreme, result_elements},
          {"greater_grad", infer_greater_grad, form_plain, nullptr, twice}};
}

} // namespace soybean::ops
