// Batch normalisation, f32; sums in double. A block of R rows of C channels: mean and variance read 4RC bytes each,
// normalising moves 8RC, the two sums of backward read 8RC, the gradient moves 12RC; 1 to 5 flops per element each.
// What depends on the channel alone is worked out once, into scratch.
#include "kernels/batch_norm.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/rows.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

/// A vector with one value per channel of the block `x`.
const float* per_channel(const TensorView& x, const TensorView& vector) {
  expect(vector, DType::f32);
  ensure(vector.size() == x.extent(1), "statistics and channels differ");
  return vector.as<const float>();
}

float eps_of(const Call& call) {
  return static_cast<float>(call.node.attributes.real("eps"));
}

} // namespace

std::int64_t values_per_channel(const TensorView& x) {
  return volume(x.global) / x.global[1];
}

void run_channel_mean(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &mean = call.outputs[0];
  expect(x, DType::f32);
  const auto [rows, channels] = channel_rows(x);
  per_channel(x, mean);
  const float* from = x.as<const float>();
  float* to = mean.as<float>();
  const std::int64_t stride = channels;
  const double share = 1.0 / static_cast<double>(values_per_channel(x));
  device::channel_sums(
      exec, rows, channels, call.scratch, "soybean::channel_mean",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return from[row * stride + c]; },
      KOKKOS_LAMBDA(std::int64_t c, double sum) { to[c] = static_cast<float>(sum * share); });
}

void run_channel_variance(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &variance = call.outputs[0];
  expect(x, DType::f32);
  const auto [rows, channels] = channel_rows(x);
  per_channel(x, variance);
  const float *from = x.as<const float>(), *mean = per_channel(x, call.inputs[1]);
  float* to = variance.as<float>();
  const std::int64_t stride = channels;
  const double share = 1.0 / static_cast<double>(values_per_channel(x));
  device::channel_sums(
      exec, rows, channels, call.scratch, "soybean::channel_variance",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const float d = from[row * stride + c] - mean[c];
        return d * d;
      },
      KOKKOS_LAMBDA(std::int64_t c, double sum) { to[c] = static_cast<float>(sum * share); });
}

std::int64_t scratch_channel_mean(const Exec& exec, const Call& call) {
  const auto [rows, channels] = channel_rows(call.inputs[0]);
  return device::channel_sums_scratch(exec, rows, channels);
}

void run_batch_norm(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect_alike(x, y);
  const auto [rows, channels] = channel_rows(x);
  const bool affine = call.inputs.size() == 5;
  const float *mean = per_channel(x, call.inputs[1]), *variance = per_channel(x, call.inputs[2]);
  const float* weight = affine ? per_channel(x, call.inputs[3]) : nullptr;
  const float* bias = affine ? per_channel(x, call.inputs[4]) : nullptr;
  auto *scale = static_cast<float*>(call.scratch), *shift = scale + channels;
  const float eps = eps_of(call);
  device::flat_for(
      exec, channels, "soybean::batch_norm::scale", KOKKOS_LAMBDA(std::int64_t c) {
        scale[c] = (weight ? weight[c] : 1.0f) / device::math::sqrt(variance[c] + eps);
        shift[c] = bias ? bias[c] : 0.0f;
      });
  const float* from = x.as<const float>();
  float* to = y.as<float>();
  const std::int64_t stride = channels;
  device::rows_for(
      exec, rows, channels, "soybean::batch_norm", KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        to[row * stride + c] = (from[row * stride + c] - mean[c]) * scale[c] + shift[c];
      });
}

std::int64_t scratch_batch_norm(const Exec&, const Call& call) {
  return 2 * channel_rows(call.inputs[0]).channels * static_cast<std::int64_t>(sizeof(float));
}

void run_batch_norm_sums(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1];
  expect(x, DType::f32);
  expect_alike(dy, x);
  const auto [rows, channels] = channel_rows(x);
  const float *gradient = dy.as<const float>(), *from = x.as<const float>();
  const float *mean = per_channel(x, call.inputs[2]), *variance = per_channel(x, call.inputs[3]);
  per_channel(x, call.outputs[0]), per_channel(x, call.outputs[1]);
  float *sum = call.outputs[0].as<float>(), *projection = call.outputs[1].as<float>();
  const float eps = eps_of(call);
  const std::int64_t stride = channels;
  device::channel_pair_sums(
      exec, rows, channels, call.scratch, "soybean::batch_norm_sums",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return gradient[row * stride + c]; },
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        return gradient[row * stride + c] * (from[row * stride + c] - mean[c]);
      },
      KOKKOS_LAMBDA(std::int64_t c, double first, double second) {
        sum[c] = static_cast<float>(first);
        projection[c] = static_cast<float>(
            second / device::math::sqrt(static_cast<double>(variance[c]) + static_cast<double>(eps)));
      });
}

std::int64_t scratch_batch_norm_sums(const Exec& exec, const Call& call) {
  const auto [rows, channels] = channel_rows(call.inputs[0]);
  return device::channel_pair_sums_scratch(exec, rows, channels);
}

void run_batch_norm_grad(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  expect(x, DType::f32);
  expect_alike(dy, x);
  expect_alike(dy, dx);
  const auto [rows, channels] = channel_rows(x);
  const float *mean = per_channel(x, call.inputs[2]), *variance = per_channel(x, call.inputs[3]);
  const float *sum = per_channel(x, call.inputs[4]), *projection = per_channel(x, call.inputs[5]);
  const float* weight = call.inputs.size() == 7 ? per_channel(x, call.inputs[6]) : nullptr;
  auto *scale = static_cast<float*>(call.scratch), *constant = scale + channels, *slope = constant + channels;
  const float eps = eps_of(call), share = 1.0f / static_cast<float>(values_per_channel(x));
  device::flat_for(
      exec, channels, "soybean::batch_norm_grad::scale", KOKKOS_LAMBDA(std::int64_t c) {
        const float r = 1.0f / device::math::sqrt(variance[c] + eps);
        scale[c] = (weight ? weight[c] : 1.0f) * r;
        constant[c] = sum[c] * share;
        slope[c] = projection[c] * share * r;
      });
  const float *gradient = dy.as<const float>(), *from = x.as<const float>();
  float* to = dx.as<float>();
  const std::int64_t stride = channels;
  device::rows_for(
      exec, rows, channels, "soybean::batch_norm_grad", KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const float g = gradient[row * stride + c], d = from[row * stride + c] - mean[c];
        to[row * stride + c] = scale[c] * ((g - constant[c]) - d * slope[c]);
      });
}

std::int64_t scratch_batch_norm_grad(const Exec&, const Call& call) {
  return 3 * channel_rows(call.inputs[0]).channels * static_cast<std::int64_t>(sizeof(float));
}

void run_running_average(const Exec& exec, const Call& call) {
  const double momentum = call.node.attributes.real("momentum");
  const auto keep = static_cast<float>(1 - momentum);
  const auto take = static_cast<float>(momentum * call.node.attributes.real("factor"));
  binary(
      exec, "soybean::running_average", KOKKOS_LAMBDA(float old, float value) { return keep * old + take * value; },
      call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels
