#include "kernels/pad.hpp"

#include "device/rows.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

/// Images of two sizes: pixel (h, w) of the smaller is pixel (h + top, w + left) of the larger.
struct Frame {
  std::int64_t samples, channels, inner_h, inner_w, outer_h, outer_w, top, left;
};

Frame frame_of(const graph::Node& node, const TensorView& inner, const TensorView& outer) {
  channel_rows(inner); // check that they are images
  channel_rows(outer);
  expect(inner, DType::f32);
  expect(outer, DType::f32);
  const auto& padding = node.attributes.integers("padding");
  const Frame f{inner.extent(0), inner.extent(1), inner.extent(2), inner.extent(3),
                outer.extent(2), outer.extent(3), padding.at(0),   padding.at(1)};
  ensure(outer.extent(0) == f.samples && outer.extent(1) == f.channels &&
             f.inner_h + f.top + padding.at(2) == f.outer_h && f.inner_w + f.left + padding.at(3) == f.outer_w,
         node.name + ": blocks do not fit together");
  return f;
}

} // namespace

void run_pad(const Exec& exec, const Call& call) {
  const Frame f = frame_of(call.node, call.inputs[0], call.outputs[0]);
  const float* x = call.inputs[0].as<const float>();
  float* y = call.outputs[0].as<float>();
  if (f.inner_h * f.inner_w == 0) return; // then so is the block
  device::rows_for(
      exec, f.samples * f.outer_h * f.outer_w, f.channels, "soybean::pad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t channel) {
        const std::int64_t w = row % f.outer_w - f.left, image_row = row / f.outer_w;
        const std::int64_t h = image_row % f.outer_h - f.top, b = image_row / f.outer_h;
        const bool inside = h >= 0 && h < f.inner_h && w >= 0 && w < f.inner_w;
        const std::int64_t from = inside ? ((b * f.inner_h + h) * f.inner_w + w) * f.channels : 0;
        const float value = x[from + channel];
        y[row * f.channels + channel] = inside ? value : 0.0f;
      });
}

void run_pad_grad(const Exec& exec, const Call& call) {
  const Frame f = frame_of(call.node, call.outputs[0], call.inputs[0]);
  const float* dy = call.inputs[0].as<const float>();
  float* dx = call.outputs[0].as<float>();
  const std::int64_t width = f.inner_w * f.channels;
  device::rows_for(
      exec, f.samples * f.inner_h, width, "soybean::pad_grad", KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) {
        const std::int64_t h = row % f.inner_h + f.top, b = row / f.inner_h;
        dx[row * width + i] = dy[((b * f.outer_h + h) * f.outer_w + f.left) * f.channels + i];
      });
}

} // namespace soybean::kernels
