// Softmax cross-entropy in f64 on the host, class by class in logical order.
#include "kernels/layout.hpp"
#include "kernels/softmax_cross_entropy.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::kernels::reference {

namespace {

struct Row {
  double weight = 0;
  std::int64_t label = 0, partner = 0; ///< the sample's own, and what is mixed into it
  double share = 1;                    ///< of the sample itself
  double maximum = 0, sum = 0;         ///< Σ exp(xₖ − maximum)
  std::int64_t first = 0;              ///< class of the first maximum
};

double logit(const TensorView& logits, std::int64_t row, std::int64_t k) {
  if (logits.box.extents.size() == 4) return logits.as<double>()[row * logits.extent(1) + k];
  return logits.as<double>()[physical_offset(logits, {row, k})];
}

Row read_row(const Call& call, std::int64_t i) {
  const TensorView& logits = call.inputs[0];
  const std::int64_t classes = logits.extent(1);
  Row row;
  const LossRows of = loss_rows(logits);
  row.weight = of.share * call.inputs[2].as<double>()[i / of.positions];
  if (row.weight == 0) return row;
  row.label = call.inputs[1].as<std::int32_t>()[i];
  row.partner = row.label;
  if (call.inputs.size() == 5) {
    row.partner = call.inputs[3].as<std::int32_t>()[i];
    row.share = call.inputs[4].as<double>()[i];
  }
  for (const std::int64_t label : {row.label, row.partner})
    ensure(label >= 0 && label < classes, fmt::format("label {} of {} classes", label, classes));
  row.maximum = logit(logits, i, 0);
  for (std::int64_t k = 1; k < classes; ++k)
    if (logit(logits, i, k) > row.maximum) row.maximum = logit(logits, i, k), row.first = k;
  for (std::int64_t k = 0; k < classes; ++k) row.sum += std::exp(logit(logits, i, k) - row.maximum);
  return row;
}

void check(const Call& call) {
  const TensorView& logits = call.inputs[0];
  expect(logits, DType::f64);
  expect(call.inputs[1], DType::i32);
  expect(call.inputs[2], DType::f64);
  ensure(logits.extent(1) == logits.global[1], "the loss needs all classes of its rows");
  ensure(call.inputs[1].size() == loss_rows(logits).rows && call.inputs[2].size() == logits.extent(0),
         "logits, labels and weights have different rows");
  if (call.inputs.size() == 3) return;
  expect(call.inputs[3], DType::i32);
  expect(call.inputs[4], DType::f64);
  ensure(call.inputs[3].size() == logits.extent(0) && call.inputs[4].size() == logits.extent(0),
         "logits, partners and shares have different rows");
}

} // namespace

void run_softmax_cross_entropy(const Exec&, const Call& call) {
  check(call);
  const TensorView& logits = call.inputs[0];
  expect(call.outputs[0], DType::f64);
  expect(call.outputs[1], DType::f64);
  const LossOptions options = loss_options(call.node);
  const std::int64_t classes = logits.extent(1);
  double loss = 0, correct = 0, among = 0;
  const LossRows of = loss_rows(logits);
  for (std::int64_t i = 0; i < of.rows; ++i) {
    const Row row = read_row(call, i);
    if (row.weight == 0) continue;
    const double value = logit(logits, i, row.label);
    double mean = 0;
    std::int64_t before = 0; // classes that come before the label
    for (std::int64_t k = 0; k < classes; ++k) {
      const double other = logit(logits, i, k);
      mean += other / static_cast<double>(classes);
      if (other > value || (other == value && k < row.label)) ++before;
    }
    const double mixed = row.share == 1 ? value : row.share * value + (1 - row.share) * logit(logits, i, row.partner);
    const double goal = (1 - options.smoothing) * mixed + options.smoothing * mean;
    loss += row.weight * (row.maximum + std::log(row.sum) - goal);
    if (row.weight > 0 && before < options.top_k) among += of.share;
    if (row.weight > 0 && row.first == row.label) correct += of.share;
  }
  *call.outputs[0].as<double>() = loss;
  *call.outputs[1].as<double>() = correct;
  if (options.top_k > 0) *call.outputs[2].as<double>() = among;
}

void run_softmax_cross_entropy_grad(const Exec&, const Call& call) {
  check(call);
  const TensorView &logits = call.inputs[0], &dlogits = call.outputs[0];
  expect_alike(logits, dlogits);
  const LossOptions options = loss_options(call.node);
  const double other = options.smoothing / static_cast<double>(logits.extent(1));
  const std::int64_t rows = loss_rows(logits).rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Row row = read_row(call, i);
    for (std::int64_t k = 0; k < logits.extent(1); ++k) {
      const double softmax = row.weight == 0 ? 0 : std::exp(logit(logits, i, k) - row.maximum) / row.sum;
      const double part = (k == row.label ? row.share : 0) + (k == row.partner ? 1 - row.share : 0);
      const double goal = other + (1 - options.smoothing) * part;
      const std::int64_t at =
          dlogits.box.extents.size() == 4 ? i * logits.extent(1) + k : physical_offset(dlogits, {i, k});
      dlogits.as<double>()[at] = options.factor * row.weight * (softmax - goal);
    }
  }
}

} // namespace soybean::kernels::reference
