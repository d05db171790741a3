// Plans as data: moves, costs, verification, text.
#include "plan/plan.hpp"

#include "base/error.hpp"
#include "plan/planner.hpp"
#include "support/random_graph.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace soybean {
namespace {

using tiling::replicate;
using tiling::split;
using tiling::Tiling;

struct Planned {
  graph::Graph graph = test::mlp(8, {16, 16, 4});
  plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2}}, {.strategy = "data"});
  graph::TensorId id(const std::string& name) const { return graph::find_tensor(graph, name); }
};

TEST(Plan, moves_of_a_weight_lead_from_its_update_to_its_users) {
  Planned p;
  const plan::TensorMoves moves = plan::moves(p.graph, p.plan, p.id("fc1.weight"));
  EXPECT_EQ(moves.produced, Tiling{replicate()});
  EXPECT_TRUE(moves.stored);
  EXPECT_TRUE(moves.needed.empty());
}

TEST(Plan, moves_of_a_gradient_end_its_partial_sum) {
  Planned p;
  const graph::TensorId gradient = p.id("fc1.weight.grad");
  const plan::TensorMoves moves = plan::moves(p.graph, p.plan, gradient);
  EXPECT_EQ(moves.produced, Tiling{tiling::partial()});
  EXPECT_TRUE(moves.stored);
  EXPECT_EQ(plan::cost_bytes(p.graph, p.plan, gradient), 2 * 16 * 16 * 4);
}

TEST(Plan, distinct_copies_are_made_once_from_the_stored_one) {
  Planned p;
  p.plan.stored[p.id("fc1.weight")] = p.plan.stored[p.id("fc1.weight.next")] = {split(0)};
  plan::evaluate(p.graph, p.plan);
  plan::verify(p.graph, p.plan);
  const plan::TensorMoves moves = plan::moves(p.graph, p.plan, p.id("fc1.weight"));
  EXPECT_EQ(moves.needed, std::vector<Tiling>{Tiling{replicate()}}); // forward and update share it
  EXPECT_EQ(p.plan.tensor_bytes[p.id("fc1.weight")], 16 * 16 * 4);
}

TEST(Plan, a_partial_sum_with_one_user_is_passed_on_unstored) {
  graph::Graph graph;
  graph::TensorId x = ops::input_source(graph, 4, {1024});
  x = ops::activate(graph, "relu", ops::dense_layer(graph, "wide", x, {.units = 1024, .bias = false}));
  x = ops::add_layer(graph, "sum",
                     {ops::dense_layer(graph, "a", x, {.units = 8, .bias = false}),
                      ops::dense_layer(graph, "b", x, {.units = 8, .bias = false})});
  graph = test::finish(std::move(graph), x);
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2}}, {});
  const graph::TensorId a = graph::find_tensor(graph, "a");
  EXPECT_EQ(plan.stored[a], Tiling{tiling::partial()});
  EXPECT_FALSE(plan::moves(graph, plan, a).stored);
  EXPECT_EQ(plan.tensor_bytes[a], 0);
}

TEST(Plan, totals_are_sums_with_metrics_apart) {
  Planned p;
  std::int64_t data = 0, control = 0;
  for (std::size_t t = 0; t < p.graph.tensors.size(); ++t) {
    const std::int64_t bytes = plan::cost_bytes(p.graph, p.plan, static_cast<graph::TensorId>(t));
    EXPECT_EQ(bytes, p.plan.tensor_bytes[t]);
    (p.graph.tensors[t].role == graph::Role::metric ? control : data) += bytes;
  }
  EXPECT_EQ(p.plan.bytes, data);
  EXPECT_EQ(p.plan.control_bytes, control);
  EXPECT_EQ(control, 2 * 2 * 4); // loss and correct, one all-reduce of a float each
}

TEST(Plan, verify_catches_tampering) {
  const std::vector<std::pair<std::string, std::function<void(Planned&)>>> cases = {
      {"bytes do not add up", [](Planned& p) { p.plan.bytes += 4; }},
      {"bytes do not add up", [](Planned& p) { p.plan.control_bytes = 0; }},
      {"held bytes do not add up", [](Planned& p) { p.plan.held_bytes -= 1; }},
      {"bytes of tensors do not follow", [](Planned& p) { p.plan.tensor_bytes[p.id("fc2.weight.grad")] = 1; }},
      {"node 'fc1.grad' does not run where 'fc1.relu' does",
       [](Planned& p) {
         for (std::size_t n = 0; n < p.graph.nodes.size(); ++n)
           if (p.graph.nodes[n].name == "fc1.grad") p.plan.choices[n] = {1};
       }},
      {"node 'fc1' has a choice its form does not allow", [](Planned& p) { p.plan.choices[0] = {ops::choose_linear}; }},
      {"node 'fc1' has not one choice per cut", [](Planned& p) { p.plan.choices[0] = {}; }},
      {"not one choice per node", [](Planned& p) { p.plan.choices.pop_back(); }},
      {"not one stored tiling per tensor", [](Planned& p) { p.plan.stored.pop_back(); }},
      {"tensor 'fc1' is stored in a tiling that does not fit",
       [](Planned& p) { p.plan.stored[p.id("fc1")] = {split(2)}; }},
      {"tensor 'fc1' is passed on as partial, but made as split(0)",
       [](Planned& p) { p.plan.stored[p.id("fc1")] = {tiling::partial()}; }},
      {"tensor 'fc1.weight.grad' is passed on as partial, but needed as replicate",
       [](Planned& p) { p.plan.stored[p.id("fc1.weight.grad")] = {tiling::partial()}; }},
      {"tensor 'fc1.weight.next' is in tiling replicate, not split(0)",
       [](Planned& p) { p.plan.stored[p.id("fc1.weight")] = {split(0)}; }},
      {"tensor 'fc1.relu' is stored as a partial sum, but has not one maker and one user",
       [](Planned& p) { p.plan.stored[p.id("fc1.relu")] = {tiling::partial()}; }},
      {"tensor 'loss' is in tiling partial, not replicate",
       [](Planned& p) { p.plan.stored[p.id("loss")] = {tiling::partial()}; }},
      {"tensor 'input' is in tiling replicate", [](Planned& p) { p.plan.stored[p.id("input")] = {replicate()}; }},
  };
  for (const auto& [text, tamper] : cases) {
    Planned p;
    tamper(p);
    try {
      plan::verify(p.graph, p.plan);
      ADD_FAILURE() << "not caught: " << text;
    } catch (const Bug& bug) {
      EXPECT_NE(std::string(bug.what()).find(text), std::string::npos) << bug.what();
    }
  }
}

TEST(Plan, text_names_choices_and_tilings) {
  Planned p;
  const std::string text = to_string(p.graph, p.plan);
  EXPECT_NE(text.find("plan data mesh 2 bytes 2560 control 16"), std::string::npos) << text;
  EXPECT_NE(text.find("\nnode fc1: b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntensor fc1.weight.grad: replicate bytes 2048\n"), std::string::npos) << text;
}

} // namespace
} // namespace soybean
