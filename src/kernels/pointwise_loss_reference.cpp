// Losses that are sums over elements, in f64 on the host, element by element in logical order.
#include "kernels/layout.hpp"
#include "kernels/pointwise_loss.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::kernels::reference {

namespace {

/// f(row, place in x, value, target, elements of a whole sample) for the elements of all rows of weight other than 0.
template<class F>
void each_element(const Call& call, F f) {
  const TensorView &x = call.inputs[0], &target = call.inputs[1], &weights = call.inputs[2];
  expect(x, DType::f64);
  expect(weights, DType::f64);
  std::int64_t whole = 1, positions = 1;
  for (std::size_t d = 1; d < x.global.size(); ++d) whole *= x.global[d];
  for (std::size_t d = 2; d < x.global.size(); ++d) positions *= x.global[d];
  const bool labels = target.dtype == DType::i32;
  if (!labels) expect_alike(x, target);
  Shape position(x.box.extents.size(), 0);
  for (std::int64_t n = 0; n < x.size(); ++n) {
    const std::int64_t row = position[0], at = physical_offset(x, position);
    std::int64_t logical = x.box.offsets[1] + position[1];
    for (std::size_t d = 2; d < position.size(); ++d) logical = logical * x.global[d] + position[d];
    double goal = 0;
    if (!labels)
      goal = target.as<double>()[at];
    else if (whole == 1)
      goal = target.as<std::int32_t>()[row];
    else
      goal = logical == target.as<std::int32_t>()[row] ? 1 : 0;
    if (weights.as<double>()[row] != 0) f(row, at, x.as<double>()[at], goal, static_cast<double>(whole));
    for (int d = static_cast<int>(position.size()) - 1; d >= 0 && ++position[d] == x.box.extents[d]; --d)
      position[d] = 0;
  }
}

double factor_of(const graph::Node& node) {
  return node.attributes.has("factor") ? node.attributes.real("factor") : 1.0;
}

template<class F>
void gradient(const Call& call, F derivative) {
  const TensorView& dx = call.outputs[0];
  expect_alike(call.inputs[0], dx);
  for (std::int64_t i = 0; i < dx.size(); ++i) dx.as<double>()[i] = 0;
  const double* weights = call.inputs[2].as<double>();
  each_element(call, [&](std::int64_t row, std::int64_t at, double x, double target, double whole) {
    dx.as<double>()[at] = factor_of(call.node) * weights[row] / whole * derivative(x, target);
  });
}

} // namespace

void run_mse(const Exec&, const Call& call) {
  const double* weights = call.inputs[2].as<double>();
  double loss = 0;
  each_element(call, [&](std::int64_t row, std::int64_t, double x, double target, double whole) {
    loss += weights[row] * (x - target) * (x - target) / whole;
  });
  *call.outputs[0].as<double>() = loss;
}

void run_binary_cross_entropy(const Exec&, const Call& call) {
  const double* weights = call.inputs[2].as<double>();
  double loss = 0, correct = 0;
  each_element(call, [&](std::int64_t row, std::int64_t, double x, double target, double whole) {
    loss += weights[row] * (std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)))) / whole;
    if (weights[row] > 0 && (x > 0) == (target > 0.5)) correct += 1 / whole;
  });
  *call.outputs[0].as<double>() = loss;
  *call.outputs[1].as<double>() = correct;
}

void run_mse_grad(const Exec&, const Call& call) {
  gradient(call, [](double x, double target) { return 2 * (x - target); });
}

void run_binary_cross_entropy_grad(const Exec&, const Call& call) {
  gradient(call, [](double x, double target) { return 1 / (1 + std::exp(-x)) - target; });
}

void run_total_loss(const Exec&, const Call& call) {
  double total = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    total += call.node.attributes.real(fmt::format("factor_{}", i)) * *call.inputs[i].as<double>();
  *call.outputs[0].as<double>() = total;
}

} // namespace soybean::kernels::reference
