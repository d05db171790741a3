// Dropout as torch.nn.Dropout, with masks that are a function of (seed, layer, step, logical index): backward draws the
// same mask again instead of keeping it.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const double rate = node.attributes.real("rate");
  if (!(rate >= 0 && rate < 1)) fail("{}: rate, got {} expected at least 0 and below 1", where(graph, node), rate);
  ensure(node.attributes.has("seed") && node.attributes.has("stream"), "dropout without seed or stream");
  ensure(input(graph, node, 1).role == graph::Role::hyper, "dropout reads the step from the hyper tensor");
  return {elementwise_result(graph, node, 1)};
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, false, 1);
}

void gradient(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = "dropout_grad",
                       .attributes = node.attributes,
                       .inputs = {backward.gradient_of(node.outputs[0]), node.inputs[1]}});
}

double twice(const Graph& graph, const Node& node) {
  return 2 * result_elements(graph, node);
}

} // namespace

std::vector<Operator> dropout_family() {
  return {{"dropout", infer, form_of, gradient, twice}, {"dropout_grad", infer, form_of, nullptr, twice}};
}

} // namespace soybean::ops
