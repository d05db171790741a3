// Plans in words and for scripts.
#include "plan/report.hpp"

#include "plan/planner.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace soybean {
namespace {

const tiling::Mesh mesh{{2, 2, 2}};

TEST(Report, sizes_read_well) {
  EXPECT_EQ(plan::bytes_text(17), "17 B");
  EXPECT_EQ(plan::bytes_text(1200), "1.20 kB");
  EXPECT_EQ(plan::bytes_text(245'504'512), "245.50 MB");
  EXPECT_EQ(plan::bytes_text(2'500'000'000'000), "2.50 TB");
}

TEST(Report, times_read_well) {
  EXPECT_EQ(plan::seconds_text(0), "-");
  EXPECT_EQ(plan::seconds_text(12.34e-6), "12.3 us");
  EXPECT_EQ(plan::seconds_text(12.34e-3), "12.34 ms");
  EXPECT_EQ(plan::seconds_text(12.34), "12.34 s");
  EXPECT_EQ(plan::price_text(plan::Objective::time, 1'500'000), "1.50 ms");
  EXPECT_EQ(plan::price_text(plan::Objective::bytes, 1'500'000), "1.50 MB");
}

TEST(Report, gaps_are_never_nothing) {
  plan::Plan plan{.status = plan::Status::bounded, .gap = 0.018};
  EXPECT_EQ(plan::status_text(plan), "within 1.8 % of the bound");
  plan.gap = 1e-6;
  EXPECT_EQ(plan::status_text(plan), "within 0.1 % of the bound");
}

TEST(Report, has_a_line_per_layer_and_both_baselines) {
  const graph::Graph graph = test::alexnet(256);
  const std::string text = plan::report(graph, plan::make_plan(graph, mesh, {}));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "alexnet on 8 ranks (mesh 2x2x2), strategy auto: 244.55 MB moved per step, proven optimal; data 3421.07 MB "
            "(13.99 times); model 1995.58 MB (8.16 times)");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::ptrdiff_t>(2 + graph.layers.size()));
  EXPECT_NE(text.find("conv1    256x64x55x55   data      batch/8"), std::string::npos) << text;
  EXPECT_NE(text.find("fc6      256x4096       model"), std::string::npos) << text;
}

TEST(Report, names_rows_and_columns_height_and_width) {
  graph::Graph graph{.name = "one_image"};
  graph::TensorId x = ops::input_source(graph, 1, {3, 32, 32});
  for (const std::string name : {"conv1", "conv2"})
    x = test::conv_relu(graph, name, x, {.channels = 8, .kernel = {3, 3}, .padding = {1, 1}});
  x = ops::dense_layer(graph, "fc", ops::flatten_layer(graph, "flatten", x), {.units = 4});
  graph = test::finish(std::move(graph), x);
  const std::map<std::string, std::string> pins = {{"conv1.relu", "split(2),split(3)"}};
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2, 2}}, {.pins = pins});
  const std::string text = plan::report(graph, plan, true);
  EXPECT_NE(text.find("conv2    1x8x32x32  spatial   height/2 width/2"), std::string::npos) << text;
}

TEST(Report, bytes_of_layers_add_up_to_all_traffic) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2}}, {.strategy = "data"});
  const std::string text = plan::report(graph, plan);
  EXPECT_NE(text.find("2.05 kB\n"), std::string::npos) << text; // fc1: 2 · 1 · 256 floats
  EXPECT_NE(text.find("512 B\n"), std::string::npos) << text;   // fc2
}

TEST(Report, baselines_beside_a_pinned_plan_are_said_to_know_no_pins) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2}}, {});
  EXPECT_NE(plan::report(graph, plan, true).find(" times) without the pins; model"), std::string::npos);
  EXPECT_EQ(plan::report(graph, plan).find("pins"), std::string::npos);
  EXPECT_NE(plan::comparison({{plan, {}}, {plan, {}}}, true).find("(the pins hold for the first line only)\n"),
            std::string::npos);
}

TEST(Report, comparison_gives_ratios) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  std::vector<plan::Compared> plans;
  for (const std::string strategy : {"model", "data"})
    plans.push_back({plan::make_plan(graph, tiling::Mesh{{2}}, {.strategy = strategy}), 1000});
  const std::string text = plan::comparison(plans);
  EXPECT_NE(text.find("model"), std::string::npos);
  EXPECT_NE(text.find("1.00"), std::string::npos) << text;
  EXPECT_NE(text.find("1.00 kB"), std::string::npos) << text;
}

TEST(Report, json_has_the_promised_names) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  plan::JsonReport report{.batch = 8, .planning_seconds = 0.5};
  for (const std::string& strategy : plan::strategies())
    report.plans.push_back({plan::make_plan(graph, tiling::Mesh{{2}}, {.strategy = strategy}), std::nullopt});
  report.plans[1].peak_memory = 4096;

  const nlohmann::json json = nlohmann::json::parse(plan::to_json(graph, report));

  EXPECT_EQ(json.at("model"), "mlp");
  EXPECT_EQ(json.at("ranks"), 2);
  EXPECT_EQ(json.at("batch"), 8);
  EXPECT_EQ(json.at("objective"), "bytes");
  EXPECT_EQ(json.at("planning_seconds"), 0.5);
  ASSERT_EQ(json.at("strategies").size(), 5u);
  const nlohmann::json& best = json["strategies"]["auto"];
  EXPECT_EQ(best.at("bytes"), report.plans[0].plan.bytes);
  EXPECT_TRUE(best.at("seconds").is_null());
  EXPECT_TRUE(best.at("peak_memory").is_null());
  EXPECT_EQ(best.at("status"), "optimal");
  EXPECT_EQ(best.at("gap"), 0);
  const nlohmann::json& data = json["strategies"]["data"];
  EXPECT_EQ(data.at("peak_memory"), 4096);
  EXPECT_EQ(data.at("status"), "named");
  EXPECT_TRUE(data.at("gap").is_null());
  ASSERT_EQ(json.at("tensors").size(), graph.tensors.size());
  std::int64_t bytes = 0;
  for (const nlohmann::json& tensor : json["tensors"]) bytes += tensor.at("bytes").get<std::int64_t>();
  EXPECT_EQ(bytes, report.plans[0].plan.bytes);
  for (const char* name : {"name", "shape", "role", "tiling", "bytes"}) EXPECT_TRUE(json["tensors"][0].contains(name));
  std::int64_t sum = 0;
  for (const nlohmann::json& tensor : json["tensors"])
    if (tensor["role"] != "metric") sum += tensor["bytes"].get<std::int64_t>();
  EXPECT_EQ(sum, report.plans[0].plan.bytes);
}

} // namespace
} // namespace soybean
