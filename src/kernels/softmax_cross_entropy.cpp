// Softmax cross-entropy, f32; exponentials in float, sums in double. B rows of K classes: the loss reads 4BK bytes
// twice (the second time from cache) and takes 3BK flops and BK exponentials; the gradient moves 8BK bytes and takes
// 4BK flops and BK exponentials.
#include "kernels/softmax_cross_entropy.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
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

KOKKOS_INLINE_FUNCTION float row_maximum(const float* x, std::int64_t n) {
  float most = x[0];
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

/// Whether class `label` is the first maximum in logical order: greater than all before it, not less than any after.
KOKKOS_INLINE_FUNCTION bool is_first_maximum(const float* x, const Columns& columns, std::int64_t label) {
  const float value = x[columns.physical(label)];
  bool first = true;
  for (std::int64_t s = 0; s < columns.spatial; ++s) {
    const float* run = x + s * columns.channels;                                     // classes s, S + s, 2S + s, …
    const std::int64_t before = (label - s + columns.spatial - 1) / columns.spatial; // classes of the run below label
    for (std::int64_t c = 0; c < columns.channels; ++c) first &= c < before ? value > run[c] : value >= run[c];
  }
  return first;
}

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
  device::item_for(
      exec, rows, 16 * classes, "soybean::softmax_cross_entropy::rows", KOKKOS_LAMBDA(std::int64_t row) {
        const float* logits = x + row * classes;
        const std::int64_t label = labels[row];
        const double weight = weights[row];
        double term = 0, right = 0;
        if (weight != 0 && columns.contains(label)) {
          const float most = row_maximum(logits, classes);
          double sum = 0;
          for (std::int64_t k = 0; k < classes; ++k) sum += static_cast<double>(device::math::exp(logits[k] - most));
          term = weight * (device::math::log(sum) + (static_cast<double>(most) - logits[columns.physical(label)]));
          right = weight > 0 && is_first_maximum(logits, columns, label) ? 1 : 0;
        } else if (weight != 0) {
          term = std::numeric_limits<double>::quiet_NaN();
        }
        terms[2 * row] = term;
        terms[2 * row + 1] = right;
      });
  float* sums[2] = {loss.as<float>(), correct.as<float>()};
  device::channel_sums(
      exec, rows, 2, terms + 2 * rows, "soybean::softmax_cross_entropy::sum",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return terms[2 * row + i]; },
      KOKKOS_LAMBDA(std::int64_t i, double sum) { *sums[i] = static_cast<float>(sum); });
}

std::int64_t loss_scratch(const LossInputs& in) {
  const std::int64_t rows = in.logits.extent(0);
  return 2 * rows * static_cast<std::int64_t>(sizeof(double)) + device::channel_sums_scratch(rows, 2);
}

void softmax_cross_entropy_grad(const Exec& exec, const LossInputs& in, const TensorView& dlogits) {
  const Columns columns = check(in);
  expect_alike(in.logits, dlogits);
  const std::int64_t classes = columns.classes;
  const float *x = in.logits.as<const float>(), *weights = in.weights.as<const float>();
  const auto* labels = in.labels.as<const std::int32_t>();
  float* dx = dlogits.as<float>();
  device::item_for(
      exec, in.logits.extent(0), 16 * classes, "soybean::softmax_cross_entropy_grad::rows",
      KOKKOS_LAMBDA(std::int64_t row) {
        const float *logits = x + row * classes, weight = weights[row];
        float* gradient = dx + row * classes;
        if (weight == 0) {
          for (std::int64_t k = 0; k < classes; ++k) gradient[k] = 0;
          return;
        }
        const float most = row_maximum(logits, classes);
        double sum = 0;
        for (std::int64_t k = 0; k < classes; ++k) {
          gradient[k] = device::math::exp(logits[k] - most);
          sum += static_cast<double>(gradient[k]);
        }
        const auto scale = static_cast<float>(static_cast<double>(weight) / sum);
#pragma omp simd
        for (std::int64_t k = 0; k < classes; ++k) gradient[k] *= scale;
        const std::int64_t label = labels[row];
        if (columns.contains(label)) gradient[columns.physical(label)] -= weight;
      });
}

void run_softmax_cross_entropy(const Exec& exec, const Call& call) {
  softmax_cross_entropy(exec, {call.inputs[0], call.inputs[1], call.inputs[2]}, call.outputs[0], call.outputs[1],
                        call.scratch);
}
std::int64_t scratch_softmax_cross_entropy(const Exec&, const Call& call) {
  return loss_scratch({call.inputs[0], call.inputs[1], call.inputs[2]});
}
void run_softmax_cross_entropy_grad(const Exec& exec, const Call& call) {
  softmax_cross_entropy_grad(exec, {call.inputs[0], call.inputs[1], call.inputs[2]}, call.outputs[0]);
}

} // namespace soybean::kernels
