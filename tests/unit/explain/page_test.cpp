// The page: its data adds up, and nothing in it can break out of it.
#include "explain/page.hpp"

#include "explain/timeline.hpp"
#include "unit/explain/networks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace soybean::explain {
namespace {

using Json = nlohmann::json;

const tiling::Mesh mesh{{2, 2}};

TEST(Page, DataAddsUp) {
  const graph::Graph graph = mlp(64, 128);
  const machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 64, &setting};
  const std::vector<Costed> plans = {cost_of(subject, mesh), cost_of(subject, mesh, "data")};

  const Json data = Json::parse(page_data({.subject = subject, .plans = plans, .sweep = {}, .version = "1"}));

  EXPECT_EQ(data["model"], "mlp");
  EXPECT_EQ(data["ranks"], 4);
  EXPECT_EQ(data["machine"]["name"], "example");
  EXPECT_EQ(data["strategies"].size(), 2u);
  std::int64_t moved = 0, layers = 0;
  for (const Json& layer : data["layers"]) {
    moved += layer["inside"].get<std::int64_t>();
    layers += layer["bytes"].get<std::int64_t>();
  }
  for (const Json& edge : data["edges"]) {
    moved += edge["forward"].get<std::int64_t>() + edge["backward"].get<std::int64_t>();
    EXPECT_LT(edge["from"], edge["to"]);
  }
  EXPECT_EQ(moved, plans[0].plan.bytes) << "between layers and inside them";
  EXPECT_EQ(layers, plans[0].plan.bytes);
  EXPECT_EQ(data["memory"]["allocated"], plans[0].peak_memory());
  std::int64_t highest = 0;
  for (const Json& point : data["memory"]["points"]) {
    std::int64_t sum = 0;
    for (std::size_t k = 1; k < point.size(); ++k) sum += point[k].get<std::int64_t>();
    highest = std::max(highest, sum);
  }
  EXPECT_EQ(highest, data["memory"]["peak"]["bytes"]);
  EXPECT_EQ(data["timeline"]["seconds"], predicted(plans[0].step).seconds);
}

TEST(Page, WithoutAMachineThereIsNoTimeline) {
  const graph::Graph graph = mlp(64, 128);
  const Subject subject{graph, 64};
  const std::vector<Costed> plans = {cost_of(subject, mesh)};
  const Json data = Json::parse(page_data({.subject = subject, .plans = plans, .sweep = {}}));
  EXPECT_TRUE(data["timeline"].is_null());
  EXPECT_TRUE(data["machine"].is_null());
}

TEST(Page, NamesCanNotBreakOut) {
  graph::Graph graph = mlp(8, 16, "</script><script>alert(1)</script>{{css}}");
  graph.name = "<b>{{data}}&</title>";
  const Subject subject{graph, 8};
  const std::vector<Costed> plans = {cost_of(subject, mesh)};

  const std::string text = page({.subject = subject, .plans = plans, .sweep = {}});

  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  EXPECT_EQ(text.find("<b>"), std::string::npos);
  EXPECT_NE(text.find("<title>&lt;b>{{data}}&amp;&lt;/title>: how it is split</title>"), std::string::npos);
  const std::string begin = "id=\"data\">";
  const std::size_t at = text.find(begin) + begin.size();
  const Json data = Json::parse(text.substr(at, text.find('<', at) - at));
  EXPECT_EQ(data["layers"][0]["name"], "</script><script>alert(1)</script>{{css}}") << "and stay what they are";
}

TEST(Page, NeedsNothingElse) {
  const graph::Graph graph = mlp(8, 16);
  const Subject subject{graph, 8};
  const std::vector<Costed> plans = {cost_of(subject, mesh)};
  const std::string text = page({.subject = subject, .plans = plans, .sweep = {}});
  for (const char* word : {"http://", "https://", "src=", "@import", "url("}) {
    std::string rest = text;
    for (const char* name : {"http://www.w3.org/2000/svg"}) // names a language, is never fetched
      if (const std::size_t at = rest.find(name); at != std::string::npos) rest.erase(at, std::string(name).size());
    EXPECT_EQ(rest.find(word), std::string::npos) << word;
  }
}

TEST(Timeline, BarsCoverWhatIsPredicted) {
  const graph::Graph graph = mlp(64, 128);
  const machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 64, &setting};
  const Costed costed = cost_of(subject, mesh);

  const simulate::Step& step = predicted(costed.step);
  const Timeline timeline = make_timeline(graph, costed, 5);

  double busy = 0;
  for (const TimelineBar& bar : timeline.kernels) busy += bar.end - bar.begin;
  EXPECT_NEAR(busy, step.seconds - step.waiting, 1e-3 * step.seconds);
  for (const std::vector<TimelineBar>& bars : {timeline.kernels, timeline.transfers})
    for (std::size_t i = 1; i < bars.size(); ++i) EXPECT_LE(bars[i - 1].end, bars[i].begin + 1e-12);
  ASSERT_EQ(timeline.longest.size(), 5u);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_GE(timeline.longest[i - 1].seconds, timeline.longest[i].seconds);
}

} // namespace
} // namespace soybean::explain
