// Dropout kernels, f32. n elements: 8n bytes and some 60n integer operations for Philox.
#include "kernels/dropout.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"
#include "kernels/spans.hpp"

#include <bit>

namespace soybean::kernels {

Dropout make_dropout(const graph::Node& node) {
  Dropout d;
  d.rate = node.attributes.real("rate");
  d.stream.seed = std::bit_cast<std::uint64_t>(node.attributes.integer("seed"));
  d.stream.name = std::bit_cast<std::uint64_t>(node.attributes.integer("stream"));
  return d;
}

void dropout(const Exec& exec, const Dropout& dropout, const TensorView& x, const TensorView& hyper,
             const TensorView& y) {
  expect(x, DType::f32);
  expect_alike(x, y);
  expect(hyper, DType::f64);
  const LogicalIndex index = logical_index(x);
  const philox::Stream stream = dropout.stream;
  const double rate = dropout.rate;
  const auto scale = static_cast<float>(1 / (1 - rate));
  const float* from = x.as<const float>();
  const double* step = hyper.as<const double>() + 1;
  float* to = y.as<float>();
  spans_for(
      exec, index.rows, index.inner, 16, "soybean::dropout",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        philox::Stream now = stream;
        now.step = static_cast<std::uint64_t>(*step);
        const std::int64_t base = index.row_base(row) + begin * index.inner_stride;
        const std::int64_t first = row * index.inner + begin;
#pragma omp simd
        for (int i = 0; i < width; ++i) {
          const float scaled = from[first + i] * scale;
          to[first + i] = formulas::dropout_keeps(now, base + i * index.inner_stride, rate) ? scaled : 0.0f;
        }
      });
}

namespace {

void pass_through(const Exec& exec, const TensorView& x, const TensorView& y) {
  expect(x, DType::f32);
  expect_alike(x, y);
  copy(exec, "soybean::dropout::copy", y.size(), x.as<const float>(), y.as<float>());
}

} // namespace

void run_dropout(const Exec& exec, const Call& call) {
  if (!call.training) return pass_through(exec, call.inputs[0], call.outputs[0]);
  dropout(exec, make_dropout(call.node), call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_dropout_grad(const Exec& exec, const Call& call) {
  dropout(exec, make_dropout(call.node), call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels
