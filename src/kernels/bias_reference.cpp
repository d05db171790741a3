// Bias and its gradient in f64 on the host: plain loops.
#include "kernels/bias.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels::reference {

void run_bias(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &bias = call.inputs[1], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(bias, DType::f64);
  expect_alike(x, y);
  const auto [rows, channels] = channel_rows(x);
  ensure(bias.size() == channels, "bias and channels differ");
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; ++c)
      y.as<double>()[row * channels + c] = x.as<double>()[row * channels + c] + bias.as<double>()[c];
}

void run_bias_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &dbias = call.outputs[0];
  expect(dy, DType::f64);
  expect(dbias, DType::f64);
  const auto [rows, channels] = channel_rows(dy);
  ensure(dbias.size() == channels, "bias and channels differ");
  double* sums = dbias.as<double>();
  for (std::int64_t c = 0; c < channels; ++c) sums[c] = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += dy.as<double>()[row * channels + c];
}

} // namespace soybean::kernels::reference
