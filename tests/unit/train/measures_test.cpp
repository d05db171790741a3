#include "train/measures.hpp"

#include "ops/layers.hpp"
#include "ops/losses.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::train;
using Named = std::vector<std::pair<std::string, double>>;

struct Head {
  graph::Graph graph{.name = "g"};
  graph::TensorId y = ops::dense_layer(graph, "y", ops::input_source(graph, 4, {5}), {.units = 3});
};

TEST(Measures, OfOneLossAreItsValueAndAccuracy) {
  Head h;
  ops::add_losses(h.graph, {.terms = {{.input = h.y}}, .top_k = 2});
  const Measures m = measures(h.graph, true, std::vector<double>{0.5, 2, 3}, 4);
  EXPECT_EQ(m.loss, 0.5);
  EXPECT_EQ(m.accuracy, 0.5);
  EXPECT_EQ(m.more, (Named{{"top2_accuracy", 0.75}}));
  EXPECT_TRUE(m.losses.empty());
}

TEST(Measures, WithoutClassesThereIsNoAccuracy) {
  Head h;
  ops::add_losses(h.graph, {.terms = {{.op = "mse", .input = h.y}}});
  const Measures m = measures(h.graph, true, std::vector<double>{0.5}, 4);
  EXPECT_EQ(m.loss, 0.5);
  EXPECT_TRUE(std::isnan(m.accuracy));
}

TEST(Measures, OfSeveralLossesNameThePartsAndValidationHasTheMainOne) {
  Head h;
  const graph::TensorId aux = ops::dense_layer(h.graph, "aux", h.y, {.units = 3});
  ops::add_losses(h.graph, {.terms = {{.name = "help", .input = h.y, .weight = 0.3},
                                      {.name = "bits", .op = "binary_cross_entropy", .input = aux},
                                      {.name = "main", .input = aux}},
                            .main = 2,
                            .top_k = 2});
  // loss, main, main.correct, main.top2, help, help.correct, bits, bits.correct
  const Measures m = measures(h.graph, true, std::vector<double>{9, 1, 2, 3, 4, 1, 5, 3.5}, 4);
  EXPECT_EQ(m.loss, 9);
  EXPECT_EQ(m.accuracy, 0.5);
  EXPECT_EQ(m.more, (Named{{"top2_accuracy", 0.75}}));
  EXPECT_EQ(m.losses, (Named{{"main", 1}, {"help", 4}, {"bits", 5}}));
  const Measures v = measures(h.graph, false, std::vector<double>{1, 2, 3}, 8);
  EXPECT_EQ(v.loss, 1);
  EXPECT_EQ(v.accuracy, 0.25);
  EXPECT_EQ(v.more, (Named{{"top2_accuracy", 0.375}}));
}

} // namespace
