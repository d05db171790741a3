// Work is one row of images × a span of channels; the gradient writes row by row of dx, so that rows are independent
// and sums have a fixed order.
#include "kernels/upsample.hpp"

#include "kernels/layout.hpp"
#include "kernels/spans.hpp"

namespace soybean::kernels {

namespace {

struct Range {
  std::int64_t begin, end;
};

/// Pixels of y along an axis that may have pixel `i` of x among their taps; a few more at most.
KOKKOS_INLINE_FUNCTION Range touched(const Upsample& u, int axis, std::int64_t i) {
  const std::int64_t in = u.in[axis], out = u.out[axis];
  if (!u.bilinear) return {i * out / in, ((i + 1) * out + in - 1) / in};
  std::int64_t begin = 0, end = out;
  if (u.align_corners && in > 1) {
    begin = (i - 1) * (out - 1) / (in - 1);
    end = (i + 1) * (out - 1) / (in - 1) + 2;
  } else if (!u.align_corners) {
    begin = i == 0 ? 0 : ((2 * i - 1) * out - in) / (2 * in) - 1;
    end = i == in - 1 ? out : ((2 * i + 3) * out - in) / (2 * in) + 2;
  }
  return {begin < 0 ? 0 : begin, end < out ? end : out};
}

} // namespace

Upsample make_upsample(const graph::Node& node, const TensorView& x, const TensorView& y) {
  channel_rows(x); // check that they are images
  channel_rows(y);
  Upsample u{.samples = x.extent(0),
             .channels = x.extent(1),
             .bilinear = node.attributes.integer("bilinear") == 1,
             .align_corners = node.attributes.integer("align_corners") == 1};
  ensure(y.extent(0) == u.samples && y.extent(1) == u.channels, node.name + ": blocks do not fit together");
  for (int axis = 0; axis < 2; ++axis) {
    u.in[axis] = x.extent(2 + axis);
    u.out[axis] = y.extent(2 + axis);
  }
  return u;
}

void run_upsample(const Exec& exec, const Call& call) {
  expect(call.inputs[0], DType::f32);
  expect(call.outputs[0], DType::f32);
  const Upsample u = make_upsample(call.node, call.inputs[0], call.outputs[0]);
  const float* x = call.inputs[0].as<const float>();
  float* y = call.outputs[0].as<float>();
  spans_for(
      exec, u.samples * u.out[0], u.channels, 4 * u.out[1], "soybean::upsample",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const Taps h = taps(u, 0, row % u.out[0]);
        const std::int64_t line = u.in[1] * u.channels, image = row / u.out[0] * u.in[0];
        const float *upper = x + (image + h.first) * line + begin, *lower = x + (image + h.second) * line + begin;
        float* to = y + row * u.out[1] * u.channels + begin;
        const auto down = static_cast<float>(h.weight), up = 1.0f - down;
        for (std::int64_t o = 0; o < u.out[1]; ++o, to += u.channels) {
          const Taps w = taps(u, 1, o);
          const std::int64_t left = w.first * u.channels, right = w.second * u.channels;
          if (!u.bilinear) {
#pragma omp simd
            for (int c = 0; c < width; ++c) to[c] = upper[left + c];
            continue;
          }
          const auto r = static_cast<float>(w.weight), l = 1.0f - r;
#pragma omp simd
          for (int c = 0; c < width; ++c)
            to[c] =
                up * (l * upper[left + c] + r * upper[right + c]) + down * (l * lower[left + c] + r * lower[right + c]);
        }
      });
}

void run_upsample_grad(const Exec& exec, const Call& call) {
  expect(call.inputs[0], DType::f32);
  expect(call.outputs[0], DType::f32);
  const Upsample u = make_upsample(call.node, call.outputs[0], call.inputs[0]);
  const float* dy = call.inputs[0].as<const float>();
  float* dx = call.outputs[0].as<float>();
  spans_for(
      exec, u.samples * u.in[0], u.channels, 4 * u.out[1], "soybean::upsample_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const std::int64_t h = row % u.in[0], image = row / u.in[0] * u.out[0];
        float* to = dx + row * u.in[1] * u.channels + begin;
        for (std::int64_t w = 0; w < u.in[1]; ++w)
          for (int c = 0; c < width; ++c) to[w * u.channels + c] = 0;
        const Range rows = touched(u, 0, h);
        for (std::int64_t oh = rows.begin; oh < rows.end; ++oh) {
          const Taps t = taps(u, 0, oh);
          const double weight = (t.first == h ? 1 - t.weight : 0) + (t.second == h ? t.weight : 0);
          if (weight == 0) continue;
          const float* from = dy + (image + oh) * u.out[1] * u.channels + begin;
          for (std::int64_t o = 0; o < u.out[1]; ++o, from += u.channels) {
            const Taps w = taps(u, 1, o);
            const auto l = static_cast<float>(weight * (1 - w.weight)), r = static_cast<float>(weight * w.weight);
            float *left = to + w.first * u.channels, *right = to + w.second * u.channels;
#pragma omp simd
            for (int c = 0; c < width; ++c) left[c] += l * from[c];
            if (w.weight == 0) continue;
#pragma omp simd
            for (int c = 0; c < width; ++c) right[c] += r * from[c];
          }
        }
      });
}

} // namespace soybean::kernels
