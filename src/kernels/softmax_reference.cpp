// Softmax layers in f64 on the host: row by row.
#include "kernels/layout.hpp"
#include "kernels/softmax.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::kernels::reference {

namespace {

/// f(a, b, to, width) for every row of the operands (a and b the same where there is one) and the result.
template<class F>
void each_row(const Call& call, F f) {
  const TensorView &a = call.inputs.front(), &b = call.inputs.back(), &to = call.outputs[0];
  expect(a, DType::f64);
  expect_alike(a, b);
  expect_alike(a, to);
  const SoftmaxRows r = softmax_rows(a);
  for (std::int64_t row = 0; row < r.rows; ++row)
    f(a.as<double>() + row * r.width, b.as<double>() + row * r.width, to.as<double>() + row * r.width, r.width);
}

/// Σ exp(x − most) of a row.
double sum_of_exponentials(const double* x, double most, std::int64_t n) {
  double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += std::exp(x[k] - most);
  return sum;
}

} // namespace

void run_softmax(const Exec&, const Call& call) {
  each_row(call, [](const double* x, const double*, double* y, std::int64_t n) {
    const double most = *std::max_element(x, x + n), sum = sum_of_exponentials(x, most, n);
    for (std::int64_t k = 0; k < n; ++k) y[k] = std::exp(x[k] - most) / sum;
  });
}

void run_log_softmax(const Exec&, const Call& call) {
  each_row(call, [](const double* x, const double*, double* y, std::int64_t n) {
    const double most = *std::max_element(x, x + n), sum = sum_of_exponentials(x, most, n);
    for (std::int64_t k = 0; k < n; ++k) y[k] = x[k] - most - std::log(sum);
  });
}

void run_softmax_grad(const Exec&, const Call& call) {
  each_row(call, [](const double* dy, const double* y, double* dx, std::int64_t n) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += dy[k] * y[k];
    for (std::int64_t k = 0; k < n; ++k) dx[k] = y[k] * (dy[k] - sum);
  });
}

void run_log_softmax_grad(const Exec&, const Call& call) {
  each_row(call, [](const double* dy, const double* y, double* dx, std::int64_t n) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += dy[k];
    for (std::int64_t k = 0; k < n; ++k) dx[k] = dy[k] - std::exp(y[k]) * sum;
  });
}

} // namespace soybean::kernels::reference
