// Padding in f64 on the host: every pixel is asked whether it lies in the frame.
#include "kernels/layout.hpp"
#include "kernels/pad.hpp"

namespace soybean::kernels::reference {

namespace {

/// f(value's place in the larger image, its place in the smaller or none) for every element of the larger.
template<class F>
void each(const Call& call, const TensorView& inner, const TensorView& outer, F f) {
  expect(inner, DType::f64);
  expect(outer, DType::f64);
  const auto& padding = call.node.attributes.integers("padding");
  for (std::int64_t b = 0; b < outer.extent(0); ++b)
    for (std::int64_t c = 0; c < outer.extent(1); ++c)
      for (std::int64_t h = 0; h < outer.extent(2); ++h)
        for (std::int64_t w = 0; w < outer.extent(3); ++w) {
          const Shape at{b, c, h - padding.at(0), w - padding.at(1)};
          const bool inside = at[2] >= 0 && at[2] < inner.extent(2) && at[3] >= 0 && at[3] < inner.extent(3);
          f(physical_offset(outer, {b, c, h, w}), inside ? physical_offset(inner, at) : -1);
        }
}

} // namespace

void run_pad(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  each(call, x, y,
       [&](std::int64_t to, std::int64_t from) { y.as<double>()[to] = from < 0 ? 0 : x.as<double>()[from]; });
}

void run_pad_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  each(call, dx, dy, [&](std::int64_t from, std::int64_t to) {
    if (to >= 0) dx.as<double>()[to] = dy.as<double>()[from];
  });
}

} // namespace soybean::kernels::reference
