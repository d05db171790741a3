// What sets two plans apart, in words.
#include "plan/diff.hpp"

#include "plan/planner.hpp"
#include "plan/words.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

namespace soybean {
namespace {

const tiling::Mesh mesh{{2, 2}};

TEST(Diff, equal_plans_are_the_same) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Plan plan = plan::make_plan(graph, mesh, {});
  const std::string text = plan::difference(graph, {"a.json", plan}, {"b.json", plan});
  EXPECT_TRUE(text.ends_with(", as much (1.00 times)\nthe plans are the same\n")) << text;
}

TEST(Diff, names_nodes_and_tensors_with_bytes_that_add_up) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Plan data = plan::make_plan(graph, mesh, {.strategy = "data"});
  const plan::Plan model = plan::make_plan(graph, mesh, {.strategy = "model"});

  const std::string text = plan::difference(graph, {"a.json", data}, {"b.json", model});

  const auto has = [&](const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  };
  has("mlp on 4 ranks (mesh 2x2)\n");
  has("  A  a.json: " + plan::bytes_text(data.bytes) + " moved per step\n");
  has("  B  b.json: " + plan::bytes_text(model.bytes) + ", -" + plan::bytes_text(data.bytes - model.bytes) + " (");
  has("\n  fc1 ");
  has("batch/4");
  has("\n  fc1.weight.grad ");
  has("replicate/4");
  has("\n  total ");
  // fc1's gradient, 2 (P - 1) |W|, is the largest difference, so it comes first.
  const std::size_t heads = text.find("moved in A");
  EXPECT_EQ(text.find("fc1.weight.grad", heads), text.find_first_not_of(' ', text.find('\n', heads) + 1)) << text;
}

} // namespace
} // namespace soybean
