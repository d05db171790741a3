// Local response normalisation in f64 on the host: every window is added up anew.
#include "kernels/layout.hpp"
#include "kernels/lrn.hpp"

#include <cmath>

namespace soybean::kernels::reference {

namespace {

/// k + alpha·Σ x² around channel c of a row.
double denominator(const Lrn& lrn, const double* x, std::int64_t c) {
  double sum = 0;
  for (std::int64_t other = c - lrn.before; other <= c + lrn.after; ++other)
    if (other >= 0 && other < lrn.channels) sum += x[other] * x[other];
  return lrn.k + lrn.alpha * sum;
}

} // namespace

void run_lrn(const Exec&, const Call& call) {
  const TensorView &in = call.inputs[0], &y = call.outputs[0];
  expect(in, DType::f64);
  expect_alike(in, y);
  const Lrn lrn = make_lrn(call.node, in);
  for (std::int64_t row = 0; row < lrn.rows; ++row) {
    const double* x = in.as<double>() + row * lrn.channels;
    for (std::int64_t c = 0; c < lrn.channels; ++c)
      y.as<double>()[row * lrn.channels + c] = x[c] * std::pow(denominator(lrn, x, c), -lrn.beta);
  }
}

void run_lrn_grad(const Exec&, const Call& call) {
  const TensorView &above = call.inputs[0], &in = call.inputs[1], &dx = call.outputs[0];
  expect(in, DType::f64);
  expect_alike(above, in);
  expect_alike(above, dx);
  const Lrn lrn = make_lrn(call.node, in);
  for (std::int64_t row = 0; row < lrn.rows; ++row) {
    const double *x = in.as<double>() + row * lrn.channels, *dy = above.as<double>() + row * lrn.channels;
    for (std::int64_t c = 0; c < lrn.channels; ++c) {
      double value = dy[c] * std::pow(denominator(lrn, x, c), -lrn.beta);
      for (std::int64_t user = c - lrn.after; user <= c + lrn.before; ++user) { // whose windows hold c
        if (user < 0 || user >= lrn.channels) continue;
        value -=
            2 * lrn.alpha * lrn.beta * x[c] * dy[user] * x[user] * std::pow(denominator(lrn, x, user), -lrn.beta - 1);
      }
      dx.as<double>()[row * lrn.channels + c] = value;
    }
  }
}

} // namespace soybean::kernels::reference
