#include "kernels/conv2d_reference.hpp"

#include "device/rows.hpp"
#include "kernels/conv2d.hpp"
#include "kernels/gemm_reference.hpp"
#include "kernels/layout.hpp"

#include <omp.h>

#include <algorithm>

namespace soybean::kernels::reference {

namespace {

using device::Conv;
using device::ConvPass;

constexpr std::int64_t position_tile = 64; ///< positions computed together
constexpr std::int64_t sum_tile = 256;     ///< positions summed together by the gradient of the weights
constexpr std::int64_t patch_block = 64;   ///< rows of that gradient computed together

/// A pass seen as "result position ← patches of source": forward reads patches of x, backward data of dy.
struct Patches {
  std::int64_t batch, groups;
  std::int64_t source_h, source_w, source_c; ///< of the source, channels of one group
  std::int64_t result_h, result_w, result_c; ///< of the result, channels of one group
  std::int64_t kernel_h, kernel_w;
  bool transposed; ///< backward data: the source's positions are divided by the stride instead of multiplied

  std::int64_t positions() const { return batch * result_h * result_w; }
  std::int64_t patch() const { return kernel_h * kernel_w * source_c; } ///< in the order [r][s][c]
};

Patches forward_patches(const Conv& c) {
  return {c.batch,
          c.groups,
          c.height,
          c.width,
          c.in_channels / c.groups,
          c.out_height(),
          c.out_width(),
          c.out_channels / c.groups,
          c.kernel_h,
          c.kernel_w,
          false};
}

Patches backward_patches(const Conv& c) {
  return {c.batch,  c.groups, c.out_height(),           c.out_width(), c.out_channels / c.groups,
          c.height, c.width,  c.in_channels / c.groups, c.kernel_h,    c.kernel_w,
          true};
}

/// Where kernel position r reads the source for result position i, or -1.
std::int64_t source_position(bool transposed, std::int64_t i, std::int64_t r, std::int64_t stride, std::int64_t padding,
                             std::int64_t dilation, std::int64_t extent) {
  if (!transposed) {
    const std::int64_t at = i * stride - padding + r * dilation;
    return at >= 0 && at < extent ? at : -1;
  }
  const std::int64_t at = i + padding - r * dilation;
  return at >= 0 && at % stride == 0 && at / stride < extent ? at / stride : -1;
}

/// Fills rows [count][end - begin] with terms [begin, end) of the patches of result positions first, first + 1, …;
/// zeros where they reach over the edge.
template<class T>
void gather(const Conv& c, const Patches& p, std::int64_t group, std::int64_t first, std::int64_t count,
            std::int64_t begin, std::int64_t end, const T* source, T* rows) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = first + i, column = position % p.result_w, row = position / p.result_w % p.result_h;
    const T* image = source + position / (p.result_w * p.result_h) * p.source_h * p.source_w * p.source_c * p.groups;
    T* out = rows + i * (end - begin);
    for (std::int64_t k = begin; k < end;) {
      const std::int64_t channel = k % p.source_c, s = k / p.source_c % p.kernel_w, r = k / p.source_c / p.kernel_w;
      const std::int64_t run = std::min(p.source_c - channel, end - k);
      const std::int64_t h = source_position(p.transposed, row, r, c.stride_h, c.padding_h, c.dilation_h, p.source_h);
      const std::int64_t w =
          source_position(p.transposed, column, s, c.stride_w, c.padding_w, c.dilation_w, p.source_w);
      if (h >= 0 && w >= 0)
        std::copy_n(image + ((h * p.source_w + w) * p.groups + group) * p.source_c + channel, run, out);
      else
        std::fill_n(out, run, T(0));
      out += run, k += run;
    }
  }
}

std::int64_t weight_terms(const Patches& p) {
  return p.groups * p.patch() * p.result_c;
}

/// Multiplications of a pass.
std::int64_t work(const Patches& p) {
  return p.positions() * p.groups * p.patch() * p.result_c;
}

/// The weights of all groups as matrices [patch][result channel].
template<class T>
void arrange_weights(const Exec& exec, const Patches& p, const T* w, T* arranged) {
  const int threads = device::threads_for(exec, weight_terms(p));
  const std::int64_t kernel = p.kernel_h * p.kernel_w, patch = p.patch();
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t j = 0; j < p.groups * patch; ++j) {
    const std::int64_t group = j / patch, term = j % patch, source = term % p.source_c, rs = term / p.source_c;
    for (std::int64_t result = 0; result < p.result_c; ++result) {
      const std::int64_t out = p.transposed ? source : result, in = p.transposed ? result : source;
      const std::int64_t outs = p.transposed ? p.source_c : p.result_c, ins = p.transposed ? p.result_c : p.source_c;
      arranged[j * p.result_c + result] = w[((group * outs + out) * ins + in) * kernel + rs];
    }
  }
}

/// Forward and backward data: a tile of result positions at a time.
template<class T>
void multiply_patches(const Exec& exec, const Conv& c, const Patches& p, const T* source, const T* w, T* result,
                      void* scratch) {
  auto* arranged = static_cast<T*>(scratch);
  T* rows_of_all = arranged + weight_terms(p);
  const int threads = device::threads_for(exec, work(p));
  arrange_weights(exec, p, w, arranged);
  const std::int64_t tiles = (p.positions() + position_tile - 1) / position_tile;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t job = 0; job < tiles * p.groups; ++job) {
    const std::int64_t group = job % p.groups, first = job / p.groups * position_tile;
    const std::int64_t count = std::min(position_tile, p.positions() - first);
    T* rows = rows_of_all + omp_get_thread_num() * position_tile * p.patch();
    gather(c, p, group, first, count, 0, p.patch(), source, rows);
    const std::int64_t step = p.groups * p.result_c;
    gemm_reference<T>({count, p.result_c, p.patch()}, {rows, p.patch(), 1},
                      {arranged + group * p.patch() * p.result_c, p.result_c, 1},
                      {result + first * step + group * p.result_c, step, 1}, false);
  }
}

} // namespace

std::int64_t conv_scratch_bytes(const Exec& exec, const Conv& conv, ConvPass pass, std::int64_t element_bytes) {
  if (pass == ConvPass::backward_weights)
    return element_bytes * exec.threads() * patch_block * (sum_tile + conv.out_channels / conv.groups);
  const Patches p = pass == ConvPass::forward ? forward_patches(conv) : backward_patches(conv);
  return element_bytes * (weight_terms(p) + exec.threads() * position_tile * p.patch());
}

template<class T>
void conv_forward(const Exec& exec, const Conv& conv, const T* x, const T* w, T* y, void* scratch) {
  multiply_patches(exec, conv, forward_patches(conv), x, w, y, scratch);
}

template<class T>
void conv_backward_data(const Exec& exec, const Conv& conv, const T* dy, const T* w, T* dx, void* scratch) {
  multiply_patches(exec, conv, backward_patches(conv), dy, w, dx, scratch);
}

template<class T>
void conv_backward_weights(const Exec& exec, const Conv& c, const T* dy, const T* x, T* dw, void* scratch) {
  const Patches p = forward_patches(c);
  const std::int64_t patch = p.patch(), kernel = p.kernel_h * p.kernel_w, outs = p.result_c;
  const int threads = device::threads_for(exec, work(p));
  const std::int64_t blocks = (patch + patch_block - 1) / patch_block;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t job = 0; job < blocks * p.groups; ++job) {
    const std::int64_t group = job % p.groups, begin = job / p.groups * patch_block;
    const std::int64_t end = std::min(patch, begin + patch_block), terms = end - begin;
    T* rows = static_cast<T*>(scratch) + omp_get_thread_num() * patch_block * (sum_tile + outs);
    T* sums = rows + patch_block * sum_tile; // [terms][outs]
    std::fill_n(sums, terms * outs, T(0));
    for (std::int64_t first = 0; first < p.positions(); first += sum_tile) {
      const std::int64_t count = std::min(sum_tile, p.positions() - first);
      gather(c, p, group, first, count, begin, end, x, rows);
      const std::int64_t step = p.groups * outs;
      gemm_reference<T>({terms, outs, count}, {rows, 1, terms}, {dy + first * step + group * outs, step, 1},
                        {sums, outs, 1}, true);
    }
    for (std::int64_t k = 0; k < terms; ++k) {
      const std::int64_t in = (begin + k) % p.source_c, rs = (begin + k) / p.source_c;
      for (std::int64_t out = 0; out < outs; ++out)
        dw[((group * outs + out) * p.source_c + in) * kernel + rs] = sums[k * outs + out];
    }
  }
}

template void conv_forward(const Exec&, const Conv&, const float*, const float*, float*, void*);
template void conv_forward(const Exec&, const Conv&, const double*, const double*, double*, void*);
template void conv_backward_data(const Exec&, const Conv&, const float*, const float*, float*, void*);
template void conv_backward_data(const Exec&, const Conv&, const double*, const double*, double*, void*);
template void conv_backward_weights(const Exec&, const Conv&, const float*, const float*, float*, void*);
template void conv_backward_weights(const Exec&, const Conv&, const double*, const double*, double*, void*);

namespace {

/// What a row of the table hands to a pass.
struct Operands {
  const double *first, *second;
  double* result;
};

Operands operands(const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f64);
  expect(call.outputs[0], DType::f64);
  return {call.inputs[0].as<double>(), call.inputs[1].as<double>(), call.outputs[0].as<double>()};
}

constexpr std::int64_t element = sizeof(double);

} // namespace

void run_conv2d(const Exec& exec, const Call& call) {
  const auto [x, w, y] = operands(call);
  conv_forward(exec, forward_conv(call), x, w, y, call.scratch);
}
void run_conv2d_grad_input(const Exec& exec, const Call& call) {
  const auto [dy, w, dx] = operands(call);
  conv_backward_data(exec, grad_input_conv(call), dy, w, dx, call.scratch);
}
void run_conv2d_grad_weight(const Exec& exec, const Call& call) {
  const auto [dy, x, dw] = operands(call);
  conv_backward_weights(exec, grad_weight_conv(call), dy, x, dw, call.scratch);
}

std::int64_t scratch_conv2d(const Exec& exec, const Call& call) {
  return conv_scratch_bytes(exec, forward_conv(call), ConvPass::forward, element);
}
std::int64_t scratch_conv2d_grad_input(const Exec& exec, const Call& call) {
  return conv_scratch_bytes(exec, grad_input_conv(call), ConvPass::backward_data, element);
}
std::int64_t scratch_conv2d_grad_weight(const Exec& exec, const Call& call) {
  return conv_scratch_bytes(exec, grad_weight_conv(call), ConvPass::backward_weights, element);
}

} // namespace soybean::kernels::reference
