#pragma once
// Blocks with known values, and single calls of a kernel, for the tests of this folder.
#include "support/interpreter.hpp"

#include <string>
#include <vector>

namespace soybean::kernels_test {

using support::Block;

struct Spec {
  Shape shape;
  std::int64_t spatial = 1;
  DType dtype = DType::f64;
};
inline graph::Tensor tensor(const Spec& spec) {
  return {.name = "t", .shape = spec.shape, .dtype = spec.dtype, .spatial = spec.spatial};
}
/// Images are NHWC, all else plain.
inline Spec images(Shape shape, DType dtype) {
  const std::int64_t positions = shape[2] * shape[3];
  return {std::move(shape), positions, dtype};
}
inline Block block(const Spec& spec) {
  return Block(tensor(spec), whole(spec.shape));
}
/// The whole tensor, values in logical order.
inline Block block(const Spec& spec, const std::vector<double>& values) {
  Block result = block(spec);
  support::set_logical(result, values);
  return result;
}

/// Runs one operator on blocks, in the precision given.
struct Run {
  std::string op;
  graph::Attributes attributes = {};
  DType precision = DType::f64;
  bool training = true;
  int threads = 1;
};
inline void run(const Run& what, const std::vector<const Block*>& inputs, const std::vector<const Block*>& outputs) {
  const device::Exec exec(what.threads);
  graph::Graph graph;
  graph.precision = what.precision;
  graph::Node node{.name = "node", .op = what.op, .attributes = what.attributes};
  std::vector<device::TensorView> in, out;
  for (const Block* b : inputs) in.push_back(b->view());
  for (const Block* b : outputs) out.push_back(b->view());
  support::run_node(exec, graph, node, in, out, {.training = what.training});
}

} // namespace soybean::kernels_test
