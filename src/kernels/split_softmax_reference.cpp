// Softmax cross-entropy in steps, in f64 on the host.
#include "kernels/layout.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/split_softmax.hpp"
#include "ops/losses.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace soybean::kernels::reference {

namespace {

double logit(const TensorView& logits, std::int64_t row, std::int64_t k) {
  return logits.as<double>()[row * logits.extent(1) + k];
}

void expect_logits(const TensorView& logits) {
  expect(logits, DType::f64);
  ensure(logits.box.extents.size() == 4 || logits.spatial == 1, "logits are plain");
}

} // namespace

void run_softmax_parts(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &max = call.outputs[0], &sum = call.outputs[1], &first = call.outputs[2];
  expect_logits(x);
  const std::int64_t parts = max.extent(1), size = x.global[1] / max.global[1];
  ensure(size * parts == x.extent(1) && x.box.offsets[1] == max.box.offsets[1] * size,
         call.node.name + ": classes and parts do not fit");
  for (std::int64_t row = 0; row < loss_rows(x).rows; ++row)
    for (std::int64_t p = 0; p < parts; ++p) {
      std::int64_t best = p * size;
      for (std::int64_t k = best; k < (p + 1) * size; ++k)
        if (logit(x, row, k) > logit(x, row, best)) best = k;
      const double most = logit(x, row, best);
      double total = 0;
      for (std::int64_t k = p * size; k < (p + 1) * size; ++k)
        if (std::isfinite(most) || std::isnan(logit(x, row, k))) total += std::exp(logit(x, row, k) - most);
      max.as<double>()[row * parts + p] = most;
      sum.as<double>()[row * parts + p] = total;
      first.as<double>()[row * parts + p] = static_cast<double>(x.box.offsets[1] + best);
    }
}

void run_label_logit(const Exec&, const Call& call) {
  const TensorView& x = call.inputs[0];
  expect_logits(x);
  for (std::int64_t row = 0; row < loss_rows(x).rows; ++row) {
    const std::int64_t label = call.inputs[1].as<std::int32_t>()[row] - x.box.offsets[1];
    call.outputs[0].as<double>()[row] = label >= 0 && label < x.extent(1) ? logit(x, row, label) : 0;
    if (call.outputs.size() == 1) continue;
    double sum = 0;
    for (std::int64_t k = 0; k < x.extent(1); ++k) sum += logit(x, row, k);
    call.outputs[1].as<double>()[row] = sum / static_cast<double>(x.global[1]);
  }
}

void run_label_rank(const Exec&, const Call& call) {
  const TensorView& x = call.inputs[0];
  expect_logits(x);
  for (std::int64_t row = 0; row < loss_rows(x).rows; ++row) {
    const double value = call.inputs[1].as<double>()[row];
    const std::int64_t label = call.inputs[2].as<std::int32_t>()[row] - x.box.offsets[1];
    double before = 0;
    for (std::int64_t k = 0; k < x.extent(1); ++k)
      if (logit(x, row, k) > value || (logit(x, row, k) == value && k < label)) before += 1;
    call.outputs[0].as<double>()[row] = before;
  }
}

void run_split_softmax_loss(const Exec&, const Call& call) {
  const LossOptions options = loss_options(call.node);
  const LossRows of = loss_rows(call.inputs[0]);
  const std::int64_t rows = of.rows, parts = call.inputs[0].extent(1);
  const std::int64_t classes = call.node.attributes.integer("classes");
  const auto value = [&](std::size_t operand, std::int64_t at) { return call.inputs[operand].as<double>()[at]; };
  const std::size_t plain = ops::plain_operands(call.node);
  const bool mixed = call.inputs.size() > plain;
  double loss = 0, correct = 0, among = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t winner = row * parts;
    for (std::int64_t p = row * parts; p < (row + 1) * parts; ++p)
      if (value(0, p) > value(0, winner)) winner = p;
    double sum = 0;
    for (std::int64_t p = row * parts; p < (row + 1) * parts; ++p)
      sum += value(1, p) * std::exp(value(0, p) - value(0, winner));
    const double logsumexp = value(0, winner) + std::log(sum), weight = of.share * value(5, row / of.positions);
    call.outputs[2].as<double>()[row] = logsumexp;
    if (weight == 0) continue;
    const std::int64_t label = call.inputs[4].as<std::int32_t>()[row];
    double goal = value(3, row);
    std::int64_t partner = label;
    if (mixed) {
      const double share = value(plain + 2, row);
      if (share != 1) goal = share * goal + (1 - share) * value(plain, row);
      partner = call.inputs[plain + 1].as<std::int32_t>()[row];
    }
    for (const std::int64_t one : {label, partner})
      ensure(one >= 0 && one < classes, fmt::format("label {} of {} classes", one, classes));
    if (call.node.attributes.has("label_smoothing"))
      goal = (1 - options.smoothing) * goal + options.smoothing * value(6, row);
    loss += weight * (logsumexp - goal);
    if (weight > 0 && value(2, winner) == static_cast<double>(label)) correct += of.share;
    if (weight > 0 && options.top_k > 0 && value(plain - 1, row) < static_cast<double>(options.top_k))
      among += of.share;
  }
  *call.outputs[0].as<double>() = loss;
  *call.outputs[1].as<double>() = correct;
  if (options.top_k > 0) *call.outputs[3].as<double>() = among;
}

void run_split_softmax_loss_grad(const Exec&, const Call& call) {
  const LossOptions options = loss_options(call.node);
  const TensorView &x = call.inputs[0], &dx = call.outputs[0];
  expect_logits(x);
  expect_alike(x, dx);
  const LossRows of = loss_rows(x);
  const double other = options.smoothing / static_cast<double>(x.global[1]);
  for (std::int64_t row = 0; row < loss_rows(x).rows; ++row) {
    const double weight = of.share * call.inputs[3].as<double>()[row / of.positions],
                 logsumexp = call.inputs[1].as<double>()[row];
    const std::int64_t label = call.inputs[2].as<std::int32_t>()[row] - x.box.offsets[1];
    std::int64_t partner = label;
    double share = 1;
    if (call.inputs.size() > 4) {
      partner = call.inputs[4].as<std::int32_t>()[row] - x.box.offsets[1];
      share = call.inputs[5].as<double>()[row];
    }
    for (std::int64_t k = 0; k < x.extent(1); ++k) {
      const double part = (k == label ? share : 0) + (k == partner ? 1 - share : 0);
      const double goal = other + (1 - options.smoothing) * part;
      dx.as<double>()[row * x.extent(1) + k] =
          weight == 0 ? 0 : options.factor * weight * (std::exp(logit(x, row, k) - logsumexp) - goal);
    }
  }
}

} // namespace soybean::kernels::reference
