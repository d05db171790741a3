#pragma once
// What the operator files share: checks that name the layer, sizes of sliding windows, forms written as text. Included
// by src/ops/*.cpp only.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/form.hpp"
#include "ops/operator.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::ops {

using soybean::to_string; // shapes; the overloads here would hide it

/// "layer 'conv3' (conv2d)": the layer a node belongs to, the node itself if it belongs to none.
std::string where(const graph::Graph& graph, const graph::Node& node);

const graph::Tensor& input(const graph::Graph& graph, const graph::Node& node, std::size_t i);
const graph::Tensor& output(const graph::Graph& graph, const graph::Node& node, std::size_t i = 0);

/// Throws Bug unless the node has that many inputs.
void expect_inputs(const graph::Node& node, std::size_t count);
/// Throws Error unless input i has that rank; `hint` says what to do.
void expect_rank(const graph::Graph& graph, const graph::Node& node, std::size_t i, std::size_t rank,
                 std::string_view hint);
/// Throws Error unless the shape is that of sequences of features.
void expect_sequence(std::string_view where, const Shape& shape);
/// Throws Error unless all extents are positive and the tensor has at most 2^48 elements.
void expect_size(std::string_view where, std::string_view what, const Shape& shape);

/// H·W of a rank-4 shape, 1 of any other: the spatial size of an image produced in NHWC.
std::int64_t image_spatial(const Shape& shape);
/// Whether a shape is that of sequences: images of one column, a row for each position.
bool is_sequence(const Shape& shape);
/// Shape of the labels that go with logits: one per sample, or per position of a sequence.
Shape label_shape(const Shape& logits);
/// Whether dim 0 of a tensor runs over samples (not so for parameters, their gradients and their state).
bool has_batch(const graph::Graph& graph, graph::TensorId tensor);
/// Whether that is so of some input of a node.
bool any_batch(const graph::Graph& graph, const graph::Node& node);
/// Gradient in the backward phase, activation else.
graph::Role role_of(const graph::Node& node);
/// The dims of a tensor as text of a form: "b c h w", or "d0 d1" when it has no batch. Rank at most 4.
std::string dims_text(std::size_t rank, bool batch);

/// [H', W'] of a window sliding over an image, as in PyTorch. Attributes: kernel, stride, padding ([height, width], or
/// [top, left, bottom, right]) and, if present, dilation and ceil_mode (1: rounded up, but no window begins beyond the
/// image and the padding before it; else rounded down). Throws Error naming the layer.
Shape window_output(const graph::Graph& graph, const graph::Node& node, const Shape& image);

/// The halos of an image operand's height and width.
using OperandHalos = std::array<tiling::Halo, 2>;

/// A form written as in README.md. Index "b" is the batch, "h" and "w" are rows and columns of images; "." is a dim no
/// index runs along, "1" a scalar, "~h" a range of what blocks of h need.
struct FormText {
  std::string text;       ///< "b c h w, o c r s -> b o h' w'"
  std::string split = ""; ///< names of the splittable indices, separated by spaces
  bool replicable = false;
  bool may_idle = false;
  bool linear = false;
  /// Number of steps of index "g"; any other index has as many as the smallest extent it runs along.
  std::int64_t groups = 0;
  std::vector<OperandHalos> halos = {}; ///< per operand; none left out at the end are read
};
/// The halos of an operand of windows that slide over an image (attributes as in window_output): what it is of, the
/// positions of the image or the windows, and the sizes of both, [H, W].
struct WindowSizes {
  Shape image, windows;
};
/// Of rank-4 tensors.
inline WindowSizes window_sizes(const graph::Tensor& image, const graph::Tensor& windows) {
  return {{image.shape[2], image.shape[3]}, {windows.shape[2], windows.shape[3]}};
}
OperandHalos window_halos(const graph::Node& node, tiling::Reach reach, const WindowSizes& sizes);
/// The splittable indices of an operator that splits `others`, and rows and columns of its rank-4 operands.
std::string and_spatial(std::string_view others, std::size_t rank);
/// Units follow from the tensors': along each dim a multiple of its unit, the same number of steps for all operands.
Form make_form(const graph::Graph& graph, const graph::Node& node, const FormText& form);

/// The form of an operator whose operands are all shaped alike, apart from scalars' vectors at `hyper` (-1: none).
Form elementwise_form(const graph::Graph& graph, const graph::Node& node, bool linear, int hyper = -1);
/// Its result: input 0's shape and spatial size, the least common multiple of the units of the first `operands` inputs.
Result elementwise_result(const graph::Graph& graph, const graph::Node& node, std::size_t operands);

/// Operator::infer of operators with one, or two, operands alike and a result like them.
std::vector<Result> infer_unary(const graph::Graph& graph, const graph::Node& node);
std::vector<Result> infer_binary(const graph::Graph& graph, const graph::Node& node);

/// Elements of result 0.
double result_elements(const graph::Graph& graph, const graph::Node& node);

} // namespace soybean::ops
