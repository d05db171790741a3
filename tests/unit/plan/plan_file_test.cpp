// Plan files: round trips, and one clear error for everything that may be wrong with them.
#include "plan/plan_file.hpp"

#include "base/error.hpp"
#include "plan/planner.hpp"
#include "support/random_graph.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

namespace soybean {
namespace {

const tiling::Mesh mesh{{2, 2}};

graph::Graph small() {
  return test::mlp(8, {16, 16, 4}, true);
}

std::string text_of(const graph::Graph& graph) {
  return plan::plan_text(graph, plan::make_plan(graph, mesh, {}));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " is not in\n" << text;
  return text.replace(at, what.size(), by);
}

std::string error_of(const std::string& text, const graph::Graph& graph, const tiling::Mesh& on = mesh) {
  try {
    plan::parse_plan(text, "p.json", graph, on);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PlanFile, round_trips) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    for (const std::string& strategy : plan::strategies()) {
      const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = strategy});

      const plan::Plan read = plan::parse_plan(plan::plan_text(graph, plan), "p.json", graph, mesh);

      plan::verify(graph, read);
      EXPECT_EQ(read.choices, plan.choices);
      EXPECT_EQ(read.stored, plan.stored);
      EXPECT_EQ(read.tensor_bytes, plan.tensor_bytes);
      EXPECT_EQ(read.bytes, plan.bytes);
      EXPECT_EQ(read.held_bytes, plan.held_bytes);
      EXPECT_EQ(read.strategy, "file");
      EXPECT_EQ(read.status, plan::Status::named);
    }
  }
}

TEST(PlanFile, one_rank_round_trips) {
  const graph::Graph graph = small();
  const plan::Plan plan = plan::make_plan(graph, {}, {});
  EXPECT_EQ(plan::parse_plan(plan::plan_text(graph, plan), "p.json", graph, {}).stored, plan.stored);
}

TEST(PlanFile, has_a_line_for_each_node_and_tensor) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  EXPECT_NE(text.find("\n    \"fc1\": [\"b\",\"b\"],\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    \"fc1.weight\": \"replicate,replicate\",\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("\"fc1.bias_add.grad\": ["), std::string::npos) << "a twin is not decided for itself";
}

TEST(PlanFile, may_be_edited_by_hand) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  const plan::Plan plan = plan::parse_plan(
      replaced(text, "\"fc1.weight\": \"replicate,replicate\"", "\"fc1.weight\": \"split(0), replicate\""), "p.json",
      graph, mesh);
  EXPECT_EQ(to_string(plan.stored[graph::find_tensor(graph, "fc1.weight.next")]), "split(0),replicate");
  plan::verify(graph, plan);
}

TEST(PlanFile, stale_ones_are_refused_naming_what_differs) {
  const graph::Graph graph = small();
  const std::string text = text_of(graph);
  const auto starts = [](const std::string& error, const std::string& start) {
    EXPECT_EQ(error.substr(0, start.size()), start);
  };
  starts(error_of(text, test::mlp(8, {16, 16, 16, 4}, true)), "p.json: key \"model\" of the plan, got \"");
  starts(error_of(text, test::mlp(16, {16, 16, 4}, true)), "p.json: key \"shapes\" of the plan, got \"");
  starts(error_of(text, graph, tiling::Mesh{{4}}),
         "p.json: key \"mesh\" of the plan, got \"2x2\" expected \"4\". The plan is for another number of ranks or "
         "another order of cuts; make the plan anew.");
  starts(error_of(replaced(text, "fp32", "fp64"), graph),
         "p.json: key \"precision\" of the plan, got \"fp64\" expected \"fp32\". The plan is for another precision");
  starts(error_of(replaced(text, "\"format\":1", "\"format\":9"), graph),
         "p.json: key \"format\" of the plan, got 9 expected 1. The file was written by another version of SoyBean");
}

TEST(PlanFile, savings_are_remembered) {
  graph::Graph graph = small();
  graph.recompute = graph::Recompute::cheap; // what it says, whatever the nodes are
  const std::string text = text_of(graph);
  const auto of = [&](const std::string& file, const plan::Savings& given = {}) {
    const plan::Savings savings = plan::planned_savings(file, "p.json", given, 8);
    return fmt::format("{} {}", savings.microbatches, to_string(savings.recompute.value()));
  };
  EXPECT_EQ(of(text), "1 cheap");
  EXPECT_EQ(of(replaced(text, "\"microbatches\":1", "\"microbatches\":4")), "4 cheap");
  EXPECT_EQ(of(text, {2, graph::Recompute::none}), "2 none");
  EXPECT_EQ(of("{\"key\": {}}"), "1 none");
  for (const std::string number : {"3", "16", "1000000000000"}) {
    std::string said;
    try {
      of(replaced(text, "\"microbatches\":1", "\"microbatches\":" + number));
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_EQ(said, "p.json: key \"microbatches\" of the plan, got " + number +
                        " expected a divisor of data.batch, 8. The plan is for another batch; make the plan anew.");
  }
  EXPECT_EQ(error_of(text, small()),
            "p.json: key \"recompute\" of the plan, got \"cheap\" expected \"none\". The plan is for another "
            "train.recompute; make the plan anew.");
  EXPECT_EQ(error_of(replaced(text, "\"microbatches\":1", "\"microbatches\":4"), graph),
            "p.json: key \"microbatches\" of the plan, got 4 expected 1. The plan is for another train.microbatches; "
            "make the plan anew.");
  const std::string before = replaced(text, "\"microbatches\":1,\"recompute\":\"cheap\",", "");
  EXPECT_EQ(plan::parse_plan(before, "p.json", graph, mesh).stored.size(), graph.tensors.size());
}

TEST(PlanFile, damaged_ones_are_refused) {
  const graph::Graph graph = small();
  const std::string text = text_of(graph);
  for (std::size_t length = 0; length + 2 < text.size(); length += 97)
    EXPECT_EQ(error_of(text.substr(0, length), graph).substr(0, 27), "p.json: JSON text, got some") << length;
  EXPECT_NE(error_of("{ \"key\": \xff }", graph).find("JSON text"), std::string::npos);
  EXPECT_EQ(error_of("[]", graph), "p.json: the file, got a list expected an object.");
  EXPECT_EQ(error_of("{}", graph), "p.json: key \"key\", got none expected one. It is not a whole plan file.");
  EXPECT_EQ(
      error_of("{\"keys\": {}}", graph),
      "p.json: key of the file, got \"keys\" expected one of key, summary, nodes, tensors. did you mean \"key\"?");
  EXPECT_EQ(error_of(replaced(text, "\"fc2\": ", "\"fc1\": "), graph),
            "p.json: key \"fc1\", got it twice expected it once. Remove one of them.");
}

TEST(PlanFile, wrong_types_are_refused) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  EXPECT_EQ(error_of(replaced(text, "\"fc1\": [\"b\",\"b\"]", "\"fc1\": \"b\""), graph),
            "p.json: node \"fc1\" of layer 'fc1', got a string expected a list.");
  EXPECT_EQ(error_of(replaced(text, "\"fc1\": [\"b\",\"b\"]", "\"fc1\": [1, 2]"), graph),
            "p.json: a choice of node \"fc1\" of layer 'fc1', got an integer expected a string.");
  EXPECT_EQ(error_of(replaced(text, "\"fc1.weight\": \"replicate,replicate\"", "\"fc1.weight\": []"), graph),
            "p.json: tensor \"fc1.weight\" of layer 'fc1', got a list expected a string.");
  EXPECT_EQ(error_of(replaced(text, "\"mesh\":\"2x2\"", "\"mesh\":4"), graph),
            "p.json: \"key\".\"mesh\", got an integer expected a string.");
}

TEST(PlanFile, wrong_entries_are_refused_naming_layer_and_tensor) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  const auto node = [&](const std::string& by) {
    return error_of(replaced(text, "\"fc1\": [\"b\",\"b\"]", by), graph);
  };
  EXPECT_EQ(node("\"fc1\": [\"b\"]"),
            "p.json: node \"fc1\" of layer 'fc1', got 1 choices expected 2, one per cut of the mesh 2x2.");
  EXPECT_EQ(
      node("\"fc1\": [\"b\",\"z\"]"),
      "p.json: node \"fc1\" of layer 'fc1', got \"z\" expected one of b, k, n. These are what operator dense (b k, "
      "n k -> b n) can do on a cut.");
  EXPECT_EQ(node("\"fc11\": [\"b\",\"b\"]"),
            "p.json: node, got \"fc11\" expected one of the model's that is decided for itself. Did you mean \"fc1\"?");
  const auto tensor = [&](const std::string& by) {
    return error_of(replaced(text, "\"fc1.weight\": \"replicate,replicate\"", by), graph);
  };
  EXPECT_EQ(tensor("\"fc1.weight\": \"split(7),replicate\"").substr(0, 74),
            "p.json: tensor \"fc1.weight\" of layer 'fc1': dim split by tiling split(7),r");
  EXPECT_EQ(
      tensor("\"fc1.wait\": \"replicate,replicate\""),
      "p.json: tensor, got \"fc1.wait\" expected one of the model's that is stored. Did you mean \"fc1.weight\"?");
  EXPECT_EQ(
      tensor("\"fc1.weight\": \"partial,replicate\""),
      "p.json: tensor 'fc1.weight' of layer 'fc1', got a plan in which it is stored as a partial sum, but has not "
      "one maker and one user expected a legal one. Mend its entry under \"tensors\" or its nodes' under "
      "\"nodes\".");
}

TEST(PlanFile, missing_entries_are_named) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  EXPECT_EQ(error_of(replaced(text, "    \"fc1\": [\"b\",\"b\"],\n", ""), graph),
            "p.json: node \"fc1\" of layer 'fc1', got no entry expected its choices, one per cut.");
  EXPECT_EQ(error_of(replaced(text, "    \"fc1.weight\": \"replicate,replicate\",\n", ""), graph),
            "p.json: tensor \"fc1.weight\" of layer 'fc1', got no entry expected its stored tiling.");
  EXPECT_EQ(error_of(replaced(text, "\"nodes\"", "\"knots\""), graph).substr(0, 45),
            "p.json: key of the file, got \"knots\" expected");
}

TEST(PlanFile, tilings_nothing_can_make_or_use_are_refused) {
  const graph::Graph graph = small();
  const std::string text = plan::plan_text(graph, plan::make_plan(graph, mesh, {.strategy = "data"}));
  const auto tensor = [&](const std::string& tiling) {
    return error_of(replaced(text, "\"fc1.weight\": \"replicate,replicate\"", "\"fc1.weight\": \"" + tiling + "\""),
                    graph);
  };
  const std::string where = "p.json: tensor \"fc1.weight\" of layer 'fc1'";
  for (const char* bad : {"split(0)", "split(0),replicate,replicate", "spilt(0),replicate", "split(x),replicate",
                          "split(0,1)", "", "split(-1),replicate", "split(0/99),replicate", "split(0/0),replicate"})
    EXPECT_EQ(tensor(bad).substr(0, where.size()), where) << bad << ": " << tensor(bad);

  // A node that passes sums on needs partial operands, which nothing makes where a convolution splits the batch.
  const graph::Graph images = test::flattened(4, 5);
  const std::string data = plan::plan_text(images, plan::make_plan(images, mesh, {.strategy = "data"}));
  const std::string error =
      error_of(replaced(data, "\"flatten\": [\"b\",\"b\"]", "\"flatten\": [\"linear\",\"linear\"]"), images);
  EXPECT_TRUE(
      error.starts_with("p.json: tensor 'conv' of layer 'conv', got a plan in which it is needed as partial sum "
                        "partial,partial, but stored as split(0),split(0) expected a legal one."))
      << error;
}

TEST(PlanFile, a_wrong_hash_is_refused) {
  const graph::Graph graph = small();
  const std::string text = text_of(graph);
  const std::size_t at = text.find("\"model\":\"") + 9;
  std::string other = text;
  other[at] = other[at] == '0' ? '1' : '0';
  EXPECT_EQ(error_of(other, graph).substr(0, 39),
            "p.json: key \"model\" of the plan, got \"" + other.substr(at, 1) + "");
}

TEST(PlanFile, says_which_mesh_it_is_for) {
  const graph::Graph graph = small();
  const std::string text = text_of(graph);
  EXPECT_EQ(plan::planned_mesh(text, "p.json"), mesh);
  EXPECT_EQ(plan::planned_mesh(plan::plan_text(graph, plan::make_plan(graph, {}, {})), "p.json"), tiling::Mesh{});
  const auto error = [](const std::string& other) -> std::string {
    try {
      plan::planned_mesh(other, "p.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  for (const char* bad : {"2x", "x2", "2x1", "0", "-2", "2y2", "", "2x2 ", "4096x4096"})
    EXPECT_EQ(error(replaced(text, "\"2x2\"", "\"" + std::string(bad) + "\"")),
              "p.json: key \"mesh\" of the plan, got \"" + std::string(bad) +
                  "\" expected the parts of each cut, such as \"2x2x2\".");
  for (const char* bad : {"[]", "{}", "{\"key\": 1}", "{\"key\": {\"mesh\": 2}}", "3"})
    EXPECT_EQ(
        error(bad),
        "p.json: key \"mesh\" of the plan, got none expected the parts of each cut. It is not a whole plan file.");
  EXPECT_EQ(error(text.substr(0, 20)).substr(0, 17), "p.json: JSON text");
}

TEST(PlanFile, blocks_of_flattened_tensors_hold_whole_channels) {
  const graph::Graph graph = test::flattened(4, 5);
  const std::string text =
      plan::plan_text(graph, plan::make_plan(graph, mesh, {.pins = {{"fc.weight", "split(1),replicate"}}}));
  const std::size_t begin = text.find("\"fc.weight\": \"");
  const std::string entry = text.substr(begin, text.find('\n', begin) - begin - 1); // without the comma

  // The natural edit means whole channels, anything else is refused.
  const plan::Plan natural =
      plan::parse_plan(replaced(text, entry, "\"fc.weight\": \"split(1),replicate\""), "p.json", graph, mesh);
  EXPECT_EQ(natural.stored, plan::parse_plan(text, "p.json", graph, mesh).stored);
  EXPECT_EQ(
      error_of(replaced(text, entry, "\"fc.weight\": \"split(1/4),replicate\""), graph),
      "p.json: tensor \"fc.weight\" of layer 'fc', got split(1/4),replicate expected blocks of whole channels of 12 "
      "positions: split(1/12).");
}

} // namespace
} // namespace soybean
