// Images of another size in f64 on the host: each pixel of y from (or to) the four it is made of.
#include "kernels/layout.hpp"
#include "kernels/upsample.hpp"

namespace soybean::kernels::reference {

namespace {

/// f(place in y, place in x, weight) for every pixel and tap.
template<class F>
void each_tap(const Upsample& u, const TensorView& x, const TensorView& y, F f) {
  for (std::int64_t b = 0; b < u.samples; ++b)
    for (std::int64_t c = 0; c < u.channels; ++c)
      for (std::int64_t oh = 0; oh < u.out[0]; ++oh)
        for (std::int64_t ow = 0; ow < u.out[1]; ++ow) {
          const Taps h = taps(u, 0, oh), w = taps(u, 1, ow);
          const std::int64_t to = physical_offset(y, {b, c, oh, ow});
          const auto tap = [&](std::int64_t row, std::int64_t column, double weight) {
            if (weight != 0) f(to, physical_offset(x, {b, c, row, column}), weight);
          };
          tap(h.first, w.first, (1 - h.weight) * (1 - w.weight));
          tap(h.first, w.second, (1 - h.weight) * w.weight);
          tap(h.second, w.first, h.weight * (1 - w.weight));
          tap(h.second, w.second, h.weight * w.weight);
        }
}

} // namespace

void run_upsample(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  for (std::int64_t i = 0; i < y.size(); ++i) y.as<double>()[i] = 0;
  each_tap(make_upsample(call.node, x, y), x, y, [&](std::int64_t to, std::int64_t from, double weight) {
    y.as<double>()[to] += weight * x.as<double>()[from];
  });
}

void run_upsample_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  expect(dy, DType::f64);
  expect(dx, DType::f64);
  for (std::int64_t i = 0; i < dx.size(); ++i) dx.as<double>()[i] = 0;
  each_tap(make_upsample(call.node, dx, dy), dx, dy, [&](std::int64_t from, std::int64_t to, double weight) {
    dx.as<double>()[to] += weight * dy.as<double>()[from];
  });
}

} // namespace soybean::kernels::reference
