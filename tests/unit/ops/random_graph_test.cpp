#include "support/random_graph.hpp"

#include "base/error.hpp"
#include "ops/form.hpp"
#include "ops/operator.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using namespace soybean;
using support::random_graph;

TEST(RandomGraph, VerifiesAndIsAFunctionOfItsSeed) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const graph::Graph g = random_graph(seed);
    SCOPED_TRACE(graph::to_string(g));
    ASSERT_NO_THROW(ops::verify(g));
    ASSERT_EQ(graph::to_string(g), graph::to_string(random_graph(seed)));
  }
}

TEST(RandomGraph, CoversEveryOperatorAndBothRankLimits) {
  std::set<std::string> seen;
  bool grouped = false, one_sample = false, shared = false, flat_logits = false;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const graph::Graph g = random_graph(seed, {.precision = DType::f32});
    for (const graph::Node& n : g.nodes) {
      seen.insert(n.op);
      grouped = grouped || (n.op == "conv2d" && n.attributes.integer("groups") > 1);
      shared = shared || (n.phase == graph::Phase::forward && n.name.ends_with(".again"));
    }
    one_sample = one_sample || g.tensors[g.logits].shape[0] == 1;
    flat_logits = flat_logits || g.tensors[g.logits].spatial > 1;
  }
  for (const ops::Operator& row : ops::table()) EXPECT_TRUE(seen.contains(std::string(row.name))) << row.name;
  EXPECT_TRUE(grouped);
  EXPECT_TRUE(one_sample);
  EXPECT_TRUE(shared);
  EXPECT_TRUE(flat_logits);
}

/// The blocks of every choice tile each operand: splits cover it once, replicas and terms are whole.
TEST(RandomGraph, EveryChoiceOfEveryFormTilesItsOperands) {
  const tiling::Mesh mesh{{3, 2}};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const graph::Graph g = random_graph(seed);
    for (const graph::Node& n : g.nodes) {
      const ops::Form form = ops::form(g, n);
      const auto allowed = ops::allowed_choices(form);
      ASSERT_FALSE(allowed.empty()) << n.name;
      for (ops::Choice first : allowed)
        for (ops::Choice second : allowed) {
          const auto tilings = ops::operand_tilings(form, g, n, mesh, {first, second});
          for (std::size_t i = 0; i < n.inputs.size(); ++i)
            ASSERT_NO_THROW(tiling::check(tilings.inputs[i], g.tensors[n.inputs[i]].shape, mesh, n.name));
          for (std::size_t i = 0; i < n.outputs.size(); ++i)
            ASSERT_NO_THROW(tiling::check(tilings.outputs[i], g.tensors[n.outputs[i]].shape, mesh, n.name));
        }
    }
  }
}

/// Along an index all operands are cut at the same steps, and at multiples of their tensors' units; a halo is of a dim
/// that has one for each step.
TEST(RandomGraph, UnitsOfFormsAreMultiplesOfTheTensors) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const graph::Graph g = random_graph(seed);
    for (const graph::Node& n : g.nodes) {
      const ops::Form form = ops::form(g, n);
      const auto check = [&](graph::TensorId t, const ops::OperandForm& dims) {
        for (std::size_t d = 0; d < dims.size(); ++d) {
          if (dims[d].index < 0) continue;
          EXPECT_EQ(dims[d].unit % g.tensors[t].units[d], 0) << n.name;
          const std::int64_t cut =
              dims[d].halo.reach == tiling::Reach::none || dims[d].halo.reach == tiling::Reach::neighbours
                  ? g.tensors[t].shape[d] / dims[d].unit
                  : dims[d].halo.other;
          EXPECT_EQ(cut, form.indices[dims[d].index].count) << n.name;
        }
      };
      for (std::size_t i = 0; i < n.inputs.size(); ++i) check(n.inputs[i], form.inputs[i]);
      for (std::size_t i = 0; i < n.outputs.size(); ++i) check(n.outputs[i], form.outputs[i]);
    }
  }
}

} // namespace
