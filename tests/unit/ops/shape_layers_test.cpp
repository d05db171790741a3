// Shapes, units and physical order of layers that join, cut, reorder, pad and resize; their refusals.
#include "unit/ops/helpers.hpp"

#include "ops/form.hpp"
#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::TensorId;

/// A graph with an image [2, 4, 6, 5] and a layer made by f(graph, image).
template<class F>
graph::Tensor made(F&& f) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {4, 6, 5});
  return g.tensors[f(g, x)];
}
template<class F>
std::string refused(F&& f) {
  return error_of([&] { made(f); });
}

TEST(Concat, JoinsChannelsAndFeatures) {
  const auto images = made([](Graph& g, TensorId x) { return concat_layer(g, "y", {x, x, x}); });
  EXPECT_EQ(images.shape, (Shape{2, 12, 6, 5}));
  EXPECT_EQ(images.spatial, 30);
  const auto flat = made([](Graph& g, TensorId x) {
    const TensorId f = flatten_layer(g, "f", x);
    return concat_layer(g, "y", {f, f});
  });
  EXPECT_EQ(flat.shape, (Shape{2, 240}));
  EXPECT_EQ(flat.units, (Shape{1, 30}));
  EXPECT_EQ(flat.spatial, 30);
  const auto mixed = made([](Graph& g, TensorId x) {
    const TensorId f = flatten_layer(g, "f", x);
    return concat_layer(g, "y", {f, dense_layer(g, "d", f, {.units = 7})});
  });
  EXPECT_EQ(mixed.shape, (Shape{2, 127}));
  EXPECT_EQ(mixed.units, (Shape{1, 1}));
  EXPECT_EQ(mixed.spatial, 1);
}

TEST(Concat, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refused([](Graph& g, TensorId x) { return concat_layer(g, "y", {x}); }),
            "layer 'y' (concat): inputs, got 1 expected at least 2");
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return concat_layer(g, "y", {x, pad_layer(g, "p", x, {1, 0, 0, 0})});
            }),
            "layer 'y' (concat): inputs, got shapes 2x4x6x5 and 2x4x7x5 expected equal ones but for the channels");
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return concat_layer(g, "y", {x, flatten_layer(g, "f", x)});
            }),
            "layer 'y' (concat): inputs, got shapes 2x4x6x5 and 2x120 expected equal ones but for the channels");
}

TEST(Concat, ItsGradientsAreSlicesOfTheResults) {
  Graph g{.name = "g"};
  const TensorId x =
      conv2d_layer(g, "c", input_source(g, 2, {3, 4, 4}), {.channels = 5, .kernel = {1, 1}, .bias = false});
  const TensorId y = concat_layer(g, "y", {activate(g, "relu", x), pointwise_layer(g, "t", "tanh", x)});
  loss_layer(g, flatten_layer(g, "f", y));
  add_backward_and_update(g, {});
  const graph::Node& n = node(g, "t.grad");
  EXPECT_EQ(n.op, "slice");
  EXPECT_EQ(n.attributes.integer("begin"), 5);
  EXPECT_EQ(n.attributes.integer("size"), 5);
  EXPECT_EQ(g.nodes[g.tensors[n.inputs[0]].producer].name, "y.grad");
  ops::verify(g);
}

TEST(Slice, TakesChannelsOrWholeChannelsOfFeatures) {
  EXPECT_EQ(made([](Graph& g, TensorId x) { return slice_layer(g, "y", x, 1, 3); }).shape, (Shape{2, 2, 6, 5}));
  const auto flat = made([](Graph& g, TensorId x) { return slice_layer(g, "y", flatten_layer(g, "f", x), 30, 120); });
  EXPECT_EQ(flat.shape, (Shape{2, 90}));
  EXPECT_EQ(flat.spatial, 30);
  EXPECT_EQ(refused([](Graph& g, TensorId x) { return slice_layer(g, "y", x, 2, 5); }),
            "layer 'y' (slice): range, got channels 2 to 5 of 4 expected a part of them");
  EXPECT_EQ(refused([](Graph& g, TensorId x) { return slice_layer(g, "y", x, 2, 2); }),
            "layer 'y' (slice): range, got channels 2 to 2 expected at least one");
  EXPECT_EQ(refused([](Graph& g, TensorId x) { return slice_layer(g, "y", flatten_layer(g, "f", x), 10, 60); }),
            "layer 'y' (slice): range, got features 10 to 60 of a flattened image expected whole channels of 30. take "
            "the slice before the flatten layer");
}

TEST(Reshape, KeepsTheElementsOfASample) {
  const auto image = made([](Graph& g, TensorId x) { return reshape_layer(g, "y", x, {5, -1, 4}); });
  EXPECT_EQ(image.shape, (Shape{2, 5, 6, 4}));
  EXPECT_EQ(image.spatial, 24);
  EXPECT_EQ(made([](Graph& g, TensorId x) { return reshape_layer(g, "y", x, {-1}); }).spatial, 30); // just flattened
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return reshape_layer(g, "y", x, {5, 6, 5});
            }),
            "layer 'y' (reshape): shape, got 5x6x5 expected 120 elements as the input's 4x6x5 has");
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return reshape_layer(g, "y", x, {7, -1, 2});
            }),
            "layer 'y' (reshape): shape, got 120 elements in the input expected a multiple of 14 for the size that is "
            "-1");
}

TEST(Reshape, SplitsChannelsWhereTheyStay) {
  Graph g{.name = "g"};
  const TensorId x = conv2d_layer(g, "c", input_source(g, 2, {4, 6, 5}), {.channels = 4, .kernel = {1, 1}});
  reshape_layer(g, "same", x, {4, 5, 6});
  reshape_layer(g, "other", x, {5, 4, 6});
  const TensorId d = dense_layer(g, "d", flatten_layer(g, "f", x), {.units = 24});
  reshape_layer(g, "image", d, {4, 3, 2});
  EXPECT_EQ(to_string(form(g, node(g, "same"))), "b c h w -> b c h' w'");
  EXPECT_EQ(to_string(form(g, node(g, "other"))), "b . h w -> b . h' w'");
  const Form image = form(g, node(g, "image"));
  EXPECT_EQ(to_string(image), "b c -> b c h' w'");
  EXPECT_EQ(image.inputs[0][1].unit, 6);
  EXPECT_EQ(image.outputs[0][1].unit, 1);
}

TEST(Permute, ReordersDims) {
  EXPECT_EQ(made([](Graph& g, TensorId x) {
              return permute_layer(g, "y", x, {0, 3, 1, 2});
            }).shape,
            (Shape{2, 5, 4, 6}));
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return permute_layer(g, "y", x, {1, 0, 2, 3});
            }),
            "layer 'y' (permute): dims, got [1, 0, 2, 3] expected 0 (the batch), then 1, 2 and 3 in any order");
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return permute_layer(g, "y", flatten_layer(g, "f", x), {0, 1, 2, 3});
            }),
            "layer 'y' (permute): input, got 2 dims (2x120) expected 4. only images have dims to put in another order");
}

TEST(Pad, AddsRowsAndColumns) {
  EXPECT_EQ(made([](Graph& g, TensorId x) { return pad_layer(g, "y", x, {1, 2, 3, 4}); }).shape, (Shape{2, 4, 10, 11}));
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return pad_layer(g, "y", x, {1, -2, 0, 0});
            }),
            "layer 'y' (pad): padding, got [1, -2, 0, 0] expected between 0 and 16777216");
}

TEST(Upsample, HasTheSizeAskedFor) {
  EXPECT_EQ(made([](Graph& g, TensorId x) {
              return upsample_layer(g, "y", x, {.scale = Pair{2, 3}});
            }).shape,
            (Shape{2, 4, 12, 15}));
  EXPECT_EQ(made([](Graph& g, TensorId x) {
              return upsample_layer(g, "y", x, {.size = Pair{7, 3}});
            }).shape,
            (Shape{2, 4, 7, 3}));
  EXPECT_EQ(refused([](Graph& g, TensorId x) {
              return upsample_layer(g, "y", flatten_layer(g, "f", x), {.scale = Pair{2, 2}});
            }),
            "layer 'y' (upsample): input, got 2 dims (2x120) expected 4. only images can be made larger");
}

Shape pooled(const Shape& sample, const PoolOptions& options, const std::string& op = "max_pool") {
  Graph g{.name = "g"};
  return g.tensors[pool_layer(g, "p", op, input_source(g, 2, sample), options)].shape;
}

TEST(Pool, RoundsUpLikePyTorch) {
  const auto height = [](std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return pooled({1, in, 9},
                  {.kernel = {kernel, 1}, .stride = Pair{stride, 1}, .padding = {padding, 0}, .ceil_mode = true})[2];
  };
  EXPECT_EQ(height(112, 3, 2, 0), 56); // as in GoogLeNet
  EXPECT_EQ(height(55, 3, 2, 0), 27);
  EXPECT_EQ(height(5, 2, 3, 1), 2);
  EXPECT_EQ(height(4, 2, 3, 1), 2);
  EXPECT_EQ(height(3, 2, 3, 1), 2); // the last window begins in the image
  EXPECT_EQ(height(2, 2, 3, 1), 1); // or is left out
  EXPECT_EQ(pooled({1, 6, 7}, {.kernel = {3, 3}, .stride = Pair{2, 2}, .edges = Edges{0, 1, 1, 0}}),
            (Shape{2, 1, 3, 3}));
}

TEST(Pool, RefusesWindowsWithoutPixels) {
  EXPECT_EQ(error_of([] {
              pooled({1, 1, 1}, {.kernel = {2, 2}, .padding = {2, 2}, .dilation = {4, 4}});
            }),
            "layer 'p' (max_pool): dilation, got 4x4 on a 1x1 image expected windows with a pixel of it in each");
  EXPECT_EQ(error_of([] {
              pooled({1, 9, 9}, {.kernel = {3, 3}, .edges = Edges{1, 1, 2, 1}});
            }),
            "layer 'p' (max_pool): padding, got 1x1x2x1 expected at most half the kernel 3x3");
  EXPECT_EQ(error_of([] {
              pooled({1, 9, 9}, {.kernel = {2, 2}, .padding = {2, 2}, .dilation = {2, 2}});
            }),
            "layer 'p' (max_pool): padding, got 2x2 expected at most half the kernel 2x2 with its dilation");
}

graph::Tensor transposed(const Shape& sample, const ConvTranspose2dOptions& options) {
  Graph g{.name = "g"};
  return g.tensors[conv_transpose2d_layer(g, "t", input_source(g, 2, sample), options)];
}
std::string transposed_error(const Shape& sample, const ConvTranspose2dOptions& options) {
  return error_of([&] { transposed(sample, options); });
}

TEST(ConvTranspose2d, OutputSizesAreThoseOfPyTorch) {
  EXPECT_EQ(transposed({3, 5, 6}, {.channels = 2, .kernel = {3, 3}}).shape, (Shape{2, 2, 7, 8}));
  EXPECT_EQ(transposed({3, 5, 6}, {.channels = 2, .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}}).shape,
            (Shape{2, 2, 10, 12}));
  EXPECT_EQ(
      transposed({3, 5, 6},
                 {.channels = 2, .kernel = {3, 2}, .stride = {2, 3}, .output_padding = {1, 2}, .dilation = {2, 1}})
          .shape,
      (Shape{2, 2, 14, 19}));
}

TEST(ConvTranspose2d, WeightsAreThoseOfPyTorch) {
  Graph g{.name = "g"};
  conv_transpose2d_layer(g, "t", input_source(g, 2, {6, 5, 5}), {.channels = 4, .kernel = {3, 2}, .groups = 2});
  EXPECT_EQ(tensor(g, "t.weight").shape, (Shape{6, 2, 3, 2}));
  EXPECT_DOUBLE_EQ(tensor(g, "t.weight").init.scale, 1 / std::sqrt(12.0)); // fan_in is 2·3·2
  EXPECT_DOUBLE_EQ(tensor(g, "t.bias").init.scale, 1 / std::sqrt(12.0));
  const Form grouped = form(g, node(g, "t"));
  EXPECT_EQ(to_string(grouped), "b g ~h ~w, g o r s -> b g h w");
  EXPECT_EQ(grouped.inputs[0][1].unit, 3);
  EXPECT_EQ(grouped.outputs[0][1].unit, 2);
}

TEST(ConvTranspose2d, RefusesWhatDoesNotFit) {
  EXPECT_EQ(transposed_error({3, 5, 5}, {.kernel = {3, 3}}),
            "layer 't' (conv_transpose2d): channels, got 0 expected at least 1");
  EXPECT_EQ(transposed_error({3, 5, 5}, {.channels = 2, .kernel = {0, 3}}),
            "layer 't' (conv_transpose2d): kernel, got 0x3 expected between 1 and 16777216");
  EXPECT_EQ(
      transposed_error({30}, {.channels = 2, .kernel = {3, 3}}),
      "layer 't' (conv_transpose2d): input, got 2 dims (2x30) expected 4. a convolution needs images of channels, "
      "height and width");
  EXPECT_EQ(transposed_error({3, 5, 5}, {.channels = 2, .kernel = {3, 3}, .groups = 2}),
            "layer 't' (conv_transpose2d): groups, got 2 with 3 input channels expected a divisor of them");
  EXPECT_EQ(transposed_error({4, 5, 5}, {.channels = 3, .kernel = {3, 3}, .groups = 2}),
            "layer 't' (conv_transpose2d): groups, got 2 with 3 channels expected a divisor of them");
  EXPECT_EQ(transposed_error({3, 5, 5}, {.channels = 2, .kernel = {3, 3}, .stride = {2, 1}, .output_padding = {1, 1}}),
            "layer 't' (conv_transpose2d): output_padding, got 1x1 expected less than the stride 2x1");
  EXPECT_EQ(transposed_error({3, 2, 2}, {.channels = 2, .kernel = {2, 2}, .padding = {2, 0}}),
            "layer 't' (conv_transpose2d): padding, got 2x0 expected less: nothing is left of a 2x2 image");
}

TEST(Conv2d, UnevenPaddingIsAPadNodeAndTheRestOfIt) {
  Graph g{.name = "g"};
  const TensorId y = conv2d_layer(g, "c", input_source(g, 2, {3, 8, 9}),
                                  {.channels = 5, .kernel = {3, 3}, .edges = Edges{1, 2, 2, 0}});
  EXPECT_EQ(node(g, "c.pad").attributes.integers("padding"), (Shape{0, 2, 1, 0}));
  EXPECT_EQ(node(g, "c").attributes.integers("padding"), (Shape{1, 0}));
  EXPECT_EQ(node(g, "c.pad").layer, node(g, "c").layer);
  EXPECT_EQ(g.tensors[y].shape, (Shape{2, 5, 9, 9}));
}

} // namespace
