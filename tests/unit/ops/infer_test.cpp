// Shape rules of every operator and the text of every refusal.
#include "unit/ops/helpers.hpp"

#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::TensorId;

const Shape& shape_of(const Graph& g, TensorId t) {
  return g.tensors[t].shape;
}

Shape conv_shape(const Shape& sample, const Conv2dOptions& options) {
  Graph g{.name = "g"};
  return shape_of(g, conv2d_layer(g, "conv3", input_source(g, 2, sample), options));
}

std::string conv_error(const Shape& sample, const Conv2dOptions& options) {
  return error_of([&] { conv_shape(sample, options); });
}

Shape pool_shape(const Shape& sample, const PoolOptions& options, const std::string& op = "max_pool") {
  Graph g{.name = "g"};
  return shape_of(g, pool_layer(g, "pool1", op, input_source(g, 2, sample), options));
}

std::string pool_error(const Shape& sample, const PoolOptions& options) {
  return error_of([&] { pool_shape(sample, options); });
}

TEST(Conv2d, OutputSizesAreThoseOfPyTorch) {
  EXPECT_EQ(conv_shape({3, 8, 9}, {.channels = 5, .kernel = {3, 3}}), (Shape{2, 5, 6, 7}));
  EXPECT_EQ(conv_shape({3, 8, 9}, {.channels = 5, .kernel = {3, 3}, .padding = {1, 1}}), (Shape{2, 5, 8, 9}));
  EXPECT_EQ(conv_shape({3, 224, 224}, {.channels = 64, .kernel = {11, 11}, .stride = {4, 4}, .padding = {2, 2}}),
            (Shape{2, 64, 55, 55}));
  EXPECT_EQ(conv_shape({3, 8, 9}, {.channels = 5, .kernel = {3, 2}, .stride = {2, 3}}), (Shape{2, 5, 3, 3}));
  EXPECT_EQ(conv_shape({3, 9, 9}, {.channels = 5, .kernel = {3, 3}, .dilation = {4, 2}}), (Shape{2, 5, 1, 5}));
  EXPECT_EQ(conv_shape({4, 1, 1}, {.channels = 6, .kernel = {1, 1}, .padding = {3, 0}, .groups = 2}),
            (Shape{2, 6, 7, 1}));
}

TEST(Conv2d, ResultsAreImagesInTheirSpatialSize) {
  Graph g{.name = "g"};
  const TensorId y = conv2d_layer(g, "c", input_source(g, 2, {3, 8, 9}), {.channels = 5, .kernel = {3, 3}});
  EXPECT_EQ(g.tensors[y].spatial, 42);
  EXPECT_EQ(tensor(g, "c.weight").spatial, 1);
  EXPECT_EQ(tensor(g, "input").spatial, 72);
  const TensorId one = conv2d_layer(g, "d", y, {.channels = 5, .kernel = {6, 7}});
  EXPECT_EQ(g.tensors[one].spatial, 1);
}

TEST(Conv2d, GradientsHaveTheShapesOfWhatTheyAreGradientsOf) {
  const Graph g = every_operator();
  for (const graph::Tensor& t : g.tensors) {
    const std::size_t end = t.name.rfind(".grad");
    if (t.role != graph::Role::gradient || end == std::string::npos) continue;
    const graph::Tensor& primal = tensor(g, t.name.substr(0, end));
    EXPECT_EQ(t.shape, primal.shape) << t.name;
    EXPECT_EQ(t.units, primal.units) << t.name;
    EXPECT_EQ(t.spatial, primal.spatial) << t.name;
  }
}

TEST(Conv2d, RefusesAKernelLargerThanTheImage) {
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {5, 5}}),
            "layer 'conv3' (conv2d): kernel, got 5x5 on a padded 4x4 image expected at most 4x4. add padding or drop a "
            "pooling layer");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, 4}, .padding = {0, 1}, .dilation = {2, 1}}),
            "layer 'conv3' (conv2d): kernel, got 3x4 (5x4 with dilation) on a padded 4x6 image expected at most 4x6. "
            "add padding or drop a pooling layer");
}

TEST(Conv2d, RefusesBadSizes) {
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 0, .kernel = {3, 3}}),
            "layer 'conv3' (conv2d): channels, got 0 expected at least 1");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, -1}}),
            "layer 'conv3' (conv2d): kernel, got 3x-1 expected at least 1x1");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, 3}, .stride = {0, 1}}),
            "layer 'conv3' (conv2d): stride, got 0x1 expected between 1 and 16777216");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, 3}, .padding = {0, -1}}),
            "layer 'conv3' (conv2d): padding, got 0x-1 expected between 0 and 16777216");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, 3}, .dilation = {1, 0}}),
            "layer 'conv3' (conv2d): dilation, got 1x0 expected between 1 and 16777216");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 5, .kernel = {3, 3}, .padding = {1LL << 40, 0}}),
            "layer 'conv3' (conv2d): padding, got 1099511627776x0 expected between 0 and 16777216");
}

TEST(Conv2d, RefusesGroupsThatDoNotDivideTheChannels) {
  EXPECT_EQ(conv_error({6, 4, 4}, {.channels = 8, .kernel = {3, 3}, .groups = 4}),
            "layer 'conv3' (conv2d): groups, got 4 with 6 input channels expected a divisor of them");
  EXPECT_EQ(conv_error({6, 4, 4}, {.channels = 8, .kernel = {3, 3}, .groups = 3}),
            "layer 'conv3' (conv2d): groups, got 3 with 8 channels expected a divisor of them");
  EXPECT_EQ(conv_error({6, 4, 4}, {.channels = 8, .kernel = {3, 3}, .groups = 0}),
            "layer 'conv3' (conv2d): groups, got 0 with 6 input channels expected a divisor of them");
}

TEST(Conv2d, RefusesVectors) {
  EXPECT_EQ(
      conv_error({6}, {.channels = 8, .kernel = {3, 3}}),
      "layer 'conv3' (conv2d): input, got 2 dims (2x6) expected 4. a convolution needs images of channels, height "
      "and width");
}

TEST(Conv2d, RefusesSizesThatOverflow) {
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 1LL << 46, .kernel = {3, 3}}),
            "layer 'conv3' (conv2d): weight, got shape 70368744177664x3x3x3 expected at most 2^48 elements");
  EXPECT_EQ(conv_error({3, 4, 4}, {.channels = 8, .kernel = {3, 3}, .padding = {1 << 23, 1 << 23}}),
            "layer 'conv3' (conv2d): result, got shape 2x8x16777218x16777218 expected at most 2^48 elements");
}

/// A conv2d node given any operands and attributes, as a frontend may that builds no layers.
std::string raw_conv_error(const Shape& weight, std::int64_t groups) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {6, 4, 4});
  const TensorId w = append_source(g, {.name = "w", .shape = weight, .role = graph::Role::parameter});
  return error_of([&] {
    append(g, {.name = "raw",
               .op = "conv2d",
               .attributes = {{"kernel", Shape{3, 3}},
                              {"stride", Shape{1, 1}},
                              {"padding", Shape{0, 0}},
                              {"dilation", Shape{1, 1}},
                              {"groups", groups}},
               .inputs = {x, w}});
  });
}

TEST(Conv2d, RefusesAWeightThatDoesNotFit) {
  EXPECT_EQ(raw_conv_error({8, 5, 3, 3}, 1), "layer 'raw' (conv2d): weight, got shape 8x5x3x3 expected 8x6x3x3");
  EXPECT_EQ(raw_conv_error({8, 6, 3, 3}, 4),
            "layer 'raw' (conv2d): groups, got 4 with 6 input channels expected a divisor of them");
  EXPECT_EQ(raw_conv_error({8, 2, 3, 3}, 3),
            "layer 'raw' (conv2d): groups, got 3 with 8 channels expected a divisor of them");
}

TEST(Dense, KeepsSamplesAndHasItsUnits) {
  Graph g{.name = "g"};
  const TensorId y = dense_layer(g, "fc", input_source(g, 7, {5}), {.units = 3});
  EXPECT_EQ(shape_of(g, y), (Shape{7, 3}));
  EXPECT_EQ(tensor(g, "fc.weight").shape, (Shape{3, 5}));
  EXPECT_EQ(tensor(g, "fc.bias").shape, (Shape{3}));
}

TEST(Dense, RefusesImagesAndBadUnits) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {3, 4, 4});
  EXPECT_EQ(error_of([&] { dense_layer(g, "fc", x, {.units = 10}); }),
            "layer 'fc' (dense): input, got 4 dims (2x3x4x4) expected 2. put a flatten layer before it");
  EXPECT_EQ(error_of([&] { dense_layer(g, "fc2", x, {.units = -3}); }),
            "layer 'fc2' (dense): units, got -3 expected at least 1");
}

TEST(Dense, RefusesAWeightThatDoesNotFit) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {6}),
                 image = append_source(
                     g, {.name = "image", .shape = {2, 3, 4, 4}, .role = graph::Role::input, .spatial = 16});
  const TensorId w = append_source(g, {.name = "w", .shape = {4, 5}, .role = graph::Role::parameter});
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "dense", .inputs = {x, w}});
            }),
            "layer 'raw' (dense): weight, got 5 columns expected 6, one per input feature");
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "dense", .inputs = {image, w}});
            }),
            "layer 'raw' (dense): input, got 4 dims (2x3x4x4) expected 2. put a flatten layer before it");
}

TEST(Dense, NeedsAWeightInTheOrderOfItsInput) {
  Graph g{.name = "g"};
  const TensorId x = flatten_layer(g, "flat", input_source(g, 2, {3, 2, 2}));
  const TensorId w = append_source(g, {.name = "w", .shape = {4, 12}, .role = graph::Role::parameter});
  EXPECT_EQ(bug_of([&] {
              append(g, {.name = "raw", .op = "dense", .inputs = {x, w}});
            }),
            "the units or spatial size of weight 'w' do not fit its input");
}

TEST(Bias, RefusesWhatHasNoChannelsOrOthers) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {6}),
                 flat = flatten_layer(
                     g, "flat",
                     append_source(g,
                                   {.name = "image", .shape = {2, 3, 2, 2}, .role = graph::Role::input, .spatial = 4}));
  const TensorId five = append_source(g, {.name = "five", .shape = {5}, .role = graph::Role::parameter});
  const TensorId twelve = append_source(g, {.name = "twelve", .shape = {12}, .role = graph::Role::parameter});
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "bias", .inputs = {x, five}});
            }),
            "layer 'raw' (bias): bias, got shape 5 expected 6");
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "bias", .inputs = {five, five}});
            }),
            "layer 'raw' (bias): input, got 1 dims (5) expected at least 2");
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "bias", .inputs = {flat, twelve}});
            }),
            "layer 'raw' (bias): input, got a flattened image expected an image or a plain vector. a bias on it is not "
            "supported yet");
}

TEST(Pool, OutputSizesAreThoseOfPyTorch) {
  for (const std::string op : {"max_pool", "avg_pool"}) {
    EXPECT_EQ(pool_shape({3, 8, 9}, {.kernel = {2, 2}}, op), (Shape{2, 3, 4, 4}));
    EXPECT_EQ(pool_shape({3, 55, 55}, {.kernel = {3, 3}, .stride = Pair{2, 2}}, op), (Shape{2, 3, 27, 27}));
    EXPECT_EQ(pool_shape({3, 8, 8}, {.kernel = {3, 2}, .stride = Pair{1, 2}, .padding = {1, 1}}, op),
              (Shape{2, 3, 8, 5}));
  }
}

TEST(Pool, GlobalAveragesToOnePixel) {
  Graph g{.name = "g"};
  const TensorId y = global_avg_pool_layer(g, "gap", input_source(g, 2, {3, 8, 9}));
  EXPECT_EQ(shape_of(g, y), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(g.tensors[y].spatial, 1);
  const TensorId flat = flatten_layer(g, "flat", y);
  EXPECT_EQ(shape_of(g, flat), (Shape{2, 3}));
  EXPECT_EQ(g.tensors[flat].units, (Shape{1, 1}));
}

TEST(Pool, RefusesBadWindows) {
  EXPECT_EQ(pool_error({3, 4, 4}, {.kernel = {5, 5}}),
            "layer 'pool1' (max_pool): kernel, got 5x5 on a padded 4x4 image expected at most 4x4. add padding or drop "
            "a pooling layer");
  EXPECT_EQ(pool_error({3, 4, 4}, {.kernel = {3, 3}, .padding = {1, 2}}),
            "layer 'pool1' (max_pool): padding, got 1x2 expected at most half the kernel 3x3");
  EXPECT_EQ(pool_error({3, 4, 4}, {.kernel = {0, 3}}),
            "layer 'pool1' (max_pool): kernel, got 0x3 expected between 1 and 16777216");
  EXPECT_EQ(pool_error({3, 4, 4}, {.kernel = {2, 2}, .stride = Pair{-1, 1}}),
            "layer 'pool1' (max_pool): stride, got -1x1 expected between 1 and 16777216");
  EXPECT_EQ(
      pool_error({6}, {.kernel = {2, 2}}),
      "layer 'pool1' (max_pool): input, got 2 dims (2x6) expected 4. pooling needs images of channels, height and "
      "width");
  Graph g{.name = "g"};
  EXPECT_EQ(error_of([&] { global_avg_pool_layer(g, "gap", input_source(g, 2, {6})); }),
            "layer 'gap' (global_avg_pool): input, got 2 dims (2x6) expected 4. pooling needs images of channels, "
            "height and width");
}

TEST(Pointwise, KeepsShapeAndOrder) {
  for (const std::string op : {"relu", "relu6", "tanh", "sigmoid"}) {
    Graph g{.name = "g"};
    const TensorId y = pointwise_layer(g, "act", op, input_source(g, 2, {3, 8, 9}));
    EXPECT_EQ(shape_of(g, y), (Shape{2, 3, 8, 9}));
    EXPECT_EQ(g.tensors[y].spatial, 72);
  }
}

TEST(Dropout, RefusesRatesOutOfRange) {
  for (const auto& [rate, text] : {std::pair{1.0, "1"}, std::pair{-0.25, "-0.25"}}) {
    Graph g{.name = "g"};
    EXPECT_EQ(error_of([&] { dropout_layer(g, "drop", input_source(g, 2, {6}), rate, 1); }),
              fmt::format("layer 'drop' (dropout): rate, got {} expected at least 0 and below 1", text));
  }
}

TEST(Dropout, StreamIsTheHashOfTheLayersName) {
  Graph g{.name = "g"};
  dropout_layer(g, "a", input_source(g, 2, {6}), 0.5, ~std::uint64_t{0});
  EXPECT_EQ(node(g, "a").attributes.integer("stream"), static_cast<std::int64_t>(0xaf63dc4c8601ec8cULL));
  EXPECT_EQ(node(g, "a").attributes.integer("seed"), -1);
  EXPECT_EQ(tensor(g, "hyper").shape, (Shape{2}));
  EXPECT_EQ(tensor(g, "hyper").dtype, DType::f64);
}

TEST(Flatten, KeepsThePhysicalOrderAndWholeChannels) {
  Graph g{.name = "g"};
  const TensorId y = flatten_layer(g, "flat", input_source(g, 2, {3, 4, 5}));
  EXPECT_EQ(shape_of(g, y), (Shape{2, 60}));
  EXPECT_EQ(g.tensors[y].spatial, 20);
  EXPECT_EQ(g.tensors[y].units, (Shape{1, 20}));
  EXPECT_EQ(shape_of(g, flatten_layer(g, "again", y)), (Shape{2, 60}));
  const TensorId vector = append_source(g, {.name = "v", .shape = {3}, .role = graph::Role::parameter});
  EXPECT_EQ(error_of([&] { flatten_layer(g, "bad", vector); }),
            "layer 'bad' (flatten): input, got 1 dims (3) expected at least 2");
}

TEST(Add, RefusesUnequalOperands) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {3, 2, 2});
  const TensorId y = conv2d_layer(g, "c", x, {.channels = 4, .kernel = {1, 1}});
  EXPECT_EQ(error_of([&] {
              add_layer(g, "join", {x, y});
            }),
            "layer 'join' (add): inputs, got shapes 2x3x2x2 and 2x4x2x2 expected equal ones, or such as can be "
            "repeated: both image dims 1, channels 1, or one vector per sample or for all");
  EXPECT_EQ(error_of([&] { add_layer(g, "one", {x}); }), "layer 'one' (add): inputs, got 1 expected at least 2");
  EXPECT_EQ(error_of([&] { mul_layer(g, "gate", x, y); }),
            "layer 'gate' (mul): inputs, got shapes 2x3x2x2 and 2x4x2x2 expected equal ones, or such as can be "
            "repeated: both image dims 1, channels 1, or one vector per sample or for all");
  EXPECT_EQ(error_of([&] {
              append(g, {.name = "raw", .op = "mul", .inputs = {x, x, x}});
            }),
            "layer 'raw' (mul): inputs, got 3 expected 2");
}

TEST(Add, RefusesToJoinAFlattenedImageAndAPlainVector) {
  Graph g{.name = "g"};
  const TensorId flat = flatten_layer(g, "flat", input_source(g, 2, {3, 2, 2}));
  const TensorId plain = dense_layer(g, "fc", flat, {.units = 12});
  EXPECT_EQ(error_of([&] {
              add_layer(g, "join", {flat, plain});
            }),
            "layer 'join' (add): inputs, got spatial sizes 4 and 1 expected equal ones. joining a flattened image and "
            "a plain vector is not supported yet");
}

TEST(Loss, MakesSourcesAndMetrics) {
  Graph g{.name = "g", .precision = DType::f64};
  loss_layer(g, dense_layer(g, "fc", input_source(g, 7, {5}), {.units = 3}));
  EXPECT_EQ(tensor(g, "labels").dtype, DType::i32);
  EXPECT_EQ(tensor(g, "labels").shape, (Shape{7}));
  EXPECT_EQ(tensor(g, "sample_weights").dtype, DType::f64);
  ASSERT_EQ(g.metrics.size(), 2u);
  EXPECT_EQ(g.tensors[g.metrics[0]].name, "loss");
  EXPECT_EQ(g.tensors[g.metrics[1]].name, "loss.correct");
  EXPECT_EQ(g.tensors[g.metrics[0]].shape, Shape{});
  EXPECT_EQ(g.tensors[g.logits].name, "fc.bias_add");
}

TEST(Loss, RefusesImagesAndTakesFlattenedOnes) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {3, 4, 4});
  EXPECT_EQ(
      error_of([&] {
        Graph copy = g;
        loss_layer(copy, x);
      }),
      "layer 'loss' (softmax_cross_entropy): input, got 4 dims (2x3x4x4) expected 2. put a flatten or dense layer "
      "before the loss");
  loss_layer(g, flatten_layer(g, "flat", x));
  EXPECT_EQ(g.tensors[g.logits].spatial, 16);
}

TEST(Loss, RefusesLabelsAndWeightsOfAnotherLength) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {3});
  const TensorId image =
      append_source(g, {.name = "image", .shape = {2, 3, 4, 4}, .role = graph::Role::input, .spatial = 16});
  const auto labels = [&](const std::string& name, std::int64_t n) {
    return append_source(g, {.name = name, .shape = {n}, .dtype = DType::i32, .role = graph::Role::label});
  };
  const auto weights = [&](const std::string& name, std::int64_t n) {
    return append_source(g, {.name = name, .shape = {n}, .role = graph::Role::sample_weight});
  };
  const TensorId l2 = labels("l2", 2), l3 = labels("l3", 3), w2 = weights("w2", 2), w3 = weights("w3", 3);
  const auto raw = [&](TensorId logits, TensorId l, TensorId w) {
    return error_of([&] { append(g, {.name = "raw", .op = "softmax_cross_entropy", .inputs = {logits, l, w}}); });
  };
  EXPECT_EQ(raw(x, l3, w2), "layer 'raw' (softmax_cross_entropy): labels, got shape 3 expected 2, one per sample");
  EXPECT_EQ(raw(x, l2, w3),
            "layer 'raw' (softmax_cross_entropy): sample weights, got shape 3 expected 2, one per sample");
  EXPECT_EQ(raw(image, l2, w2),
            "layer 'raw' (softmax_cross_entropy): input, got 4 dims (2x3x4x4) expected 2. put a flatten or dense layer "
            "before the loss");
}

TEST(Append, RefusesNamesInUse) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 2, {3});
  pointwise_layer(g, "a", "relu", x);
  EXPECT_EQ(error_of([&] { pointwise_layer(g, "a", "tanh", x); }),
            "layer 'a' (tanh): name, got 'a', which is in use, expected a new one. rename the layer");
  EXPECT_EQ(error_of([&] { pointwise_layer(g, "input", "tanh", x); }),
            "layer 'input' (tanh): name, got 'input', which is in use, expected a new one. rename the layer");
  EXPECT_EQ(error_of([&] { append_source(g, {.name = "a", .shape = {2}, .role = graph::Role::state}); }),
            "tensor 'a': name, got 'a', which is in use, expected a new one. rename the layer");
}

TEST(Append, RefusesEmptyAndHugeSources) {
  Graph g{.name = "g"};
  EXPECT_EQ(error_of([&] {
              append_source(g, {.name = "a", .shape = {2, 0}, .role = graph::Role::state});
            }),
            "tensor 'a': state, got shape 2x0 expected positive sizes");
  EXPECT_EQ(error_of([&] {
              append_source(g, {.name = "a", .shape = {1 << 30, 1 << 30, 1 << 30}, .role = graph::Role::state});
            }),
            "tensor 'a': state, got shape 1073741824x1073741824x1073741824 expected at most 2^48 elements");
}

TEST(Input, RefusesBadSamples) {
  Graph g{.name = "g"};
  EXPECT_EQ(error_of([&] { input_source(g, 0, {3}); }), "input: batch, got 0 expected at least 1");
  EXPECT_EQ(error_of([&] {
              input_source(g, 2, {3, 4});
            }),
            "input: sample, got 2 dims (3x4) expected [channels, height, width] or [features]");
  EXPECT_EQ(error_of([&] {
              input_source(g, 2, {3, 4, -1});
            }),
            "input: batch of samples, got shape 2x3x4x-1 expected positive sizes");
}

TEST(Table, LooksUpByName) {
  EXPECT_TRUE(exists("conv2d"));
  EXPECT_FALSE(exists("conv3d"));
  EXPECT_EQ(find("relu").name, "relu");
  EXPECT_EQ(bug_of([] { find("conv3d"); }), "no operator 'conv3d'");
}

TEST(Verify, ComparesResultsWithWhatOperatorsInfer) {
  const Graph good = every_operator();
  EXPECT_NO_THROW(ops::verify(good));
  const auto tampered = [&](auto&& change) {
    Graph g = good;
    change(g.tensors[graph::find_tensor(g, "flat")]);
    return bug_of([&] { ops::verify(g); });
  };
  EXPECT_EQ(tampered([](graph::Tensor& t) { t.units[1] = 2; }), "tensor 'flat' is not what its operator infers");
  EXPECT_EQ(tampered([](graph::Tensor& t) { t.spatial = 2; }), "tensor 'flat' is not what its operator infers");
}

TEST(InferActivations, RefuseAttributesThatAreNot) {
  const auto with = [](const std::string& op, const graph::Attributes& attributes) {
    return error_of([&] {
      Graph g{.name = "bad"};
      pointwise_layer(g, "act", op, input_source(g, 2, {3}), attributes);
    });
  };
  EXPECT_EQ(with("leaky_relu", {{"slope", -0.5}}),
            "layer 'act' (leaky_relu): slope, got -0.5 expected a finite number of at least 0");
  EXPECT_EQ(with("elu", {{"alpha", -1.0}}), "layer 'act' (elu): alpha, got -1 expected a finite number of at least 0");
  EXPECT_EQ(with("gelu", {{"approximate", std::string("sigmoid")}}),
            "layer 'act' (gelu): approximate, got 'sigmoid' expected none or tanh");
}

TEST(InferBatchNorm, MakesStatisticsParametersAndState) {
  Graph g{.name = "bn"};
  const TensorId x =
      conv2d_layer(g, "c", input_source(g, 4, {6, 3, 3}), {.channels = 6, .kernel = {1, 1}, .groups = 2});
  const TensorId y = batch_norm_layer(g, "bn", x, {});
  EXPECT_EQ(g.tensors[y].shape, (Shape{4, 6, 3, 3}));
  EXPECT_EQ(g.tensors[y].spatial, 9);
  for (const char* name : {"bn.mean", "bn.variance", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) {
    EXPECT_EQ(tensor(g, name).shape, (Shape{6})) << name;
    EXPECT_EQ(tensor(g, name).units, (Shape{3})) << name;
  }
  EXPECT_EQ(g.tensors[tensor(g, "bn.mean").in_evaluation].name, "bn.running_mean");
  EXPECT_EQ(g.tensors[tensor(g, "bn.variance").in_evaluation].name, "bn.running_var");
  EXPECT_EQ(tensor(g, "bn.running_var").init.scale, 1);
  loss_layer(g, flatten_layer(g, "flat", y));
  add_backward_and_update(g, {});
  const graph::Node& update = node(g, "bn.running_var");
  EXPECT_EQ(update.op, "running_average");
  EXPECT_DOUBLE_EQ(update.attributes.real("factor"), 36.0 / 35.0);
  EXPECT_EQ(tensor(g, "bn.running_var.next").previous, graph::find_tensor(g, "bn.running_var"));
  EXPECT_EQ(graph::parameter_count(g), 6 * 3 + 6 + 12);
  ops::verify(g);
}

TEST(InferBatchNorm, RunningStatisticsFollowEvenWhereNothingIsTrained) {
  Graph g{.name = "bn"};
  const TensorId x = batch_norm_layer(g, "bn", input_source(g, 4, {5}), {.affine = false});
  loss_layer(g, dense_layer(g, "fc", x, {.units = 3}));
  add_backward_and_update(g, {});
  EXPECT_NE(graph::find_tensor(g, "bn.running_mean.next"), graph::none);
  EXPECT_EQ(graph::find_tensor(g, "bn.sums.bias"), graph::none);
}

TEST(InferBatchNorm, ValidationNeedsNoStatisticsOfTheBatch) {
  Graph g{.name = "bn"};
  const TensorId x = batch_norm_layer(g, "bn", input_source(g, 4, {5}), {});
  loss_layer(g, dense_layer(g, "fc", x, {.units = 3}));
  add_backward_and_update(g, {});
  const std::vector<char> active = graph::active_nodes(g, false);
  std::string names;
  for (std::size_t n = 0; n < g.nodes.size(); ++n)
    if (active[n]) names += g.nodes[n].name + " ";
  EXPECT_EQ(names, "bn fc fc.bias_add loss ");
  EXPECT_EQ(graph::operand(g, graph::find_tensor(g, "bn.mean"), false), graph::find_tensor(g, "bn.running_mean"));
  EXPECT_EQ(graph::operand(g, graph::find_tensor(g, "bn.mean"), true), graph::find_tensor(g, "bn.mean"));
}

TEST(InferBatchNorm, RefusesWhatHasNoStatistics) {
  const auto of = [](std::int64_t batch, const Shape& sample, const BatchNormOptions& options) {
    return error_of([&] {
      Graph g{.name = "bad"};
      batch_norm_layer(g, "bn", input_source(g, batch, sample), options);
    });
  };
  EXPECT_EQ(of(1, {4}, {}),
            "layer 'bn' (batch_norm): batch, got 1 value per channel (1x4) expected at least 2. take a larger batch");
  EXPECT_EQ(of(2, {4}, {.eps = 0}), "layer 'bn' (batch_norm): eps, got 0 expected a number above 0");
  EXPECT_EQ(of(2, {4}, {.momentum = 1.5}),
            "layer 'bn' (batch_norm): momentum, got 1.5 expected at least 0 and at most 1");
  EXPECT_EQ(error_of([&] {
              Graph g{.name = "bad"};
              batch_norm_layer(g, "bn", flatten_layer(g, "f", input_source(g, 2, {3, 2, 2})), {});
            }),
            "layer 'bn' (batch_norm): input, got a flattened image expected an image or a plain vector. put it before "
            "the flatten layer");
}

template<class F>
std::string refusal(const Shape& sample, F f) {
  return error_of([&] {
    Graph g{.name = "bad"};
    f(g, input_source(g, 2, sample));
  });
}

TEST(InferNorms, RefuseWhatDoesNotFit) {
  EXPECT_EQ(refusal({4, 2, 2}, [](Graph& g, TensorId x) { group_norm_layer(g, "gn", x, {.groups = 3}); }),
            "layer 'gn' (group_norm): groups, got 3 with 4 channels expected a divisor of them");
  EXPECT_EQ(refusal({4}, [](Graph& g, TensorId x) { group_norm_layer(g, "gn", x, {.eps = -1}); }),
            "layer 'gn' (group_norm): eps, got -1 expected a number above 0");
  EXPECT_EQ(refusal({4}, [](Graph& g, TensorId x) { layer_norm_layer(g, "ln", x, {.over = "all"}); }),
            "layer 'ln' (layer_norm): over, got 'all' expected sample or channels");
  EXPECT_EQ(refusal({3, 2, 2}, [](Graph& g, TensorId x) { layer_norm_layer(g, "ln", flatten_layer(g, "f", x), {}); }),
            "layer 'ln' (layer_norm): input, got a flattened image expected an image or a plain vector. put it before "
            "the flatten layer");
  EXPECT_EQ(refusal({4}, [](Graph& g, TensorId x) { lrn_layer(g, "lrn", x, {.size = 3}); }),
            "layer 'lrn' (lrn): input, got 2 dims (2x4) expected 4. it works across the channels of images");
  EXPECT_EQ(refusal({4, 2, 2}, [](Graph& g, TensorId x) { lrn_layer(g, "lrn", x, {.size = 0}); }),
            "layer 'lrn' (lrn): size, got 0 expected at least 1");
  EXPECT_EQ(refusal({4, 2, 2}, [](Graph& g, TensorId x) { lrn_layer(g, "lrn", x, {.size = 2, .beta = -1}); }),
            "layer 'lrn' (lrn): beta, got -1 expected a finite number of at least 0");
}

TEST(InferNorms, WeightsAreOnePerChannelOrOnePerValue) {
  Graph g{.name = "norms"};
  TensorId x = input_source(g, 2, {4, 3, 2});
  x = group_norm_layer(g, "gn", x, {.groups = 2});
  x = layer_norm_layer(g, "sample", x, {});
  layer_norm_layer(g, "channels", x, {.over = "channels"});
  EXPECT_EQ(tensor(g, "gn.weight").shape, (Shape{4}));
  EXPECT_EQ(tensor(g, "sample.bias").shape, (Shape{4, 3, 2}));
  EXPECT_EQ(tensor(g, "channels.weight").shape, (Shape{4}));
  EXPECT_EQ(form(g, node(g, "gn")).indices[1].count, 2); // groups are not split
}

TEST(InferArithmetic, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal({4},
                    [](Graph& g, TensorId x) {
                      arithmetic_layer(g, "c", "clamp", x, {{"min", 2.0}, {"max", 1.0}});
                    }),
            "layer 'c' (clamp): min, got 2 expected at most max, which is 1");
  EXPECT_EQ(refusal({4},
                    [](Graph& g, TensorId x) {
                      arithmetic_layer(g, "s", "scale", x, {{"factor", std::numeric_limits<double>::infinity()}});
                    }),
            "layer 's' (scale): factor, got inf expected a finite number");
  EXPECT_EQ(refusal({4, 2, 2}, [](Graph& g, TensorId x) { reduce_layer(g, "m", x, {.dims = {2}}); }),
            "layer 'm' (mean): dims, got [2] expected some of 1 (channels), 2 and 3 (both image dims together), "
            "ascending");
  EXPECT_EQ(refusal({4, 2, 2}, [](Graph& g, TensorId x) { reduce_layer(g, "m", x, {.dims = {1}}); }),
            "layer 'm' (mean): keepdim, got false for dims [1] expected true. only 2 and 3 can be left out");
  EXPECT_EQ(refusal({4}, [](Graph& g, TensorId x) { reduce_layer(g, "m", x, {.mean = false, .dims = {1}}); }),
            "layer 'm' (sum): keepdim, got false for features expected true. a sum over them leaves no dim but the "
            "batch");
  EXPECT_EQ(refusal({4}, [](Graph& g, TensorId x) { reduce_layer(g, "m", x, {.dims = {2}, .keepdim = true}); }),
            "layer 'm' (mean): dims, got [2] expected some of 1 (features)");
  EXPECT_EQ(
      refusal({3, 2, 2},
              [](Graph& g, TensorId x) {
                const TensorId flat = flatten_layer(g, "f", x);
                binary_layer(g, "y", "mul", flat, reduce_layer(g, "m", flat, {.dims = {1}, .keepdim = true}));
              }),
      "layer 'y' (mul): inputs, got shapes 2x12 and 2x1 expected equal ones. repeating along a flattened image is "
      "not supported yet");
}

TEST(InferArithmetic, RepeatedOperandsHaveNoIndexAlongTheirDims) {
  Graph g{.name = "repeated"};
  const TensorId x = input_source(g, 2, {6, 4, 3});
  const TensorId channel = reduce_layer(g, "channel", x, {.dims = {2, 3}});
  const TensorId position = reduce_layer(g, "position", x, {.dims = {1}, .keepdim = true});
  EXPECT_EQ(g.tensors[channel].shape, (Shape{2, 6}));
  EXPECT_EQ(g.tensors[position].shape, (Shape{2, 1, 4, 3}));
  const TensorId both = binary_layer(g, "both", "mul", channel, position);
  EXPECT_EQ(g.tensors[both].shape, (Shape{2, 6, 4, 3}));
  EXPECT_EQ(to_string(form(g, node(g, "both"))), "b c, b . h w -> b c h w");
  EXPECT_EQ(to_string(form(g, node(g, "position"))), "b c h w -> b . h w");
  EXPECT_EQ(to_string(form(g, node(g, "channel"))), "b c h w -> b c");
}

} // namespace
