// Pooling kernels, f32, NHWC. For X elements of the larger images, Y of the smaller and windows of K positions:
// max_pool and avg_pool move 4(X + Y) bytes and take K·Y flops; max_pool_grad moves 4(2X + Y) bytes and takes about
// 2K·Y·⌈kernel/stride⌉ flops, since every row of x redoes the windows that touch it; avg_pool_grad moves 4(X + Y) bytes
// and takes K·Y flops.
// On accelerators the vendor library does those forward passes that it defines alike: no dilation, equal paddings, no
// window beyond them. The gradients are always ours: cuDNN does not say which of several equal maxima gets the gradient
// (PyTorch and we: the first), and asks for x and y for an average's, which nothing else needs by then.
// Work is one row of images × a span of channels. The gradients write row by row of dx, so rows are independent and
// sums have a fixed order.
#include "kernels/pool.hpp"

#include "device/dnn.hpp"
#include "kernels/layout.hpp"
#include "kernels/spans.hpp"

#include <limits>

namespace soybean::kernels {

namespace {

/// Positions begin, begin + step, … < end: those of window `i` inside the image (along axis 0: height, 1: width).
struct Range {
  std::int64_t begin, end, step = 1;
};
KOKKOS_INLINE_FUNCTION Range window(const Pool& p, int axis, std::int64_t i) {
  const std::int64_t step = p.dilation[axis], reach = step * (p.kernel[axis] - 1) + 1;
  std::int64_t first = i * p.stride[axis] - p.padding[axis];
  const std::int64_t last = first + reach;
  if (first < 0) first = step == 1 ? 0 : first + (step - 1 - first) / step * step;
  return {first, last < p.in[axis] ? last : p.in[axis], step};
}

/// The windows that reach over position `i` of the image.
KOKKOS_INLINE_FUNCTION Range windows_at(const Pool& p, int axis, std::int64_t i) {
  const std::int64_t reach = i + p.padding[axis] - (p.dilation[axis] * (p.kernel[axis] - 1) + 1);
  const std::int64_t begin = reach < 0 ? 0 : reach / p.stride[axis] + 1;
  const std::int64_t end = i + p.padding[axis] < 0 ? 0 : (i + p.padding[axis]) / p.stride[axis] + 1;
  return {begin, end < p.out[axis] ? end : p.out[axis]};
}

/// By how much avg_pool divides window `i` along an axis.
KOKKOS_INLINE_FUNCTION std::int64_t counted(const Pool& p, int axis, std::int64_t i) {
  const std::int64_t first = i * p.stride[axis] - p.padding[axis], last = first + p.kernel[axis];
  const std::int64_t begin = p.count_padding || first > -p.before[axis] ? first : -p.before[axis];
  const std::int64_t most = p.in[axis] + p.after[axis] + (p.count_padding ? p.end_padding[axis] : 0);
  return (last < most ? last : most) - begin;
}

/// The first element of row h of sample b.
KOKKOS_INLINE_FUNCTION std::int64_t image_row(const Pool& p, const std::int64_t (&size)[2], std::int64_t b,
                                              std::int64_t h) {
  return (b * size[0] + h) * size[1] * p.channels;
}

/// Whether the vendor library has pooled x into y.
bool is_done_by_library(const Exec& exec, const Pool& p, device::PoolKind kind, const float* x, float* y) {
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t room = p.in[axis] + p.padding[axis] + p.end_padding[axis] - p.kernel[axis];
    if (p.dilation[axis] != 1 || p.padding[axis] != p.end_padding[axis] || p.out[axis] != room / p.stride[axis] + 1 ||
        p.before[axis] + p.after[axis] > 0)
      return false;
  }
  return device::pool(exec,
                      {.kind = kind,
                       .batch = p.samples,
                       .channels = p.channels,
                       .height = p.in[0],
                       .width = p.in[1],
                       .kernel_h = p.kernel[0],
                       .kernel_w = p.kernel[1],
                       .stride_h = p.stride[0],
                       .stride_w = p.stride[1],
                       .padding_h = p.padding[0],
                       .padding_w = p.padding[1]},
                      x, y);
}

std::int64_t image_rows_work(const Pool& p) {
  return p.out[1] * p.kernel[0] * p.kernel[1];
}

} // namespace

Pool make_pool(const graph::Node& node, const TensorView& x, const TensorView& y) {
  Pool p = make_global_pool(x, y);
  for (int axis = 0; axis < 2; ++axis) {
    const int dim = 2 + axis;
    p.kernel[axis] = node.attributes.integers("kernel").at(axis);
    p.stride[axis] = node.attributes.integers("stride").at(axis);
    const auto& padding = node.attributes.integers("padding");
    p.padding[axis] = padding.at(axis);
    p.end_padding[axis] = padding.at(padding.size() - 2 + axis);
    if (node.attributes.has("dilation")) p.dilation[axis] = node.attributes.integers("dilation").at(axis);
    const bool ceil = node.attributes.has("ceil_mode") && node.attributes.integer("ceil_mode") == 1;
    const std::int64_t reach = p.dilation[axis] * (p.kernel[axis] - 1) + 1, stride = p.stride[axis];
    const std::int64_t room = x.global[dim] + p.padding[axis] + p.end_padding[axis] - reach, windows = y.global[dim];
    ensure(p.padding[axis] < reach && stride >= 1, node.name + ": windows in the padding alone");
    ensure(windows == room / stride + 1 || (ceil && windows == (room + stride - 1) / stride + 1),
           node.name + ": pooled image has another size");
    p.padding[axis] += x.box.offsets[dim] - y.box.offsets[dim] * stride;
  }
  if (node.attributes.has("count_include_pad")) p.count_padding = node.attributes.integer("count_include_pad") == 1;
  return p;
}

Pool make_global_pool(const TensorView& x, const TensorView& y) {
  ensure(x.box.extents.size() == 4 && y.box.extents.size() == 4, "pooling needs images");
  channel_rows(x);
  channel_rows(y);
  Pool p;
  p.samples = x.extent(0);
  p.channels = x.extent(1);
  ensure(p.samples == y.extent(0) && p.channels == y.extent(1), "pooling: blocks differ");
  for (int axis = 0; axis < 2; ++axis) {
    const int dim = 2 + axis;
    p.kernel[axis] = x.global[dim];
    p.in[axis] = x.extent(dim);
    p.out[axis] = y.extent(dim);
    p.padding[axis] = p.before[axis] = x.box.offsets[dim]; // where the window, all of the image, begins
    p.after[axis] = x.global[dim] - x.box.offsets[dim] - x.extent(dim);
  }
  return p;
}

PoolPart part_of(const TensorView& x, const TensorView& dx) {
  PoolPart part;
  for (int axis = 0; axis < 2; ++axis) {
    part.begin[axis] = dx.box.offsets[2 + axis] - x.box.offsets[2 + axis];
    part.extent[axis] = dx.extent(2 + axis);
  }
  return part;
}

void max_pool(const Exec& exec, const Pool& p, const float* x, float* y) {
  if (is_done_by_library(exec, p, device::PoolKind::max, x, y)) return;
  spans_for(
      exec, p.samples * p.out[0], p.channels, image_rows_work(p), "soybean::max_pool",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const std::int64_t b = row / p.out[0];
        const Range hs = window(p, 0, row % p.out[0]);
        float* to = y + row * p.out[1] * p.channels + begin;
        for (std::int64_t ow = 0; ow < p.out[1]; ++ow, to += p.channels) {
          const Range ws = window(p, 1, ow);
          float best[span_width];
          for (int c = 0; c < width; ++c) best[c] = -std::numeric_limits<float>::infinity();
          for (std::int64_t h = hs.begin; h < hs.end; h += hs.step)
            for (std::int64_t w = ws.begin; w < ws.end; w += ws.step) {
              const float* from = x + image_row(p, p.in, b, h) + w * p.channels + begin;
#pragma omp simd
              for (int c = 0; c < width; ++c) {
                const float value = from[c], old = best[c];
                best[c] = (value > old) | (value != value) ? value : old;
              }
            }
          for (int c = 0; c < width; ++c) to[c] = best[c];
        }
      });
}

void max_pool_grad(const Exec& exec, const Pool& p, const float* dy, const float* x, float* dx) {
  max_pool_grad(exec, p, {.begin = {0, 0}, .extent = {p.in[0], p.in[1]}}, dy, x, dx);
}

void max_pool_grad(const Exec& exec, const Pool& p, const PoolPart& part, const float* dy, const float* x, float* dx) {
  const PoolPart wanted = part;
  spans_for(
      exec, p.samples * wanted.extent[0], p.channels, image_rows_work(p), "soybean::max_pool_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const std::int64_t b = row / wanted.extent[0], ih = wanted.begin[0] + row % wanted.extent[0];
        float* to = dx + row * wanted.extent[1] * p.channels + begin;
        for (std::int64_t w = 0; w < wanted.extent[1]; ++w)
          for (int c = 0; c < width; ++c) to[w * p.channels + c] = 0;
        const Range ohs = windows_at(p, 0, ih);
        for (std::int64_t oh = ohs.begin; oh < ohs.end; ++oh) {
          const Range hs = window(p, 0, oh);
          for (std::int64_t ow = 0; ow < p.out[1]; ++ow) {
            const Range ws = window(p, 1, ow);
            float best[span_width];
            std::int32_t place[span_width]; // of the first maximum, h·W + w
            for (int c = 0; c < width; ++c) {
              best[c] = -std::numeric_limits<float>::infinity();
              place[c] = static_cast<std::int32_t>(hs.begin * p.in[1] + ws.begin);
            }
            for (std::int64_t h = hs.begin; h < hs.end; h += hs.step)
              for (std::int64_t w = ws.begin; w < ws.end; w += ws.step) {
                const float* from = x + image_row(p, p.in, b, h) + w * p.channels + begin;
                const auto here = static_cast<std::int32_t>(h * p.in[1] + w);
#pragma omp simd
                for (int c = 0; c < width; ++c) {
                  const float value = from[c], old = best[c];
                  const std::int32_t old_place = place[c];
                  const bool wins = (value > old) | (value != value);
                  best[c] = wins ? value : old;
                  place[c] = wins ? here : old_place;
                }
              }
            const float* above = dy + image_row(p, p.out, b, oh) + ow * p.channels + begin;
            for (std::int64_t w = ws.begin; w < ws.end; w += ws.step) {
              if (w < wanted.begin[1] || w >= wanted.begin[1] + wanted.extent[1]) continue;
              const auto here = static_cast<std::int32_t>(ih * p.in[1] + w);
              float* sum = to + (w - wanted.begin[1]) * p.channels;
#pragma omp simd
              for (int c = 0; c < width; ++c) {
                const float old = sum[c], term = above[c];
                sum[c] = old + (place[c] == here ? term : 0.0f);
              }
            }
          }
        }
      });
}

void avg_pool(const Exec& exec, const Pool& p, const float* x, float* y) {
  const auto kind = p.count_padding ? device::PoolKind::average : device::PoolKind::average_in_image;
  if (is_done_by_library(exec, p, kind, x, y)) return;
  spans_for(
      exec, p.samples * p.out[0], p.channels, image_rows_work(p), "soybean::avg_pool",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const std::int64_t b = row / p.out[0];
        const Range hs = window(p, 0, row % p.out[0]);
        const std::int64_t height = counted(p, 0, row % p.out[0]);
        float* to = y + row * p.out[1] * p.channels + begin;
        for (std::int64_t ow = 0; ow < p.out[1]; ++ow, to += p.channels) {
          const Range ws = window(p, 1, ow);
          const float scale = 1.0f / static_cast<float>(height * counted(p, 1, ow));
          float sum[span_width];
          for (int c = 0; c < width; ++c) sum[c] = 0;
          for (std::int64_t h = hs.begin; h < hs.end; h += hs.step)
            for (std::int64_t w = ws.begin; w < ws.end; w += ws.step) {
              const float* from = x + image_row(p, p.in, b, h) + w * p.channels + begin;
#pragma omp simd
              for (int c = 0; c < width; ++c) sum[c] += from[c];
            }
          for (int c = 0; c < width; ++c) to[c] = sum[c] * scale;
        }
      });
}

void avg_pool_grad(const Exec& exec, const Pool& p, const float* dy, float* dx) {
  spans_for(
      exec, p.samples * p.in[0], p.channels, image_rows_work(p), "soybean::avg_pool_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t begin, int width) {
        const std::int64_t b = row / p.in[0], ih = row % p.in[0];
        float* to = dx + row * p.in[1] * p.channels + begin;
        for (std::int64_t w = 0; w < p.in[1]; ++w)
          for (int c = 0; c < width; ++c) to[w * p.channels + c] = 0;
        const Range ohs = windows_at(p, 0, ih);
        for (std::int64_t oh = ohs.begin; oh < ohs.end; ++oh)
          for (std::int64_t ow = 0; ow < p.out[1]; ++ow) {
            const Range ws = window(p, 1, ow);
            const float scale = 1.0f / static_cast<float>(counted(p, 0, oh) * counted(p, 1, ow));
            const float* above = dy + image_row(p, p.out, b, oh) + ow * p.channels + begin;
            for (std::int64_t w = ws.begin; w < ws.end; w += ws.step) {
              float* sum = to + w * p.channels;
#pragma omp simd
              for (int c = 0; c < width; ++c) sum[c] += above[c] * scale;
            }
          }
      });
}

void run_max_pool(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  max_pool(exec, make_pool(call.node, x, y), x.as<float>(), y.as<float>());
}
void run_max_pool_grad(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  expect(dy, DType::f32);
  expect(x, DType::f32);
  expect(x, DType::f32);
  max_pool_grad(exec, make_pool(call.node, x, dy), part_of(x, dx), dy.as<float>(), x.as<float>(), dx.as<float>());
}
void run_avg_pool(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  avg_pool(exec, make_pool(call.node, x, y), x.as<float>(), y.as<float>());
}
void run_avg_pool_grad(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  expect(dy, DType::f32);
  expect(dx, DType::f32);
  avg_pool_grad(exec, make_pool(call.node, dx, dy), dy.as<float>(), dx.as<float>());
}
void run_global_avg_pool(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  avg_pool(exec, make_global_pool(x, y), x.as<float>(), y.as<float>());
}
void run_global_avg_pool_grad(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  expect(dy, DType::f32);
  expect(dx, DType::f32);
  avg_pool_grad(exec, make_global_pool(dx, dy), dy.as<float>(), dx.as<float>());
}

} // namespace soybean::kernels
