// Pooling in f64 on the host: every window position is visited and asked whether it lies inside the image.
#include "kernels/layout.hpp"
#include "kernels/pool.hpp"

#include <cmath>
#include <limits>

namespace soybean::kernels::reference {

namespace {

/// Element [b, c, h, w] of NHWC images of that size.
std::int64_t at(const Pool& p, const std::int64_t (&size)[2], std::int64_t b, std::int64_t c, std::int64_t h,
                std::int64_t w) {
  return ((b * size[0] + h) * size[1] + w) * p.channels + c;
}

/// f(index in y, b, c, first h, first w) for every window; it may begin in the padding.
template<class F>
void each_window(const Pool& p, F f) {
  for (std::int64_t b = 0; b < p.samples; ++b)
    for (std::int64_t oh = 0; oh < p.out[0]; ++oh)
      for (std::int64_t ow = 0; ow < p.out[1]; ++ow)
        for (std::int64_t c = 0; c < p.channels; ++c)
          f(at(p, p.out, b, c, oh, ow), b, c, oh * p.stride[0] - p.padding[0], ow * p.stride[1] - p.padding[1]);
}

/// f(index in x) for every position of a window that lies inside the image, row by row.
template<class F>
void each_position(const Pool& p, std::int64_t b, std::int64_t c, std::int64_t h0, std::int64_t w0, F f) {
  const std::int64_t h1 = h0 + p.dilation[0] * p.kernel[0], w1 = w0 + p.dilation[1] * p.kernel[1];
  for (std::int64_t h = h0; h < h1; h += p.dilation[0])
    for (std::int64_t w = w0; w < w1; w += p.dilation[1])
      if (h >= 0 && h < p.in[0] && w >= 0 && w < p.in[1]) f(at(p, p.in, b, c, h, w));
}

/// Index of the first maximum of a window; the last NaN if there is one.
std::int64_t place_of_maximum(const Pool& p, const double* x, std::int64_t b, std::int64_t c, std::int64_t h0,
                              std::int64_t w0) {
  std::int64_t place = -1;
  double best = -std::numeric_limits<double>::infinity();
  each_position(p, b, c, h0, w0, [&](std::int64_t i) {
    if (place < 0 || x[i] > best || std::isnan(x[i])) place = i, best = x[i];
  });
  return place;
}

/// Positions of a window that count: inside the image, or inside the padded one.
double area_of(const Pool& p, std::int64_t h0, std::int64_t w0) {
  std::int64_t count = 0;
  for (std::int64_t h = h0; h < h0 + p.kernel[0]; ++h)
    for (std::int64_t w = w0; w < w0 + p.kernel[1]; ++w) {
      const std::int64_t height = p.in[0] + p.after[0], width = p.in[1] + p.after[1];
      const bool image = h >= -p.before[0] && h < height && w >= -p.before[1] && w < width;
      const bool padded = h < height + p.end_padding[0] && w < width + p.end_padding[1];
      if (p.count_padding ? padded : image) ++count;
    }
  return static_cast<double>(count);
}

void average(const Pool& p, const TensorView& x, const TensorView& y) {
  expect(x, DType::f64);
  expect(y, DType::f64);
  each_window(p, [&](std::int64_t o, std::int64_t b, std::int64_t c, std::int64_t h0, std::int64_t w0) {
    double sum = 0;
    each_position(p, b, c, h0, w0, [&](std::int64_t i) { sum += x.as<double>()[i]; });
    y.as<double>()[o] = sum / area_of(p, h0, w0);
  });
}

void average_grad(const Pool& p, const TensorView& dy, const TensorView& dx) {
  expect(dy, DType::f64);
  expect(dx, DType::f64);
  for (std::int64_t i = 0; i < dx.size(); ++i) dx.as<double>()[i] = 0;
  each_window(p, [&](std::int64_t o, std::int64_t b, std::int64_t c, std::int64_t h0, std::int64_t w0) {
    const double share = dy.as<double>()[o] / area_of(p, h0, w0);
    each_position(p, b, c, h0, w0, [&](std::int64_t i) { dx.as<double>()[i] += share; });
  });
}

} // namespace

void run_max_pool(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  const Pool p = make_pool(call.node, x, y);
  each_window(p, [&](std::int64_t o, std::int64_t b, std::int64_t c, std::int64_t h0, std::int64_t w0) {
    y.as<double>()[o] = x.as<double>()[place_of_maximum(p, x.as<double>(), b, c, h0, w0)];
  });
}

void run_max_pool_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  expect(dy, DType::f64);
  expect(x, DType::f64);
  const Pool p = make_pool(call.node, x, dy);
  const PoolPart part = part_of(x, dx);
  for (std::int64_t i = 0; i < dx.size(); ++i) dx.as<double>()[i] = 0;
  each_window(p, [&](std::int64_t o, std::int64_t b, std::int64_t c, std::int64_t h0, std::int64_t w0) {
    const std::int64_t pixel = place_of_maximum(p, x.as<double>(), b, c, h0, w0) / p.channels;
    const std::int64_t w = pixel % p.in[1] - part.begin[1], h = pixel / p.in[1] % p.in[0] - part.begin[0];
    if (h < 0 || h >= part.extent[0] || w < 0 || w >= part.extent[1]) return;
    dx.as<double>()[at(p, part.extent, b, c, h, w)] += dy.as<double>()[o];
  });
}

void run_avg_pool(const Exec&, const Call& call) {
  average(make_pool(call.node, call.inputs[0], call.outputs[0]), call.inputs[0], call.outputs[0]);
}
void run_avg_pool_grad(const Exec&, const Call& call) {
  average_grad(make_pool(call.node, call.outputs[0], call.inputs[0]), call.inputs[0], call.outputs[0]);
}
void run_global_avg_pool(const Exec&, const Call& call) {
  average(make_global_pool(call.inputs[0], call.outputs[0]), call.inputs[0], call.outputs[0]);
}
void run_global_avg_pool_grad(const Exec&, const Call& call) {
  average_grad(make_global_pool(call.outputs[0], call.inputs[0]), call.inputs[0], call.outputs[0]);
}

} // namespace soybean::kernels::reference
