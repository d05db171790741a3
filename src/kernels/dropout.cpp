// Dropout kernels, f32. n elements: 8n bytes and some 60n integer operations for Philox.
#include "kernels/dropout.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/spans.hpp"

#include <bit>
#include <cmath>

namespace soybean::kernels {

Dropout make_dropout(const graph::Node& node) {
  Dropout d;
  d.rate = node.attributes.real("rate");
  d.stream.seed = std::bit_cast<std::uint64_t>(node.attributes.integer("seed"));
  d.stream.name = std::bit_cast<std::uint64_t>(node.attributes.integer("stream"));
  return d;
}

std::int64_t first_element(const graph::Node& node, const TensorView& x) {
  if (!node.attributes.has("first_row")) return 0;
  return node.attributes.integer("first_row") * (volume(x.global) / x.global[0]);
}

namespace {

/// What every element of a mask has in common. An element is kept iff its 53 bits k, read as uniform k·2⁻⁵³, are at
/// least the rate: iff k ≥ ⌈rate·2⁵³⌉, compared in two halves of 32 and 21 bits.
struct Mask {
  philox::Key key;
  std::uint32_t threshold_high, threshold_low;
  float scale;
};

Mask make_mask(const Dropout& dropout) {
  const auto threshold = static_cast<std::uint64_t>(std::ceil(dropout.rate * 0x1.0p53));
  return {philox::key(dropout.stream), static_cast<std::uint32_t>(threshold >> 21),
          static_cast<std::uint32_t>(threshold & 0x1FFFFF), static_cast<float>(1 / (1 - dropout.rate))};
}

/// The logical indices first, first + stride, … of `width` <= span_width elements.
struct Indices {
  std::int64_t first, stride;
  int width;
};

/// The Philox rounds of a whole span side by side, which vectorises; what is dropped is masked out, not branched on.
KOKKOS_INLINE_FUNCTION void drop(const Mask& mask, std::uint64_t step, const Indices& indices, const float* from,
                                 float* to) {
  std::uint32_t a[span_width], b[span_width], c[span_width], d[span_width];
#pragma omp simd
  for (int i = 0; i < indices.width; ++i) {
    const auto index = static_cast<std::uint64_t>(indices.first + i * indices.stride);
    a[i] = static_cast<std::uint32_t>(index);
    b[i] = static_cast<std::uint32_t>(index >> 32);
    c[i] = static_cast<std::uint32_t>(step);
    d[i] = static_cast<std::uint32_t>(step >> 32);
  }
  philox::Key key = mask.key;
  for (int round = 0; round < philox::rounds; ++round) {
    const std::uint32_t key0 = key[0], key1 = key[1];
#pragma omp simd
    for (int i = 0; i < indices.width; ++i) philox::round(a[i], b[i], c[i], d[i], key0, key1);
    key = philox::next(key);
  }
#pragma omp simd
  for (int i = 0; i < indices.width; ++i) {
    const std::uint32_t high = b[i], low = a[i] >> 11;
    const std::uint32_t kept =
        (high > mask.threshold_high) | ((high == mask.threshold_high) & (low >= mask.threshold_low));
    to[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(from[i] * mask.scale) & (0u - kept));
  }
}

} // namespace

void dropout(const Exec& exec, const Dropout& dropout, const TensorView& x, const TensorView& hyper,
             const TensorView& y) {
  expect(x, DType::f32);
  expect_alike(x, y);
  expect(hyper, DType::f64);
  LogicalIndex index = logical_index(x);
  index.base += dropout.first;
  const Mask mask = make_mask(dropout);
  const float* from = x.as<const float>();
  const double* step = hyper.as<const double>() + 1;
  float* to = y.as<float>();
  spans_for(
      exec, index.rows, index.inner, 16, "soybean::dropout",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const Indices indices{index.row_base(row) + begin * index.inner_stride, index.inner_stride, width};
        const std::int64_t first = row * index.inner + begin;
        drop(mask, static_cast<std::uint64_t>(*step), indices, from + first, to + first);
      });
}

namespace {

void run(const Exec& exec, const Call& call) {
  Dropout settings = make_dropout(call.node);
  settings.first = first_element(call.node, call.inputs[0]);
  dropout(exec, settings, call.inputs[0], call.inputs[1], call.outputs[0]);
}

void pass_through(const Exec& exec, const TensorView& x, const TensorView& y) {
  expect(x, DType::f32);
  expect_alike(x, y);
  copy(exec, "soybean::dropout::copy", y.size(), x.as<const float>(), y.as<float>());
}

} // namespace

void run_dropout(const Exec& exec, const Call& call) {
  if (!call.training) return pass_through(exec, call.inputs[0], call.outputs[0]);
  run(exec, call);
}
void run_dropout_grad(const Exec& exec, const Call& call) {
  run(exec, call);
}

} // namespace soybean::kernels
