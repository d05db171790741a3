// Softmax cross-entropy, f32; exponentials in float, sums in double. B rows of K classes: the loss reads 4BK bytes
// twice (the second time from cache) and takes 3BK flops and BK exponentials; the gradient moves 8BK bytes and takes
// 4BK flops and BK exponentials.
#include "kernels/softmax_cross_entropy.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

#include <limits>

namespace soybean::kernels {

namespace {

/// Logical columns of a physical row [S][C]: class k is column (k mod S)·C + k div S.
struct Columns {
  std::int64_t classes, spatial, channels;
  KOKKOS_INLINE_FUNCTION std::int64_t physical(std::int64_t k) const { return k % spatial * channels + k / spatial; }
  KOKKOS_INLINE_FUNCTION bool contains(std::int64_t k) const { return k >= 0 && k < classes; }
};

Columns check(const LossInputs& in) {
  expect(in.logits, DType::f32);
  expect(in.weights, DType::f32);
  expect(in.labels, DType::i32);
  ensure(in.logits.box.extents.size() == 2 && in.logits.extent(1) == in.logits.global[1],
         "the loss needs all classes of its rows");
  ensure(in.labels.size() == in.logits.extent(0) && in.weights.size() == in.logits.extent(0),
         "logits, labels and weights have different rows");
  return {in.logits.extent(1), in.logits.spatial, in.logits.extent(1) / in.logits.spatial};
}

/// Whether class `label` is the first maximum in logical order: greater than all before it, not less than any after.
template<class Team>
KOKKOS_INLINE_FUNCTION bool is_first_maximum(const Team& team, const float* x, const Columns& columns,
                                             std::int64_t label) {
  const float value = x[columns.physical(label)];
  bool first = true;
  for (std::int64_t s = 0; s < columns.spatial; ++s) {
    const float* run = x + s * columns.channels;                                     // classes s, S + s, 2S + s, …
    const std::int64_t before = (label - s + columns.spatial - 1) / columns.spatial; // classes of the run below label
    first &= team.all(columns.channels, [&](std::int64_t c) { return c < before ? value > run[c] : value >= run[c]; });
  }
  return first;
}

/// One row of the loss: terms[2 row] its weighted loss, terms[2 row + 1] whether it is right.
struct LossRow {
  Columns columns;
  const float *x, *weights;
  const std::int32_t* labels;
  double* terms;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* logits = x + row * columns.classes;
    const std::int64_t label = labels[row];
    const double weight = weights[row];
    double term = 0, right = 0;
    if (weight != 0 && columns.contains(label)) {
      const float most = team.max(columns.classes, [&](std::int64_t k) { return logits[k]; });
      const double sum = team.sum(columns.classes, [&](std::int64_t k) { return device::math::exp(logits[k] - most); });
      term = weight * (device::math::log(sum) + (static_cast<double>(most) - logits[columns.physical(label)]));
      right = is_first_maximum(team, logits, columns, label) && weight > 0 ? 1 : 0;
    } else if (weight != 0) {
      term = std::numeric_limits<double>::quiet_NaN();
    }
    if (!team.leads()) return;
    terms[2 * row] = term;
    terms[2 * row + 1] = right;
  }
};

/// One row of the gradient.
struct GradientRow {
  Columns columns;
  const float *x, *weights;
  const std::int32_t* labels;
  float* dx;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float *logits = x + row * columns.classes, weight = weights[row];
    float* gradient = dx + row * columns.classes;
    if (weight == 0) {
      team.each(columns.classes, [&](std::int64_t k) { gradient[k] = 0; });
      return;
    }
    const float most = team.max(columns.classes, [&](std::int64_t k) { return logits[k]; });
    const double sum = team.sum(columns.classes, [&](std::int64_t k) {
      gradient[k] = device::math::exp(logits[k] - most);
      return gradient[k];
    });
    const auto scale = static_cast<float>(static_cast<double>(weight) / sum);
    const std::int64_t label = labels[row];
    const std::int64_t hit = columns.contains(label) ? columns.physical(label) : -1;
    team.each(columns.classes, [&](std::int64_t k) {
      const float share = gradient[k] * scale;
      gradient[k] = k == hit ? share - weight : share;
    });
  }
};

} // namespace

void softmax_cross_entropy(const Exec& exec, const LossInputs& in, const TensorView& loss, const TensorView& correct,
                           void* scratch) {
  const Columns columns = check(in);
  expect(loss, DType::f32);
  expect(correct, DType::f32);
  const std::int64_t rows = in.logits.extent(0), classes = columns.classes;
  const float *x = in.logits.as<const float>(), *weights = in.weights.as<const float>();
  const auto* labels = in.labels.as<const std::int32_t>();
  auto* terms = static_cast<double*>(scratch); // [row][loss, correct]
  device::teams_for(exec, rows, 16 * classes, "soybean::softmax_cross_entropy::rows",
                    LossRow{columns, x, weights, labels, terms});
  float* sums[2] = {loss.as<float>(), correct.as<float>()};
  device::channel_sums(
      exec, rows, 2, terms + 2 * rows, "soybean::softmax_cross_entropy::sum",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return terms[2 * row + i]; },
      KOKKOS_LAMBDA(std::int64_t i, double sum) { *sums[i] = static_cast<float>(sum); });
}

std::int64_t loss_scratch(const Exec& exec, const LossInputs& in) {
  const std::int64_t rows = in.logits.extent(0);
  return 2 * rows * static_cast<std::int64_t>(sizeof(double)) + device::channel_sums_scratch(exec, rows, 2);
}

void softmax_cross_entropy_grad(const Exec& exec, const LossInputs& in, const TensorView& dlogits) {
  const Columns columns = check(in);
  expect_alike(in.logits, dlogits);
  const float *x = in.logits.as<const float>(), *weights = in.weights.as<const float>();
  const auto* labels = in.labels.as<const std::int32_t>();
  float* dx = dlogits.as<float>();
  device::teams_for(exec, in.logits.extent(0), 16 * columns.classes, "soybean::softmax_cross_entropy_grad::rows",
                    GradientRow{columns, x, weights, labels, dx});
}

void run_softmax_cross_entropy(const Exec& exec, const Call& call) {
  softmax_cross_entropy(exec, {call.inputs[0], call.inputs[1], call.inputs[2]}, call.outputs[0], call.outputs[1],
                        call.scratch);
}
std::int64_t scratch_softmax_cross_entropy(const Exec& exec, const Call& call) {
  return loss_scratch(exec, {call.inputs[0], call.inputs[1], call.inputs[2]});
}
void run_softmax_cross_entropy_grad(const Exec& exec, const Call& call) {
  softmax_cross_entropy_grad(exec, {call.inputs[0], call.inputs[1], call.inputs[2]}, call.outputs[0]);
}

} // namespace soybean::kernels
