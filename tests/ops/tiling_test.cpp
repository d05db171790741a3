// Every node, in the tilings its index form allows, halos included, on meshes of 2, 3, 4, 6 and 8 ranks: the ranks'
// kernels, each on its blocks, must together give the serial result. Partial operands are split into random terms,
// partial results added up.
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "ops/cases.hpp"
#include "ops/compare.hpp"
#include "ops/form.hpp"
#include "ops/operator.hpp"
#include "ops/place.hpp"
#include "tiling/tiling.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace soybean::ops_test {
namespace {

using graph::Graph;
using graph::Node;
using support::Block;
using support::Values;
using tiling::Mesh;
using tiling::Tiling;

class Tilings : public OnPlace {};

/// Which of the terms of a sum a rank holds: its coordinates along the partial cuts.
struct Term {
  int index = 0, count = 1;
};
Term term_of(const Mesh& mesh, const Tiling& tiling, int rank) {
  Term term;
  for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
    if (tiling[cut].kind != tiling::Kind::partial) continue;
    term.index = term.index * mesh.cuts[cut] + tiling::coordinate(mesh, rank, static_cast<int>(cut));
    term.count *= mesh.cuts[cut];
  }
  return term;
}

/// One of `count` random terms, of the size of its elements, that add up to the tensor.
Block term_block(const graph::Tensor& tensor, const Block& whole, const Term& term) {
  Block result = whole.copy();
  double size = 0;
  for (std::int64_t i = 0; i < whole.size(); ++i) size = std::max(size, std::abs(whole.get(i)));
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const auto noise = [&](int t) {
      return size * (philox::uniform({17, hash_text(tensor.name), static_cast<std::uint64_t>(t)},
                                     static_cast<std::uint64_t>(i)) -
                     0.5);
    };
    double value = term.index > 0 ? noise(term.index) : whole.get(i);
    for (int t = 1; t < term.count && term.index == 0; ++t) value -= noise(t);
    result.set(i, value);
  }
  return result;
}

Block operand_block(const Graph& graph, graph::TensorId t, const Values& values, const Mesh& mesh, const Tiling& tiling,
                    int rank) {
  const graph::Tensor& tensor = graph.tensors[t];
  const Box box = tiling::block(tiling, tensor.shape, mesh, rank);
  const Term term = term_of(mesh, tiling, rank);
  if (term.count == 1) return support::slice(tensor, values[t], box);
  return support::slice(tensor, term_block(tensor, values[t], term), box);
}

/// Σ of the terms of a rank's block: the blocks of all ranks that differ from it only along partial cuts.
Block summed(const Graph& graph, graph::TensorId t, const std::vector<Block>& blocks, const Mesh& mesh,
             const Tiling& tiling, int rank) {
  Block sum(graph.tensors[t], blocks[rank].view().box);
  for (std::int64_t i = 0; i < sum.size(); ++i) {
    double total = 0;
    for (int other = 0; other < tiling::ranks(mesh); ++other) {
      bool same = true;
      for (std::size_t cut = 0; cut < tiling.size(); ++cut)
        same &= tiling[cut].kind == tiling::Kind::partial || tiling::coordinate(mesh, rank, static_cast<int>(cut)) ==
                                                                 tiling::coordinate(mesh, other, static_cast<int>(cut));
      if (same) total += blocks[other].get(i);
    }
    sum.set(i, total);
  }
  return sum;
}

void check_choices(const device::Exec& exec, const Graph& graph, const Node& node, const Values& values,
                   const Mesh& mesh, const std::vector<ops::Choice>& choices) {
  const ops::Form form = ops::form(graph, node);
  const ops::OperandTilings tilings = ops::operand_tilings(form, graph, node, mesh, choices);
  std::vector<std::vector<Block>> results(node.outputs.size()); // per output, per rank
  for (int rank = 0; rank < tiling::ranks(mesh); ++rank) {
    std::vector<Block> inputs;
    inputs.reserve(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(operand_block(graph, node.inputs[i], values, mesh, tilings.inputs[i], rank));
    std::vector<device::TensorView> outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const graph::Tensor& tensor = graph.tensors[node.outputs[i]];
      results[i].emplace_back(tensor, tiling::block(tilings.outputs[i], tensor.shape, mesh, rank));
      outputs.push_back(results[i].back().view());
    }
    support::run_node(exec, graph, node, views(inputs), outputs);
  }
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (ops::Choice choice : choices) names.push_back(ops::to_string(form, choice));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Difference d;
    const graph::TensorId t = node.outputs[i];
    for (int rank = 0; rank < tiling::ranks(mesh); ++rank) {
      const Block sum = summed(graph, t, results[i], mesh, tilings.outputs[i], rank);
      const Block serial = support::slice(graph.tensors[t], values[t], sum.view().box);
      for (std::int64_t k = 0; k < sum.size(); ++k) d.add(sum.get(k), serial.get(k));
    }
    EXPECT_LE(d.relative(), tolerance(graph.precision))
        << graph.tensors[t].name << " (" << node.op << ") in " << to_string(graph.precision) << " on mesh "
        << tiling::to_string(mesh) << " splitting " << fmt::format("{}", fmt::join(names, ","));
  }
}

/// Every choice the form allows, on every cut; of three cuts and many choices a third of all, drawn.
void check_node(const device::Exec& exec, const Graph& graph, const Node& node, const Values& values,
                const Mesh& mesh) {
  const std::vector<ops::Choice> allowed = ops::allowed_choices(ops::form(graph, node));
  ASSERT_FALSE(allowed.empty()) << node.op;
  std::vector<std::size_t> pick(mesh.cuts.size(), 0);
  std::uint64_t drawn = 0;
  while (true) {
    std::vector<ops::Choice> choices;
    choices.reserve(pick.size());
    for (std::size_t p : pick) choices.push_back(allowed[p]);
    const bool many = pick.size() == 3 && allowed.size() > 4;
    if (!many || philox::bits({23, hash_text(node.name), 0}, drawn++) % 3 == 0)
      check_choices(exec, graph, node, values, mesh, choices);
    std::size_t cut = pick.size();
    while (cut > 0 && ++pick[cut - 1] == allowed.size()) pick[--cut] = 0;
    if (cut == 0) return;
  }
}

void check_case(const Case& c, DType precision) {
  const device::Exec exec = exec_for(precision);
  const Graph graph = c.build(precision, {.batch = 5, .channels = 3, .height = 4, .width = 3, .units = 4});
  Values values = support::allocate(graph);
  support::fill_sources(graph, values, 3);
  support::run_serial(exec, graph, values);
  for (const Mesh& mesh : {Mesh{{2}}, Mesh{{3}}, Mesh{{2, 2}}, Mesh{{3, 2}}, Mesh{{2, 2, 2}}})
    for (const Node& node : graph.nodes) check_node(exec, graph, node, values, mesh);
}

TEST_P(Tilings, OfEveryKindEqualSerialInDouble) {
  check_case(GetParam(), DType::f64);
}
TEST_P(Tilings, OfEveryKindEqualSerialInFloat) {
  check_case(GetParam(), DType::f32);
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(Operators, Tilings, ::testing::ValuesIn(cases()), name_of);

} // namespace
} // namespace soybean::ops_test
