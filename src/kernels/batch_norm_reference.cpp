// Batch normalisation in f64 on the host: the formulas of batch_norm.hpp in plain loops.
#include "kernels/batch_norm.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/layout.hpp"

#include <cmath>

namespace soybean::kernels::reference {

namespace {

/// f(offset, channel) for every element of a block, row by row.
template<class F>
void each(const TensorView& x, F f) {
  const auto [rows, channels] = channel_rows(x);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; ++c) f(row * channels + c, c);
}

double* per_channel(const TensorView& x, const TensorView& vector) {
  expect(vector, DType::f64);
  ensure(vector.size() == x.extent(1), "statistics and channels differ");
  return vector.as<double>();
}

double* zeroed(const TensorView& x, const TensorView& vector) {
  double* values = per_channel(x, vector);
  for (std::int64_t c = 0; c < vector.size(); ++c) values[c] = 0;
  return values;
}

double root(const Call& call, double variance) {
  return std::sqrt(variance + call.node.attributes.real("eps"));
}

/// Σ term(offset, channel)/N into the result.
template<class Term>
void average(const Call& call, Term term) {
  const TensorView& x = call.inputs[0];
  expect(x, DType::f64);
  double* to = zeroed(x, call.outputs[0]);
  each(x, [&](std::int64_t i, std::int64_t c) { to[c] += term(i, c); });
  for (std::int64_t c = 0; c < x.extent(1); ++c) to[c] /= static_cast<double>(values_per_channel(x));
}

} // namespace

void run_channel_mean(const Exec&, const Call& call) {
  const double* x = call.inputs[0].as<double>();
  average(call, [&](std::int64_t i, std::int64_t) { return x[i]; });
}

void run_channel_variance(const Exec&, const Call& call) {
  const double *x = call.inputs[0].as<double>(), *mean = per_channel(call.inputs[0], call.inputs[1]);
  average(call, [&](std::int64_t i, std::int64_t c) { return (x[i] - mean[c]) * (x[i] - mean[c]); });
}

void run_batch_norm(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect_alike(x, y);
  const bool affine = call.inputs.size() == 5;
  const double *mean = per_channel(x, call.inputs[1]), *variance = per_channel(x, call.inputs[2]);
  each(x, [&](std::int64_t i, std::int64_t c) {
    const double normal = (x.as<double>()[i] - mean[c]) / root(call, variance[c]);
    y.as<double>()[i] =
        affine ? normal * per_channel(x, call.inputs[3])[c] + per_channel(x, call.inputs[4])[c] : normal;
  });
}

void run_batch_norm_sums(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1];
  expect(x, DType::f64);
  expect_alike(dy, x);
  const double *mean = per_channel(x, call.inputs[2]), *variance = per_channel(x, call.inputs[3]);
  double *sum = zeroed(x, call.outputs[0]), *projection = zeroed(x, call.outputs[1]);
  each(x, [&](std::int64_t i, std::int64_t c) {
    sum[c] += dy.as<double>()[i];
    projection[c] += dy.as<double>()[i] * (x.as<double>()[i] - mean[c]) / root(call, variance[c]);
  });
}

void run_batch_norm_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  expect(x, DType::f64);
  expect_alike(dy, x);
  expect_alike(dy, dx);
  const double *mean = per_channel(x, call.inputs[2]), *variance = per_channel(x, call.inputs[3]);
  const double *sum = per_channel(x, call.inputs[4]), *projection = per_channel(x, call.inputs[5]);
  const double* weight = call.inputs.size() == 7 ? per_channel(x, call.inputs[6]) : nullptr;
  const auto count = static_cast<double>(values_per_channel(x));
  each(x, [&](std::int64_t i, std::int64_t c) {
    const double r = 1 / root(call, variance[c]), normal = (x.as<double>()[i] - mean[c]) * r;
    const double rest = dy.as<double>()[i] - sum[c] / count - normal * projection[c] / count;
    dx.as<double>()[i] = (weight ? weight[c] : 1) * r * rest;
  });
}

void run_running_average(const Exec&, const Call& call) {
  const double momentum = call.node.attributes.real("momentum"), factor = call.node.attributes.real("factor");
  binary([&](double old, double value) { return (1 - momentum) * old + momentum * factor * value; }, call.inputs[0],
         call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels::reference
