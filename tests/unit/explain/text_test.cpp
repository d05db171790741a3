// Explanations in words: the table of layers, the comparison, why a layer is as it is.
#include "base/error.hpp"
#include "explain/layers.hpp"
#include "explain/why.hpp"
#include "plan/words.hpp"
#include "unit/explain/networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace soybean::explain {
namespace {

const tiling::Mesh mesh{{2, 2}};

template<class T>
const T& known(const std::optional<T>& figure) {
  if (!figure) throw std::logic_error("a figure is missing");
  return *figure;
}

void expect_in(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << words << "\nis not in\n" << text;
}

TEST(Layers, FiguresAddUpToThePlans) {
  const graph::Graph graph = mlp(64, 128);
  const machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 64, &setting};
  const Costed costed = cost_of(subject, mesh);
  std::int64_t bytes = 0, held = 0;
  double seconds = known(costed.step).layers.back().computing + known(costed.step).layers.back().waiting;
  for (const LayerFigures& layer : layer_figures(subject, costed)) {
    bytes += layer.bytes;
    held += layer.held;
    seconds += known(layer.seconds);
  }
  EXPECT_EQ(bytes, costed.plan.bytes);
  EXPECT_LE(held, costed.peak_memory());
  EXPECT_GT(held, costed.peak_memory() / 2);
  EXPECT_NEAR(seconds, known(costed.step).seconds, 1e-9);
}

TEST(Layers, TableHasALineForEachAndTimeWithAMachineAlone) {
  const graph::Graph graph = mlp(64, 512);
  const Subject plain{graph, 64};
  const std::string text = layer_table(plain, cost_of(plain, mesh));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::ptrdiff_t>(4 + graph.layers.size())) << text;
  expect_in(text, "because");
  expect_in(text, "outweigh");
  EXPECT_EQ(text.find("  time\n"), std::string::npos);
  const machine::Setting setting = setting_of(mesh);
  const Subject timed{graph, 64, &setting};
  expect_in(layer_table(timed, cost_of(timed, mesh)), "  time\n");
}

TEST(Layers, StrategiesAreComparedWithRatiosAndBottlenecks) {
  const graph::Graph graph = mlp(64, 512);
  const machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 64, &setting};
  const std::vector<Costed> plans = {cost_of(subject, mesh), cost_of(subject, mesh, "data")};
  const std::string text = strategy_table(subject, plans);
  expect_in(text, "takes most");
  expect_in(text, bottleneck(subject, plans[1]));
  expect_in(text,
            fmt::format("{:.2f}", static_cast<double>(plans[1].plan.bytes) / static_cast<double>(plans[0].plan.bytes)));
  expect_in(text, fmt::format("{:.2f}", known(plans[1].step).seconds / known(plans[0].step).seconds));
  expect_in(text, "proven optimal");
}

TEST(Why, ListsAlternativesMarksThePlannedOneAndSaysWhereBytesGo) {
  const graph::Graph graph = mlp(64, 512);
  const machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 64, &setting};
  const Costed costed = cost_of(subject, mesh);

  const std::string text = why(subject, costed, find_layer(graph, "fc1"), {});

  expect_in(text, "fc1: dense (64x512, 512x512 -> 64x512) of mlp on 4 ranks (mesh 2x2), strategy auto\n");
  expect_in(text, "the operator's loops: b k, n k -> b n\n");
  expect_in(text, "\n  >  " + plan::split_text(graph, costed.plan, plan::main_node(graph, 0)) + " ");
  expect_in(text, "planned");
  expect_in(text, "batch/4");
  expect_in(text, "+ ");
  expect_in(text, "step time");
  expect_in(text, "where its bytes go: ");
  EXPECT_EQ(std::count(text.begin(), text.end(), '>'), 3) << text; // two arrows and one mark
}

TEST(Why, OneRankSplitsNothing) {
  const graph::Graph graph = mlp(8, 16);
  EXPECT_TRUE(why({graph, 8}, cost_of({graph, 8}, {}), 0, {}).ends_with("one rank: nothing can be split\n"));
}

TEST(Why, UnknownLayersAreRefusedWithTheNearestName) {
  const graph::Graph graph = mlp(8, 16);
  const auto error = [&](const std::string& name) -> std::string {
    try {
      find_layer(graph, name);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("fc3"), "--why: name of a layer, got \"fc3\" expected one of mlp. did you mean \"fc1\"?");
  EXPECT_EQ(error("classifier"), "--why: name of a layer, got \"classifier\" expected one of mlp. soybean_plan without "
                                 "--why lists them");
}

} // namespace
} // namespace soybean::explain
