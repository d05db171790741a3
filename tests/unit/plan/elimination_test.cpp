// The engine under the planner: elimination against trying everything, tables of moves against single ones.
#include "plan/elimination.hpp"

#include "plan/move_costs.hpp"
#include "tiling/redistribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace soybean::plan {
namespace {

struct Sum {
  std::vector<int> sizes;
  std::vector<Factor> factors;
};

Cost value(const Sum& sum, const std::vector<int>& assignment) {
  Cost total = 0;
  for (const Factor& factor : sum.factors) {
    std::size_t at = 0;
    for (int v : factor.scope) at = at * sum.sizes[v] + assignment[v];
    total += (*factor.table)[at];
  }
  return std::min(total, infinite_cost);
}

Cost least_value(const Sum& sum) {
  std::vector<int> assignment(sum.sizes.size(), 0);
  Cost least = infinite_cost;
  for (;;) {
    least = std::min(least, value(sum, assignment));
    std::size_t v = 0;
    while (v < assignment.size() && ++assignment[v] == sum.sizes[v]) assignment[v++] = 0;
    if (v == assignment.size()) return least;
  }
}

Sum random_sum(std::mt19937& random) {
  Sum sum;
  const int variables = 2 + static_cast<int>(random() % 5);
  for (int v = 0; v < variables; ++v) sum.sizes.push_back(1 + static_cast<int>(random() % 4));
  for (int f = 0; f < variables + 2; ++f) {
    Factor factor;
    std::vector<Cost> table;
    std::size_t entries = 1;
    for (int v = 0; v < variables; ++v)
      if (random() % 3 == 0) {
        factor.scope.push_back(v);
        entries *= sum.sizes[v];
      }
    table.reserve(entries);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    for (std::size_t i = 0; i < entries; ++i)
      table.push_back(random() % 6 == 0 ? infinite_cost : make_cost(below(5), below(7)));
    factor.table = std::make_shared<const std::vector<Cost>>(std::move(table));
    sum.factors.push_back(std::move(factor));
  }
  return sum;
}

Order order_of(const Sum& sum) {
  std::vector<std::vector<int>> scopes;
  std::vector<int> alike;
  for (const Factor& factor : sum.factors) {
    alike.push_back(static_cast<int>(scopes.size()));
    scopes.push_back(factor.scope);
  }
  return elimination_order(sum.sizes, scopes, alike);
}

TEST(Elimination, finds_what_trying_everything_finds) {
  std::mt19937 random(1);
  int feasible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Sum sum = random_sum(random);
    const Minimum minimum = eliminate(sum.sizes, sum.factors, order_of(sum));

    EXPECT_TRUE(minimum.cost == least_value(sum)) << "trial " << trial;
    if (minimum.cost < infinite_cost) {
      EXPECT_TRUE(value(sum, minimum.assignment) == minimum.cost) << "trial " << trial;
      ++feasible;
    }
  }
  EXPECT_GT(feasible, 100);
}

Cost least_with(const Sum& sum, int variable, int value_wanted) {
  Sum fixed = sum; // a factor that allows nothing but that value
  std::vector<Cost> only(sum.sizes[variable], infinite_cost);
  only[value_wanted] = 0;
  fixed.factors.push_back({{variable}, std::make_shared<const std::vector<Cost>>(std::move(only))});
  return least_value(fixed);
}

TEST(Elimination, fewest_bytes_with_each_value_are_what_trying_everything_finds) {
  std::mt19937 random(2);
  int feasible = 0, infeasible = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Sum sum = random_sum(random);
    const auto least = least_per_value(sum.sizes, sum.factors, order_of(sum)).per_value;

    ASSERT_EQ(least.size(), sum.sizes.size());
    for (std::size_t v = 0; v < least.size(); ++v) {
      ASSERT_EQ(static_cast<int>(least[v].size()), sum.sizes[v]);
      for (int x = 0; x < sum.sizes[v]; ++x) {
        const Cost expected = least_with(sum, static_cast<int>(v), x);
        EXPECT_EQ(least[v][x], expected < infinite_cost ? price_of(expected) : infinite_price)
            << "trial " << trial << ", variable " << v << ", value " << x;
        ++(expected < infinite_cost ? feasible : infeasible);
      }
    }
  }
  EXPECT_GT(feasible, 500);
  EXPECT_GT(infeasible, 100);
}

TEST(Elimination, what_is_more_than_wanted_is_at_least_known_to_be) {
  std::mt19937 random(3);
  int wanted = 0, unwanted = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Sum sum = random_sum(random);
    const Least all = least_per_value(sum.sizes, sum.factors, order_of(sum));
    if (all.minimum >= infinite_price) continue;
    const std::int64_t most = all.minimum + trial % 7;

    const Least least = least_per_value(sum.sizes, sum.factors, order_of(sum), all.minimum, most);

    EXPECT_EQ(least.minimum, all.minimum);
    for (std::size_t v = 0; v < all.per_value.size(); ++v)
      for (int x = 0; x < sum.sizes[v]; ++x) {
        const bool is_wanted = all.per_value[v][x] <= most;
        if (is_wanted)
          EXPECT_EQ(least.per_value[v][x], all.per_value[v][x]) << "trial " << trial;
        else
          EXPECT_GT(least.per_value[v][x], most) << "trial " << trial;
        ++(is_wanted ? wanted : unwanted);
      }
  }
  EXPECT_GT(wanted, 300);
  EXPECT_GT(unwanted, 300);
}

TEST(Elimination, costs_compare_bytes_first) {
  EXPECT_TRUE(make_cost(1, 1000) < make_cost(2, 0));
  EXPECT_TRUE(make_cost(2, 0) < make_cost(2, 1));
  EXPECT_EQ(price_of(make_cost(7, 9)), 7);
  EXPECT_EQ(held_of(make_cost(7, 9)), 9);
}

TEST(Elimination, a_chain_needs_only_small_tables) {
  const Order order = elimination_order({10, 10, 10, 10, 10}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {0, 1, 2, 3});
  EXPECT_LE(order.largest_table, 10);
}

std::vector<tiling::Tiling> random_tilings(std::mt19937& random, const graph::Tensor& tensor, const tiling::Mesh& mesh,
                                           bool partial) {
  std::vector<tiling::Tiling> tilings;
  for (int i = 0; i < 6; ++i) {
    tiling::Tiling tiling;
    for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
      const int pick = static_cast<int>(random() % (tensor.shape.size() + 2));
      if (pick < 2)
        tiling.push_back(pick == 0 && partial ? tiling::partial() : tiling::replicate());
      else
        tiling.push_back(tiling::split(pick - 2, tensor.units[pick - 2]));
    }
    tilings.push_back(tiling::normalise(tiling, tensor.shape, mesh));
  }
  return tilings;
}

TEST(MoveCosts, tables_hold_what_single_moves_cost) {
  std::mt19937 random(2);
  const std::vector<std::vector<int>> meshes = {{2}, {3, 2}, {2, 2, 2}, {2, 3}, {5}};
  for (int trial = 0; trial < 200; ++trial) {
    const tiling::Mesh mesh{meshes[random() % meshes.size()]};
    graph::Tensor tensor;
    for (int d = 0; d < 1 + static_cast<int>(random() % 4); ++d) {
      tensor.shape.push_back(1 + static_cast<std::int64_t>(random() % 4) * (random() % 2 ? 1 : 30));
      if (random() % 2) tensor.shape.back() = 120;
      tensor.units.push_back(tensor.shape.back() == 120 && random() % 3 == 0 ? 5 : 1);
    }
    const std::vector<tiling::Tiling> from = random_tilings(random, tensor, mesh, true);
    const std::vector<tiling::Tiling> to = random_tilings(random, tensor, mesh, false);
    MoveCosts costs(mesh);

    const std::vector<std::int64_t> table = costs.table(tensor, from, to);

    for (std::size_t i = 0; i < from.size(); ++i)
      for (std::size_t j = 0; j < to.size(); ++j)
        EXPECT_EQ(table[i * to.size() + j],
                  size_of(tensor.dtype) * tiling::elements_moved(mesh, {tensor.shape, tensor.units}, from[i], to[j]))
            << soybean::to_string(tensor.shape) << " " << to_string(from[i]) << " -> " << to_string(to[j]);
  }
}

TEST(MoveCosts, the_largest_block_is_that_of_the_fullest_rank) {
  graph::Tensor tensor;
  tensor.shape = {10, 7};
  tensor.units = {1, 1};
  const tiling::Mesh mesh{{2, 2}};
  for (const tiling::Tiling& tiling :
       {tiling::Tiling{tiling::split(0), tiling::split(0)}, tiling::Tiling{tiling::split(1), tiling::partial()},
        tiling::Tiling{tiling::split(1, 3), tiling::split(0)}}) {
    std::int64_t most = 0;
    for (int rank = 0; rank < 4; ++rank)
      most = std::max(most, 4 * volume(tiling::block(tiling, tensor.shape, mesh, rank)));
    EXPECT_EQ(largest_block_bytes(tensor, tiling, mesh), most);
  }
}

} // namespace
} // namespace soybean::plan
