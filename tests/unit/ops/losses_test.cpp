// Forms and shapes of losses, and which labels they can tell apart.
#include "unit/ops/helpers.hpp"

#include "ops/form.hpp"
#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::TensorId;

constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();

/// A dense layer of so many units under a loss.
Graph under(const std::string& op, std::int64_t units, Against against = Against::labels) {
  Graph g{.name = "g"};
  const TensorId y = dense_layer(g, "y", input_source(g, 4, {5}), {.units = units});
  add_losses(g, {.terms = {{.op = op, .input = y, .against = against}}});
  return g;
}

TEST(Losses, OfElementsSplitEveryDim) {
  const Graph labels = under("mse", 6), samples = under("binary_cross_entropy", 5, Against::samples);
  EXPECT_EQ(to_string(form(labels, node(labels, "loss"))), "b c, b, b -> 1");
  EXPECT_EQ(to_string(form(samples, node(samples, "loss"))), "b c, b c, b -> 1, 1");
  for (const Graph* g : {&labels, &samples})
    EXPECT_EQ(allowed_choices(form(*g, node(*g, "loss"))), (std::vector<Choice>{0, 1, choose_replicated}));
}

TEST(Losses, ComeWithTargetsOfTheShapeOfTheirInputs) {
  Graph g{.name = "g"};
  const TensorId flat = flatten_layer(g, "flat", input_source(g, 4, {2, 3, 3}));
  const TensorId y = dense_layer(g, "y", flat, {.units = 18});
  add_losses(g, {.terms = {{.name = "a", .op = "mse", .input = y, .against = Against::targets},
                           {.name = "b", .op = "mse", .input = flat, .against = Against::targets},
                           {.name = "c", .op = "binary_cross_entropy", .input = y, .against = Against::targets}}});
  EXPECT_EQ(node(g, "a").inputs[1], graph::find_tensor(g, "targets"));
  EXPECT_EQ(node(g, "c").inputs[1], graph::find_tensor(g, "targets"));
  const graph::Tensor& image = g.tensors[node(g, "b").inputs[1]]; // the same numbers in the order of a flattened image
  EXPECT_EQ(image.name, "targets.b");
  EXPECT_EQ(image.role, graph::Role::target);
  EXPECT_EQ(image.spatial, 9);
  EXPECT_EQ(label_classes(g), any);
  EXPECT_EQ(graph::find_tensor(g, "labels"), graph::none);
  EXPECT_EQ(to_string(form(g, node(g, "a"))), "b c, b c, b -> 1");
  add_backward_and_update(g, {});
  ops::verify(g);
  Graph other{.name = "g"};
  const TensorId x = input_source(other, 4, {5}), z = dense_layer(other, "z", x, {.units = 3});
  EXPECT_EQ(error_of([&] {
              add_losses(other, {.terms = {{.name = "a", .op = "mse", .input = x, .against = Against::targets},
                                           {.name = "b", .op = "mse", .input = z, .against = Against::targets}}});
            }),
            "layer 'b' (mse): target, got targets for shape 4x3 expected 4x5, that of another loss with targets. "
            "samples have targets of one shape");
}

TEST(Losses, OfMixedSamplesReadTheLabelsOfBoth) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 4, {5}), y = dense_layer(g, "y", x, {.units = 3});
  add_losses(g, {.terms = {{.name = "a", .input = y},
                           {.name = "b", .input = y, .label_smoothing = 0.1, .parts = 3},
                           {.name = "c", .op = "mse", .input = x, .against = Against::samples}},
                 .top_k = 2,
                 .mixed = true});
  EXPECT_EQ(to_string(form(g, node(g, "a"))), "b k, b, b, b, b -> 1, 1, 1");
  EXPECT_EQ(to_string(form(g, node(g, "b.partner"))), "b k, b -> b");
  EXPECT_EQ(to_string(form(g, node(g, "b"))), "b ., b ., b ., b, b, b, b, b, b, b -> 1, 1, b");
  EXPECT_EQ(node(g, "c").inputs.size(), 3U);
  EXPECT_EQ(label_classes(g), 3);
  EXPECT_TRUE(can_be_mixed(g));
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(to_string(form(g, first_of(g, "softmax_cross_entropy_grad"))), "b k, b, b, b, b -> b k");
  EXPECT_EQ(to_string(form(g, first_of(g, "split_softmax_loss_grad"))), "b k, b, b, b, b, b -> b k");
}

TEST(Losses, WithoutClassesCanNotBeMixed) {
  EXPECT_TRUE(can_be_mixed(under("softmax_cross_entropy", 7)));
  EXPECT_TRUE(can_be_mixed(under("softmax_cross_entropy", 300)));
  for (const char* op : {"mse", "binary_cross_entropy"})
    for (Against against : {Against::labels, Against::samples, Against::targets})
      EXPECT_FALSE(can_be_mixed(under(op, 5, against)));
}

TEST(Losses, TellSoManyLabelsApart) {
  EXPECT_EQ(label_classes(under("softmax_cross_entropy", 7)), 7);
  EXPECT_EQ(label_classes(under("mse", 7)), 7);
  EXPECT_EQ(label_classes(under("mse", 1)), any);
  EXPECT_EQ(label_classes(under("binary_cross_entropy", 1)), 2);
  EXPECT_EQ(label_classes(under("mse", 5, Against::samples)), any);
}

TEST(Losses, ClassesAreCutWhereTheyAreMany) {
  EXPECT_EQ(class_parts(10), 1);
  EXPECT_EQ(class_parts(255), 1);
  EXPECT_EQ(class_parts(256), 32);
  EXPECT_EQ(class_parts(1000), 8);
  EXPECT_EQ(class_parts(1536), 32);
  EXPECT_EQ(class_parts(50257), 29);
  EXPECT_EQ(class_parts(257), 1); // a prime
}

TEST(Losses, ManyClassesAreSplitInSteps) {
  Graph g = under("softmax_cross_entropy", 1000);
  EXPECT_EQ(to_string(form(g, node(g, "loss.parts"))), "b k -> b k, b k, b k");
  EXPECT_EQ(form(g, node(g, "loss.parts")).inputs[0][1].unit, 125);
  EXPECT_EQ(to_string(form(g, node(g, "loss.target"))), "b k, b -> b");
  EXPECT_EQ(to_string(form(g, node(g, "loss"))), "b ., b ., b ., b, b, b -> 1, 1, b");
  EXPECT_EQ(g.metrics.size(), 2U);
  EXPECT_EQ(g.tensors[g.metrics[1]].name, "loss.correct");
  EXPECT_EQ(label_classes(g), 1000);
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(to_string(form(g, first_of(g, "split_softmax_loss_grad"))), "b k, b, b, b -> b k");
}

/// Logits of an image keep its order, in which parts of the classes are no blocks.
TEST(Losses, ClassesOfAFlattenedImageAreNotCut) {
  Graph g{.name = "g"};
  add_losses(g, {.terms = {{.input = flatten_layer(g, "f", input_source(g, 4, {64, 3, 3}))}}});
  EXPECT_EQ(node(g, "loss").op, "softmax_cross_entropy");
}

TEST(Losses, RefuseWhatDoesNotFit) {
  Graph g{.name = "g"};
  const TensorId x = input_source(g, 4, {2, 3, 3});
  const TensorId y = dense_layer(g, "y", flatten_layer(g, "f", x), {.units = 3});
  EXPECT_EQ(error_of([&] { add_losses(g, {.terms = {{.name = "a", .input = y, .label_smoothing = 2}}}); }),
            "layer 'a' (softmax_cross_entropy): label_smoothing, got 2 expected between 0 and 1");
  EXPECT_EQ(error_of([&] { add_losses(g, {.terms = {{.name = "b", .input = y}}, .top_k = 5}); }),
            "layer 'b' (softmax_cross_entropy): top_k, got 5 expected between 2 and 3, the number of classes");
  EXPECT_EQ(error_of([&] { add_losses(g, {.terms = {{.name = "c", .op = "mse", .input = x}}}); }),
            "layer 'c' (mse): target, got labels for images (4x2x3x3) expected features. put a flatten or dense layer "
            "before the loss");
  EXPECT_EQ(error_of([&] {
              add_losses(g, {.terms = {{.name = "d", .op = "mse", .input = y, .against = Against::samples}}});
            }),
            "layer 'd' (mse): target, got shape 4x2x3x3 expected the input's 4x3");
}

TEST(Losses, GradientsCarryTheFactorsOfTheSum) {
  Graph g{.name = "g"};
  const TensorId y = dense_layer(g, "y", input_source(g, 4, {5}), {.units = 3});
  add_losses(g, {.terms = {{.name = "a", .input = y, .weight = 0.3}, {.name = "b", .op = "mse", .input = y}}});
  EXPECT_EQ(to_string(form(g, node(g, "loss"))), "1, 1 -> 1");
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(first_of(g, "softmax_cross_entropy_grad").attributes.real("factor"), 0.3);
  EXPECT_FALSE(first_of(g, "mse_grad").attributes.has("factor"));
  EXPECT_EQ(node(g, "y.bias_add.grad").op, "add");
}

} // namespace
