// Local response normalisation, f32. n elements, windows of K channels: forward moves 8n bytes and takes 2Kn flops and
// a power each (square roots alone where beta is 3/4, as it mostly is); the gradient moves 28n bytes in two passes and
// takes 5Kn flops. Work is one row × a span of channels.
#include "kernels/lrn.hpp"

#include "device/math.hpp"
#include "kernels/layout.hpp"
#include "kernels/spans.hpp"

namespace soybean::kernels {

Lrn make_lrn(const graph::Node& node, const TensorView& x) {
  const auto [rows, channels] = channel_rows(x);
  ensure(channels == x.global[1], "local response normalisation needs all channels");
  const std::int64_t size = node.attributes.integer("size");
  return {.rows = rows,
          .channels = channels,
          .before = size / 2,
          .after = (size - 1) / 2,
          .alpha = node.attributes.real("alpha") / static_cast<double>(size),
          .beta = node.attributes.real("beta"),
          .k = node.attributes.real("k")};
}

namespace {

/// Some channels [begin, begin + width) of one row, and what all rows have in common.
struct Window {
  std::int64_t channels, before, after;
  float alpha, beta, k;
  bool roots; ///< beta is 3/4

  /// sums[i] = Σ term(c) over the channels from begin + i − `low` to begin + i + `high` that there are.
  template<class Term>
  KOKKOS_INLINE_FUNCTION void sum(std::int64_t begin, int width, std::int64_t low, std::int64_t high, const Term& term,
                                  float* sums) const {
    for (int i = 0; i < width; ++i) sums[i] = 0;
    for (std::int64_t offset = -low; offset <= high; ++offset) {
      const std::int64_t first = begin + offset; // channel of sums[0]
      const auto from = static_cast<int>(first < 0 ? -first : 0);
      const std::int64_t left = channels - first;
      const auto to = static_cast<int>(left < width ? left : width);
#pragma omp simd
      for (int i = from; i < to; ++i) sums[i] += term(first + i);
    }
  }
  /// d of every channel of the span.
  KOKKOS_INLINE_FUNCTION void denominators(const float* x, std::int64_t begin, int width, float* d) const {
    sum(
        begin, width, before, after, [&](std::int64_t c) { return x[c] * x[c]; }, d);
    for (int i = 0; i < width; ++i) d[i] = k + alpha * d[i];
  }
  /// p[i] = d[i]^−beta.
  KOKKOS_INLINE_FUNCTION void powers(const float* d, int width, float* p) const {
    if (roots) {
      for (int i = 0; i < width; ++i) {
        const float root = device::math::sqrt(d[i]);
        p[i] = 1.0f / (root * device::math::sqrt(root));
      }
    } else {
      for (int i = 0; i < width; ++i) p[i] = device::math::pow(d[i], -beta);
    }
  }
};

Window make_window(const Lrn& lrn) {
  return {lrn.channels,
          lrn.before,
          lrn.after,
          static_cast<float>(lrn.alpha),
          static_cast<float>(lrn.beta),
          static_cast<float>(lrn.k),
          lrn.beta == 0.75};
}

} // namespace

void run_lrn(const Exec& exec, const Call& call) {
  const TensorView &in = call.inputs[0], &y = call.outputs[0];
  expect(in, DType::f32);
  expect_alike(in, y);
  const Lrn lrn = make_lrn(call.node, in);
  const Window window = make_window(lrn);
  const float* x = in.as<const float>();
  float* out = y.as<float>();
  const std::int64_t channels = lrn.channels;
  spans_for(
      exec, lrn.rows, channels, lrn.before + lrn.after + 4, "soybean::lrn",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        float d[span_width], p[span_width];
        const float* from = x + row * channels;
        window.denominators(from, begin, width, d);
        window.powers(d, width, p);
        float* to = out + row * channels + begin;
        for (int i = 0; i < width; ++i) to[i] = from[begin + i] * p[i];
      });
}

void run_lrn_grad(const Exec& exec, const Call& call) {
  const TensorView &above = call.inputs[0], &in = call.inputs[1], &result = call.outputs[0];
  expect(in, DType::f32);
  expect_alike(above, in);
  expect_alike(above, result);
  const Lrn lrn = make_lrn(call.node, in);
  const Window window = make_window(lrn);
  const float *x = in.as<const float>(), *dy = above.as<const float>();
  float *dx = result.as<float>(), *terms = static_cast<float*>(call.scratch);
  const std::int64_t channels = lrn.channels, work = 2 * (lrn.before + lrn.after) + 8;
  spans_for(
      exec, lrn.rows, channels, work, "soybean::lrn_grad::terms",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        float d[span_width], p[span_width];
        const std::int64_t first = row * channels;
        window.denominators(x + first, begin, width, d);
        window.powers(d, width, p);
        for (int i = 0; i < width; ++i) {
          const std::int64_t at = first + begin + i;
          const float scaled = dy[at] * p[i];
          terms[at] = scaled * x[at] / d[i];
          dx[at] = scaled;
        }
      });
  const float factor = 2 * window.alpha * window.beta;
  spans_for(
      exec, lrn.rows, channels, work, "soybean::lrn_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        float sums[span_width];
        const std::int64_t first = row * channels;
        window.sum(
            begin, width, window.after, window.before, [&](std::int64_t c) { return terms[first + c]; }, sums);
        for (int i = 0; i < width; ++i) {
          const std::int64_t at = first + begin + i;
          dx[at] -= factor * x[at] * sums[i];
        }
      });
}

std::int64_t scratch_lrn_grad(const Exec&, const Call& call) {
  return call.inputs[0].size() * static_cast<std::int64_t>(sizeof(float));
}

} // namespace soybean::kernels
