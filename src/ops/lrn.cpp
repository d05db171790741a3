// Local response normalisation across neighbouring channels, as torch.nn.LocalResponseNorm:
// y = x·(k + alpha/size·Σ x'²)^−beta, the sum over the `size` channels around each, those outside counting as zero.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "it works across the channels of images");
  if (node.attributes.integer("size") < 1)
    fail("{}: size, got {} expected at least 1", where(graph, node), node.attributes.integer("size"));
  for (const char* name : {"alpha", "beta", "k"}) {
    const double value = node.attributes.real(name);
    if (!(value >= 0 && std::isfinite(value)))
      fail("{}: {}, got {} expected a finite number of at least 0", where(graph, node), name, value);
  }
  return {elementwise_result(graph, node, 1)};
}

Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h w -> b c h w", .split = "b h w"});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h w, b c h w -> b c h w", .split = "b h w"});
}

void gradient(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = "lrn_grad",
                       .attributes = node.attributes,
                       .inputs = {backward.gradient_of(node.outputs[0]), node.inputs[0]}});
}

/// A multiply-add per channel of the window, twice in backward, and a power.
double flops_of(const Graph& graph, const Node& node) {
  const auto size = static_cast<double>(node.attributes.integer("size"));
  return ((node.op == "lrn" ? 2 : 4) * size + 8) * result_elements(graph, node);
}

} // namespace

std::vector<Operator> lrn_family() {
  return {{"lrn", infer, form_of, gradient, flops_of}, {"lrn_grad", infer_binary, form_grad, nullptr, flops_of}};
}

} // namespace soybean::ops
