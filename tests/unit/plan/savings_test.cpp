// Microbatches and recomputation, chosen so that a plan fits.
#include "plan/savings.hpp"

#include "base/error.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"
#include "ops/operator.hpp"
#include "support/small_machine.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::Recompute;
using tiling::Mesh;

constexpr std::int64_t batch = 16;

/// Dense layers of one size, or with batch norm after each.
Graph layers(const Savings& savings, bool norms) {
  Graph g{.name = "layers"};
  graph::TensorId x = ops::input_source(g, batch / savings.microbatches, {32});
  for (int i = 0; i < 8; ++i) {
    x = ops::dense_layer(g, fmt::format("d{}", i), x, {.units = 32, .bias = false});
    if (norms) x = ops::batch_norm_layer(g, fmt::format("n{}", i), x, {});
    x = ops::pointwise_layer(g, fmt::format("t{}", i), "tanh", x);
  }
  ops::loss_layer(g, ops::dense_layer(g, "last", x, {.units = 4, .bias = false}));
  g.microbatches = savings.microbatches;
  g.recompute = savings.recompute.value_or(graph::Recompute::none);
  ops::add_backward_and_update(g, {});
  return g;
}

Build plain() {
  return [](const Savings& savings) { return layers(savings, false); };
}
Build normed() {
  return [](const Savings& savings) { return layers(savings, true); };
}

/// Stands for a peak: what is worked off at a time, as much less as there are parts and as is recomputed.
std::int64_t peak(const Graph& graph, const Plan&) {
  const std::int64_t kinds[] = {1000, 600, 300};
  return 100 + kinds[static_cast<int>(graph.recompute)] / graph.microbatches;
}

struct Chosen {
  std::int64_t microbatches;
  Recompute recompute;
  bool operator==(const Chosen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Chosen& chosen) {
  return out << chosen.microbatches << " " << graph::to_string(chosen.recompute);
}

Chosen choose(const Build& build, std::int64_t memory, const Savings& given = {}, const Mesh& mesh = Mesh{{2}}) {
  const Planned planned = make_plan_with(given, batch, build, mesh, {.memory = memory, .peak = peak});
  verify(planned.graph, planned.plan);
  return {planned.graph.microbatches, planned.graph.recompute};
}

std::string error_of(const Build& build, std::int64_t memory, const Savings& given = {}) {
  try {
    choose(build, memory, given);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Savings, NothingIsSavedThatNeedNotBe) {
  EXPECT_EQ(choose(plain(), 0), (Chosen{1, Recompute::none}));
  EXPECT_EQ(choose(plain(), 1100), (Chosen{1, Recompute::none}));
  EXPECT_EQ(choose(plain(), 0, {.microbatches = 4}), (Chosen{4, Recompute::none}));
  EXPECT_EQ(choose(plain(), 0, {.recompute = Recompute::cheap}), (Chosen{1, Recompute::cheap}));
}

TEST(Savings, TheFewestPartsThatFitAreTakenBeforeAnythingIsComputedTwice) {
  EXPECT_EQ(choose(plain(), 1099), (Chosen{2, Recompute::none}));
  EXPECT_EQ(choose(plain(), 400), (Chosen{4, Recompute::none}));
  EXPECT_EQ(choose(plain(), 225), (Chosen{8, Recompute::none}));
  EXPECT_EQ(choose(plain(), 180), (Chosen{8, Recompute::cheap})); // 16 parts would leave a rank without a sample
  EXPECT_EQ(choose(plain(), 150), (Chosen{8, Recompute::segments}));
  EXPECT_EQ(choose(plain(), 120), (Chosen{16, Recompute::segments}));
}

TEST(Savings, BatchNormIsComputedAgainButNotByParts) {
  EXPECT_EQ(choose(normed(), 1099), (Chosen{1, Recompute::cheap}));
  EXPECT_EQ(choose(normed(), 699), (Chosen{1, Recompute::segments}));
  EXPECT_NE(error_of(normed(), 399).find("with train.microbatches = 1 and train.recompute = \"segments\""),
            std::string::npos);
}

TEST(Savings, WhatIsGivenStays) {
  EXPECT_EQ(choose(plain(), 600, {.microbatches = 1}), (Chosen{1, Recompute::segments}));
  EXPECT_EQ(choose(plain(), 350, {.recompute = Recompute::cheap}), (Chosen{4, Recompute::cheap}));
  EXPECT_EQ(choose(plain(), 600, {.microbatches = 2, .recompute = Recompute::segments}),
            (Chosen{2, Recompute::segments}));
  EXPECT_NE(error_of(plain(), 300, {.microbatches = 1, .recompute = Recompute::none})
                .find("take more ranks, a smaller data.batch or more train.microbatches"),
            std::string::npos);
}

TEST(Savings, WhatFitsNowhereIsRefusedWithWhatWasTried) {
  EXPECT_EQ(error_of(plain(), 20).substr(0, 144),
            "parallel.memory, got 20 B for a rank expected at least 137 B, what the leanest plan found takes, with "
            "train.microbatches = 8 and train.recompute");
}

/// Under the objective of time parts and all that is computed twice count, and nothing that fits takes less.
TEST(Savings, LeastTimeIsLeastTime) {
  const machine::Setting machine = support::small_hosts(Mesh{{2, 2}}, 4);
  for (const std::int64_t memory : {700, 600, 450}) {
    const Planned planned =
        make_plan_with({}, batch, plain(), machine.mesh, {.machine = &machine, .memory = memory, .peak = peak});
    EXPECT_LE(peak(planned.graph, planned.plan), memory);
    for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::segments})
      for (const std::int64_t parts : {1, 2, 4}) {
        const Graph graph = plain()({parts, recompute});
        const Plan plan = make_plan(graph, machine.mesh, {.machine = &machine});
        if (peak(graph, plan) <= memory) {
          EXPECT_LE(planned.plan.price(), plan.price()) << memory << " " << Chosen{parts, recompute};
        }
      }
  }
}

TEST(Savings, AreSaid) {
  EXPECT_EQ(savings_text(plain()({1, Recompute::none})), "");
  EXPECT_EQ(savings_text(plain()({4, Recompute::none})), ", 4 microbatches");
  EXPECT_EQ(savings_text(plain()({2, Recompute::segments})), ", 2 microbatches, recompute segments");
}

} // namespace
} // namespace soybean::plan
