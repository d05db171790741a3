// Recomputation changes no bit of what a step leaves behind.
#include "support/interpreter.hpp"
#include "support/random_graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace soybean {
namespace {

using graph::Graph;
using graph::Recompute;

/// Results of two steps: metrics, next weights and states by name.
std::map<std::string, std::vector<double>> steps(const Graph& graph) {
  const device::Exec exec{1};
  support::Values values = support::allocate(graph);
  support::fill_sources(graph, values, 7);
  std::map<std::string, std::vector<double>> results;
  for (const char* step : {"1 ", "2 "}) {
    support::run_serial(exec, graph, values);
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
      const graph::Tensor& tensor = graph.tensors[t];
      if (tensor.previous != graph::none || tensor.role == graph::Role::metric)
        results[step + tensor.name] = support::logical(values[t]);
    }
    support::take_next(graph, values);
  }
  return results;
}

bool repeats(const Graph& graph, const std::string& op) {
  for (const graph::Node& node : graph.nodes)
    if (node.op == op && node.phase == graph::Phase::backward && node.twin != graph::none) return true;
  return false;
}

TEST(Recompute, LeavesTheSameBits) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Graph plain = support::random_graph(seed, {.recompute = Recompute::none});
    const auto expected = steps(plain);
    for (const Recompute recompute : {Recompute::cheap, Recompute::segments}) {
      const Graph graph = support::random_graph(seed, {.recompute = recompute});
      SCOPED_TRACE(fmt::format("seed {} {}", seed, graph::to_string(recompute)));
      const auto got = steps(graph);
      ASSERT_EQ(got.size(), expected.size());
      for (const auto& [name, values] : expected) {
        const std::vector<double>& again = got.at(name);
        ASSERT_EQ(again.size(), values.size()) << name;
        ASSERT_EQ(std::memcmp(again.data(), values.data(), values.size() * sizeof(double)), 0) << name;
      }
      for (const char* op : {"dropout", "batch_norm", "conv2d", "dense", "add", "max_pool", "relu"})
        seen[op] += repeats(graph, op) ? 1 : 0;
      seen["microbatches"] += graph.microbatches > 1 && graph.nodes.size() > plain.nodes.size() ? 1 : 0;
    }
  }
  for (const auto& [what, count] : seen) EXPECT_GT(count, 2) << what;
}

} // namespace
} // namespace soybean
