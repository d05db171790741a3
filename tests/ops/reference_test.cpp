// Every f32 kernel against the f64 reference on the same inputs, node by node, on random shapes; and in place against
// out of place.
#include "ops/cases.hpp"
#include "ops/compare.hpp"
#include "ops/operator.hpp"
#include "ops/place.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace soybean::ops_test {
namespace {

using graph::Graph;
using graph::Node;
using support::Block;
using support::Values;

class Reference : public OnPlace {};

/// The block in another precision; labels and hyper stay as they are.
Block converted(const graph::Tensor& tensor, const Block& block) {
  Block result(tensor, block.view().box);
  for (std::int64_t i = 0; i < block.size(); ++i) result.set(i, block.get(i));
  return result;
}

/// Runs node n of both graphs on the f64 run's inputs, rounded to float, and returns the f64 and f32 results.
struct Results {
  std::vector<Block> slow, fast;
};
Results run_both(const device::Exec& slow_exec, const device::Exec& fast_exec, const Graph& slow, const Graph& fast,
                 std::size_t n, const Values& values) {
  const Node &node = slow.nodes[n], &fast_node = fast.nodes[n];
  std::vector<Block> slow_inputs, fast_inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    fast_inputs.push_back(converted(fast.tensors[fast_node.inputs[i]], values[node.inputs[i]]));
    slow_inputs.push_back(converted(slow.tensors[node.inputs[i]], fast_inputs.back()));
  }
  Results results;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const graph::Tensor& tensor = slow.tensors[node.outputs[i]];
    results.slow.emplace_back(tensor, whole(tensor.shape));
    results.fast.emplace_back(fast.tensors[fast_node.outputs[i]], whole(tensor.shape));
  }
  support::run_node(slow_exec, slow, node, views(slow_inputs), views(results.slow));
  support::run_node(fast_exec, fast, fast_node, views(fast_inputs), views(results.fast));
  return results;
}

TEST_P(Reference, AgreesNodeByNodeOnRandomShapes) {
  const device::Exec slow_exec = exec_for(DType::f64), fast_exec = exec_for(DType::f32);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Sizes sizes = random_sizes(seed);
    const Graph slow = GetParam().build(DType::f64, sizes), fast = GetParam().build(DType::f32, sizes);
    Values values = support::allocate(slow);
    support::fill_sources(slow, values, seed);
    support::run_serial(slow_exec, slow, values);
    for (std::size_t n = 0; n < slow.nodes.size(); ++n) {
      const Results results = run_both(slow_exec, fast_exec, slow, fast, n, values);
      for (std::size_t i = 0; i < results.slow.size(); ++i)
        EXPECT_LE(difference(results.fast[i], results.slow[i]).relative(), tolerance(DType::f32))
            << "seed " << seed << " " << slow.tensors[slow.nodes[n].outputs[i]].name << " (" << slow.nodes[n].op << ") "
            << to_string(slow.tensors[slow.nodes[n].outputs[i]].shape);
    }
  }
}

/// Runs a node with each result that may in the memory of its input.
void check_in_place(const device::Exec& exec, const Graph& graph, const Node& node, const Values& values) {
  const std::vector<int>& in_place = ops::find(node.op).in_place;
  std::vector<Block> inputs;
  inputs.reserve(node.inputs.size());
  for (graph::TensorId t : node.inputs) inputs.push_back(values[t].copy());
  std::vector<Block> fresh;
  std::vector<device::TensorView> outputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[node.outputs[i]];
    fresh.emplace_back(tensor, whole(tensor.shape));
    outputs.push_back(fresh.back().view());
    if (i < in_place.size() && in_place[i] >= 0 && in_place[i] < static_cast<int>(inputs.size()))
      outputs.back().data = inputs[in_place[i]].view().data;
  }
  support::run_node(exec, graph, node, views(inputs), outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Block& expected = values[node.outputs[i]];
    const std::size_t bytes = static_cast<std::size_t>(expected.size() * size_of(expected.view().dtype));
    EXPECT_EQ(std::memcmp(outputs[i].data, expected.view().data, bytes), 0)
        << graph.tensors[node.outputs[i]].name << " (" << node.op << ") in " << to_string(graph.precision);
  }
}

TEST_P(Reference, GivesTheSameBitsInPlace) {
  for (DType precision : {DType::f32, DType::f64}) {
    const device::Exec exec = exec_for(precision);
    const Graph graph = GetParam().build(precision, {});
    Values values = support::allocate(graph);
    support::fill_sources(graph, values, 5);
    support::run_serial(exec, graph, values);
    for (const Node& node : graph.nodes) check_in_place(exec, graph, node, values);
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(Operators, Reference, ::testing::ValuesIn(cases()), name_of);

} // namespace
} // namespace soybean::ops_test
