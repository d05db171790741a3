// Strategies, pins, bounds and determinism of the planner.
#include "plan/planner.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"
#include "support/random_graph.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace soybean {
namespace {

using tiling::Kind;

plan::Plan make(const graph::Graph& graph, const std::vector<int>& cuts, const std::string& strategy,
                std::map<std::string, std::string> pins = {}) {
  plan::Plan plan = plan::make_plan(graph, tiling::Mesh{cuts}, {.strategy = strategy, .pins = std::move(pins)});
  plan::verify(graph, plan);
  return plan;
}

std::string error_of(const graph::Graph& graph, const plan::Options& options) {
  try {
    plan::make_plan(graph, tiling::Mesh{{2, 2}}, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const tiling::Tiling& stored(const graph::Graph& graph, const plan::Plan& plan, const std::string& name) {
  return plan.stored.at(graph::find_tensor(graph, name));
}

bool all(const tiling::Tiling& tiling, Kind kind) {
  return std::all_of(tiling.begin(), tiling.end(), [&](const tiling::Entry& e) { return e.kind == kind; });
}

// --- random graphs -------------------------------------------------------------------------------------------------

class RandomGraphs : public testing::TestWithParam<std::vector<int>> {};

TEST_P(RandomGraphs, no_strategy_beats_auto_and_all_are_legal) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 4});
    const plan::Plan best = make(graph, GetParam(), "auto");
    EXPECT_EQ(best.status, plan::Status::optimal) << "seed " << seed << ", gap " << best.gap;
    for (const std::string& strategy : plan::strategies()) {
      const plan::Plan plan = make(graph, GetParam(), strategy);
      EXPECT_GE(plan.bytes, best.bytes) << "seed " << seed << ", " << strategy;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RandomGraphs,
                         testing::Values(std::vector<int>{}, std::vector<int>{2}, std::vector<int>{3},
                                         std::vector<int>{2, 2}, std::vector<int>{5}, std::vector<int>{3, 2},
                                         std::vector<int>{7}, std::vector<int>{2, 2, 2}));

TEST(Planner, one_rank_moves_nothing) {
  const graph::Graph graph = support::random_graph(3);
  for (const std::string& strategy : plan::strategies()) EXPECT_EQ(make(graph, {}, strategy).bytes, 0);
}

TEST(Planner, gives_the_same_plan_every_time) {
  const graph::Graph graph = test::alexnet(256);
  const plan::Plan first = make(graph, {2, 2, 2}, "auto");
  EXPECT_EQ(to_string(graph, first), to_string(graph, make(graph, {2, 2, 2}, "auto")));
}

// --- named strategies -----------------------------------------------------------------------------------------------

TEST(Planner, data_splits_the_batch_and_keeps_weights_whole) {
  const graph::Graph graph = support::random_graph(11);
  const plan::Plan plan = make(graph, {2, 2}, "data");
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].role == graph::Role::parameter) {
      EXPECT_TRUE(all(plan.stored[t], Kind::replicate)) << graph.tensors[t].name;
    }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ops::Form form = ops::form(graph, graph.nodes[n]);
    const auto batch = std::find_if(form.indices.begin(), form.indices.end(), [](const auto& i) { return i.batch; });
    if (batch == form.indices.end()) continue;
    for (ops::Choice choice : plan.choices[n]) EXPECT_EQ(choice, batch - form.indices.begin());
  }
}

TEST(Planner, model_splits_weights_and_never_the_batch) {
  const graph::Graph graph = test::alexnet(64, true);
  const plan::Plan plan = make(graph, {2, 2, 2}, "model");
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].role == graph::Role::parameter) {
      EXPECT_TRUE(all(plan.stored[t], Kind::split)) << graph.tensors[t].name;
    }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ops::Form form = ops::form(graph, graph.nodes[n]);
    for (ops::Choice choice : plan.choices[n]) EXPECT_FALSE(choice >= 0 && form.indices[choice].batch);
  }
  EXPECT_EQ(plan.control_bytes, 0);
}

TEST(Planner, owt_treats_convolutions_as_data_and_dense_layers_as_model) {
  const graph::Graph graph = test::alexnet(64, true);
  const plan::Plan plan = make(graph, {2, 2}, "owt");
  EXPECT_TRUE(all(stored(graph, plan, "conv3.weight"), Kind::replicate));
  EXPECT_TRUE(all(stored(graph, plan, "conv3.bias"), Kind::replicate));
  EXPECT_TRUE(all(stored(graph, plan, "fc7.weight"), Kind::split));
  EXPECT_TRUE(all(stored(graph, plan, "fc7.weight.momentum"), Kind::split));
  EXPECT_TRUE(all(stored(graph, plan, "conv3.relu"), Kind::split));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ops::Form form = ops::form(graph, graph.nodes[n]);
    for (ops::Choice choice : plan.choices[n]) {
      const bool batch = choice >= 0 && form.indices[choice].batch;
      if (graph.nodes[n].op.starts_with("conv2d")) {
        EXPECT_TRUE(batch) << graph.nodes[n].name;
      } else if (graph.nodes[n].op.starts_with("dense")) {
        EXPECT_FALSE(batch) << graph.nodes[n].name;
      }
    }
  }
}

TEST(Planner, auto_leaves_no_rank_without_work_where_it_can) {
  const graph::Graph graph = test::mlp(3, {64, 64, 10});
  const plan::Plan plan = make(graph, {2, 2}, "auto");
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    EXPECT_FALSE(tiling::has_empty_block(plan.stored[t], graph.tensors[t].shape, plan.mesh)) << graph.tensors[t].name;
}

TEST(Planner, named_strategies_work_on_a_batch_smaller_than_the_ranks) {
  const graph::Graph graph = test::mlp(2, {3, 2, 2}, true);
  for (const std::string& strategy : plan::strategies()) EXPECT_GE(make(graph, {2, 2, 2}, strategy).bytes, 0);
  EXPECT_EQ(make(graph, {2, 2, 2}, "data").bytes, 2 * 7 * graph::parameter_count(graph) * 4);
}

TEST(Planner, unknown_strategies_are_refused) {
  EXPECT_EQ(error_of(test::mlp(4, {4, 4}), {.strategy = "dta"}),
            "parallel.strategy: name of a strategy, got \"dta\" expected auto, data, model, owt, kcut. did you mean "
            "\"data\"?");
}

// --- pins -----------------------------------------------------------------------------------------------------------

TEST(Planner, pins_fix_what_a_tensor_is_stored_in) {
  const graph::Graph graph = test::mlp(64, {256, 256, 256}, true);
  const std::int64_t best = make(graph, {2, 2}, "auto").bytes;
  for (const std::string pin : {"split(0),replicate", "replicate,replicate", "split(1),split(0)", "split(0),split(0)"})
    for (const std::string strategy : {"auto", "kcut"}) {
      const plan::Plan plan = make(graph, {2, 2}, strategy, {{"fc1.weight", pin}, {"fc1.relu", "split(1),replicate"}});
      EXPECT_EQ(to_string(stored(graph, plan, "fc1.weight")), pin);
      EXPECT_EQ(to_string(stored(graph, plan, "fc1.weight.next")), pin);
      EXPECT_EQ(to_string(stored(graph, plan, "fc1.relu")), "split(1),replicate");
      EXPECT_GE(plan.bytes, best);
    }
}

TEST(Planner, a_pinned_tensor_is_not_passed_on_partial) {
  graph::Graph graph;
  graph::TensorId x = ops::input_source(graph, 8, {64});
  x = ops::add_layer(graph, "sum",
                     {ops::dense_layer(graph, "a", x, {.units = 64, .bias = false}),
                      ops::dense_layer(graph, "b", x, {.units = 64, .bias = false})});
  graph = test::finish(std::move(graph), x);
  const plan::Plan plan = make(graph, {2}, "auto", {{"a", "replicate"}});
  EXPECT_EQ(to_string(stored(graph, plan, "a")), "replicate");
}

TEST(Planner, pins_on_tensors_that_are_not_there_are_refused) {
  EXPECT_EQ(error_of(test::mlp(4, {4, 4, 4}), {.pins = {{"fc1.weigth", "split(0),replicate"}}}),
            "parallel.pins: name of a tensor, got \"fc1.weigth\" expected one of the model's. Did you mean "
            "\"fc1.weight\"?");
  EXPECT_EQ(
      error_of(test::mlp(4, {4, 4, 4}), {.pins = {{"qqqqqqqqqq", "replicate,replicate"}}, .pins_where = "x.toml:3"}),
      "x.toml:3: name of a tensor, got \"qqqqqqqqqq\" expected one of the model's. Parameters are called "
      "<layer>.weight and <layer>.bias, outputs like their layer.");
}

TEST(Planner, pins_that_are_no_tilings_are_refused) {
  const graph::Graph graph = test::mlp(4, {4, 4, 4});
  const auto pinned = [&](const std::string& text) { return error_of(graph, {.pins = {{"fc1.weight", text}}}); };
  EXPECT_EQ(pinned("split(2),replicate").substr(0, 80),
            "parallel.pins.\"fc1.weight\": dim split by tiling split(2),replicate, got 2 expect");
  EXPECT_EQ(pinned("split(0)").substr(0, 83),
            "parallel.pins.\"fc1.weight\": entries of tiling split(0), got 1 expected 2, one per c");
  EXPECT_EQ(
      pinned("partial,replicate"),
      "parallel.pins.\"fc1.weight\": stored tiling, got partial,replicate expected split or replicate on each cut. "
      "A partial sum is never stored.");
}

TEST(Planner, pins_that_cut_channels_of_a_flattened_tensor_are_refused) {
  const graph::Graph graph = test::flattened(4, 5);
  const auto pinned = [&](const std::string& text) { return error_of(graph, {.pins = {{"fc.weight", text}}}); };
  for (const std::string text : {"split(1/4),replicate", "split(1/1),split(1/1)", "replicate,split(1/7)"})
    EXPECT_EQ(pinned(text), "parallel.pins.\"fc.weight\": stored tiling, got " + text +
                                " expected blocks of whole channels of 12 positions: split(1/12).");
  for (const std::string text : {"split(1),replicate", "split(1/12),replicate", "split(1/24),replicate"})
    EXPECT_EQ(pinned(text), "no error");
}

TEST(Planner, pins_on_what_is_not_stored_are_refused) {
  EXPECT_EQ(error_of(test::mlp(4, {4, 4, 4}), {.pins = {{"input", "split(0),replicate"}}}),
            "parallel.pins.\"input\": pinned tensor, got one of role input expected one that is stored. It is read or "
            "made in whatever tiling its nodes use, so there is nothing to pin.");
}

TEST(Planner, pins_against_the_strategy_are_refused) {
  const graph::Graph graph = test::mlp(4, {4, 4, 4});
  EXPECT_EQ(error_of(graph, {.strategy = "data", .pins = {{"fc1.weight", "split(0),replicate"}}}),
            "parallel.pins.\"fc1.weight\": stored tiling, got split(0),replicate expected one that strategy \"data\" "
            "allows: replicated on every cut. Use strategy \"auto\" or drop the pin.");
  EXPECT_NE(error_of(graph, {.strategy = "model", .pins = {{"fc1.weight", "split(0),replicate"}}})
                .find("allows: split on every cut"),
            std::string::npos);
  EXPECT_NE(error_of(graph, {.strategy = "model", .pins = {{"fc1.relu", "split(0),replicate"}}})
                .find("allows: not split over the batch"),
            std::string::npos);
  for (const std::string strategy : {"data", "model", "owt"})
    EXPECT_EQ(error_of(test::alexnet(4), {.strategy = strategy, .pins = {{"conv3.relu", "split(2),replicate"}}}),
              "parallel.pins.\"conv3.relu\": stored tiling, got split(2),replicate expected one that strategy \"" +
                  strategy +
                  "\" allows: not split over rows or columns of images. Use strategy \"auto\" or drop the pin.");
  EXPECT_EQ(error_of(test::alexnet(4), {.strategy = "data", .pins = {{"conv3.relu", "split(0),replicate"}}}),
            "no error");
}

// --- rows and columns of images -------------------------------------------------------------------------------------

/// Convolutions of few channels on large images, which have small weights, then of many on small ones.
graph::Graph large_images(std::int64_t batch) {
  graph::Graph g;
  g.name = "large_images";
  graph::TensorId x = ops::input_source(g, batch, {3, 64, 48});
  for (const std::string name : {"conv1", "conv2", "conv3"})
    x = test::conv_relu(g, name, x, {.channels = 16, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = ops::pool_layer(g, "pool", "max_pool", x, {.kernel = {8, 8}});
  x = test::conv_relu(g, "conv4", x, {.channels = 512, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = test::conv_relu(g, "conv5", x, {.channels = 512, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = ops::flatten_layer(g, "flatten", ops::global_avg_pool_layer(g, "mean", x));
  return test::finish(std::move(g), ops::dense_layer(g, "fc", x, {.units = 10, .bias = false}));
}

/// What a node does on each cut: "h", "b", …
std::vector<std::string> splits_of(const graph::Graph& graph, const plan::Plan& plan, const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].name == name)
      for (ops::Choice choice : plan.choices[n])
        names.push_back(ops::to_string(ops::form(graph, graph.nodes[n]), choice));
  return names;
}

bool splits_images(const graph::Graph& graph, const plan::Plan& plan) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ops::Choice choice : plan.choices[n])
      if (choice >= 0 && ops::form(graph, graph.nodes[n]).indices[choice].spatial) return true;
  return false;
}

TEST(Planner, few_samples_have_their_rows_split) {
  const graph::Graph graph = large_images(1);
  const plan::Plan plan = make(graph, {2, 2}, "auto");
  EXPECT_EQ(plan.status, plan::Status::optimal);
  for (const std::string conv : {"conv1", "conv2", "conv3"})
    for (const std::string& split : splits_of(graph, plan, conv)) EXPECT_TRUE(split == "h" || split == "w") << conv;
  for (const std::string strategy : {"data", "model", "owt"}) {
    const plan::Plan named = make(graph, {2, 2}, strategy);
    EXPECT_FALSE(splits_images(graph, named)) << strategy;
    EXPECT_LT(2 * plan.bytes, named.bytes) << strategy;
  }
}

TEST(Planner, samples_are_split_before_rows) {
  const graph::Graph graph = large_images(4);
  EXPECT_FALSE(splits_images(graph, make(graph, {2, 2}, "auto")));
  const plan::Plan plan = make(graph, {2, 2, 2}, "auto"); // on 8 ranks both are
  const std::vector<std::string> splits = splits_of(graph, plan, "conv2");
  EXPECT_EQ(std::count(splits.begin(), splits.end(), "b"), 2);
  EXPECT_EQ(std::count(splits.begin(), splits.end(), "h") + std::count(splits.begin(), splits.end(), "w"), 1);
}

TEST(Planner, pins_split_rows_and_columns) {
  const graph::Graph graph = large_images(8);
  const std::vector<std::string> pins = {"split(2),split(2)", "split(2),split(3)", "split(0),split(2)"};
  for (const std::string& pin : pins) {
    std::map<std::string, std::string> all;
    for (const std::string name : {"conv1.relu", "conv2.relu", "conv3.relu"}) all[name] = pin;
    const plan::Plan plan = make(graph, {2, 2}, "auto", all);
    EXPECT_EQ(to_string(stored(graph, plan, "conv2.relu")), pin);
    std::string done; // by the convolution between two of them, as they are stored
    for (const std::string& split : splits_of(graph, plan, "conv3"))
      done += (done.empty() ? "split(" : ",split(") + std::string(split == "b" ? "0" : split == "h" ? "2" : "3") + ")";
    EXPECT_EQ(done, pin);
  }
}

// --- bounds ---------------------------------------------------------------------------------------------------------

/// Plans under small caps on tables, against the best one. Returns whether one of them was only bounded.
bool small_caps(const graph::Graph& graph, const std::vector<std::int64_t>& caps) {
  const plan::Plan best = make(graph, {2, 2, 2}, "auto");
  EXPECT_EQ(best.status, plan::Status::optimal);
  bool bounded = false;
  for (const std::int64_t cap : caps) {
    const plan::Plan plan = plan::make_plan(graph, best.mesh, {.table_entries = cap});
    plan::verify(graph, plan);
    EXPECT_GE(plan.bytes, best.bytes);
    EXPECT_LE(static_cast<double>(plan.bytes) / (1 + plan.gap), static_cast<double>(best.bytes) * (1 + 1e-12));
    EXPECT_LT(plan.gap, 0.5);
    EXPECT_EQ(plan.status == plan::Status::optimal, plan.gap == 0);
    if (plan.status == plan::Status::optimal) {
      EXPECT_EQ(plan.bytes, best.bytes);
    }
    bounded = bounded || plan.status == plan::Status::bounded;
  }
  return bounded;
}

TEST(Planner, a_small_cap_gives_a_plan_with_a_proven_gap) {
  small_caps(test::alexnet(256), {1, 20, 100, 400, 2000}); // branching proves most of these
  EXPECT_TRUE(small_caps(support::random_graph(11, {.layers = 7}), {1}));
}

TEST(Planner, a_capped_search_is_no_worse_than_the_strategies) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    const tiling::Mesh mesh{{2, 2}};
    const plan::Plan capped = plan::make_plan(graph, mesh, {.table_entries = 1});
    plan::verify(graph, capped);
    const std::int64_t best = make(graph, {2, 2}, "auto").bytes;
    EXPECT_LE(static_cast<double>(capped.bytes) / (1 + capped.gap), static_cast<double>(best) * (1 + 1e-12));
    for (const std::string& strategy : plan::strategies())
      EXPECT_LE(capped.bytes, plan::make_plan(graph, mesh, {.strategy = strategy, .table_entries = 1}).bytes)
          << seed << " " << strategy;
  }
}

TEST(Planner, more_cuts_never_move_less) {
  for (const graph::Graph& graph : {test::mlp(64, {64, 128, 64, 16}), test::alexnet(32)}) {
    const std::int64_t two = make(graph, {2}, "auto").bytes, four = make(graph, {2, 2}, "auto").bytes;
    EXPECT_LE(two, four);
    EXPECT_LE(four, make(graph, {2, 2, 2}, "auto").bytes);
    EXPECT_LE(make(graph, {3}, "auto").bytes, make(graph, {3, 2}, "auto").bytes);
  }
}

TEST(Planner, many_cuts_get_a_good_plan_and_a_proven_gap) {
  const graph::Graph graph = test::mlp(512, {512, 512});
  const tiling::Mesh mesh{std::vector<int>(7, 2)}; // too many for a joint search
  const plan::Plan plan = make(graph, mesh.cuts, "auto");
  EXPECT_EQ(plan.status, plan::Status::bounded);
  EXPECT_GT(plan.gap, 0);
  EXPECT_GE(static_cast<double>(plan.bytes) / (1 + plan.gap),
            0.999 * static_cast<double>(make(graph, {2, 2, 2}, "auto").bytes));
  for (const std::string& strategy : plan::strategies())
    EXPECT_LE(plan.bytes, make(graph, mesh.cuts, strategy).bytes) << strategy;
  EXPECT_EQ(make(graph, mesh.cuts, "data").bytes, 2 * 127 * graph::parameter_count(graph) * 4);
}

} // namespace
} // namespace soybean
