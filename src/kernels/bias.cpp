// Bias kernels, f32. A block of R rows of C channels: bias moves 8RC bytes and takes RC flops; bias_grad reads 4RC
// bytes and takes RC flops, in double.
#include "kernels/bias.hpp"

#include "device/reduce.hpp"
#include "device/rows.hpp"
#include "kernels/formulas.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

struct Same {
  KOKKOS_INLINE_FUNCTION float operator()(float x) const { return x; }
};

/// y[b, c, …] = f(x[b, c, …] + bias[c])
template<class F>
void biased(const Exec& exec, const char* label, F f, const TensorView& x, const TensorView& bias,
            const TensorView& y) {
  expect(x, DType::f32);
  expect(bias, DType::f32);
  expect_alike(x, y);
  const auto [rows, channels] = channel_rows(x);
  ensure(bias.size() == channels, "bias and channels differ");
  const float *from = x.as<const float>(), *shift = bias.as<const float>();
  float* to = y.as<float>();
  const std::int64_t stride = channels;
  device::rows_for(
      exec, rows, channels, label,
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { to[row * stride + c] = f(from[row * stride + c] + shift[c]); });
}

} // namespace

void bias(const Exec& exec, const TensorView& x, const TensorView& bias, const TensorView& y) {
  biased(exec, "soybean::bias", Same{}, x, bias, y);
}

void bias_relu(const Exec& exec, const TensorView& x, const TensorView& bias, const TensorView& y) {
  biased(exec, "soybean::bias_relu", formulas::Relu{}, x, bias, y);
}

void bias_grad(const Exec& exec, const TensorView& dy, const TensorView& dbias, void* scratch) {
  expect(dy, DType::f32);
  expect(dbias, DType::f32);
  const auto [rows, channels] = channel_rows(dy);
  ensure(dbias.size() == channels, "bias and channels differ");
  const float* from = dy.as<const float>();
  float* to = dbias.as<float>();
  const std::int64_t stride = channels;
  device::channel_sums(
      exec, rows, channels, scratch, "soybean::bias_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return from[row * stride + c]; },
      KOKKOS_LAMBDA(std::int64_t c, double sum) { to[c] = static_cast<float>(sum); });
}

std::int64_t bias_grad_scratch(const Exec& exec, const TensorView& dy) {
  const auto [rows, channels] = channel_rows(dy);
  return device::channel_sums_scratch(exec, rows, channels);
}

void run_bias(const Exec& exec, const Call& call) {
  bias(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_bias_grad(const Exec& exec, const Call& call) {
  bias_grad(exec, call.inputs[0], call.outputs[0], call.scratch);
}
std::int64_t scratch_bias_grad(const Exec& exec, const Call& call) {
  return bias_grad_scratch(exec, call.inputs[0]);
}

} // namespace soybean::kernels
