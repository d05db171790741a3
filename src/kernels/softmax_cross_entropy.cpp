// Softmax cross-entropy, f32; exponentials in float, sums in double. B rows of K classes: the loss reads 4BK bytes
// twice (the second time from cache) and takes 3BK flops and BK exponentials; the gradient moves 8BK bytes and takes
// 4BK flops and BK exponentials.
#include "kernels/softmax_cross_entropy.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

#include <algorithm>
#include <limits>

namespace soybean::kernels {

namespace {

/// Logical columns of a physical row [S][C]: class k is column (k mod S)·C + k div S.
struct Columns {
  std::int64_t classes, spatial, channels;
  KOKKOS_INLINE_FUNCTION std::int64_t physical(std::int64_t k) const { return k % spatial * channels + k / spatial; }
  KOKKOS_INLINE_FUNCTION bool contains(std::int64_t k) const { return k >= 0 && k < classes; }
};

/// The other label of mixed samples; both pointers nullptr where there are none.
struct Partners {
  const std::int32_t* labels = nullptr;
  const float* shares = nullptr;

  KOKKOS_INLINE_FUNCTION double other_share(std::int64_t row) const {
    return labels == nullptr ? 0.0 : 1.0 - static_cast<double>(shares[row]);
  }
  /// The class that has other_share; a sample's own label without partners.
  KOKKOS_INLINE_FUNCTION std::int64_t label(std::int64_t row, std::int64_t own) const {
    return labels == nullptr ? own : labels[row];
  }
};

Partners partners_of(const LossInputs& in) {
  if (in.partners == nullptr) return {};
  expect(*in.partners, DType::i32);
  expect(*in.shares, DType::f32);
  ensure(in.partners->size() == in.logits.extent(0) && in.shares->size() == in.logits.extent(0),
         "logits, partners and shares have different rows");
  return {in.partners->as<const std::int32_t>(), in.shares->as<const float>()};
}

Columns check(const LossInputs& in) {
  expect(in.logits, DType::f32);
  expect(in.weights, DType::f32);
  expect(in.labels, DType::i32);
  ensure(in.logits.extent(1) == in.logits.global[1], "the loss needs all classes of its rows");
  ensure(in.labels.size() == loss_rows(in.logits).rows && in.weights.size() == in.logits.extent(0),
         "logits, labels and weights have different rows");
  const std::int64_t spatial = in.logits.box.extents.size() == 2 ? in.logits.spatial : 1;
  return {in.logits.extent(1), spatial, in.logits.extent(1) / spatial};
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

/// How many classes come before `label`: greater ones, and equal ones of a smaller number.
template<class Team>
KOKKOS_INLINE_FUNCTION double rank_of(const Team& team, const float* x, const Columns& columns, std::int64_t label) {
  const float value = x[columns.physical(label)];
  return team.sum(columns.classes, [&](std::int64_t i) {
    const std::int64_t k = i % columns.channels * columns.spatial + i / columns.channels;
    return x[i] > value || (x[i] == value && k < label) ? 1 : 0;
  });
}

constexpr std::int64_t row_terms = 3;

/// One row of the loss: terms[3 row] its weighted loss, terms[3 row + 1] whether it is right, terms[3 row + 2] whether
/// the label is among the first top_k.
struct LossRow {
  Columns columns;
  LossRows of;
  double smoothing;
  std::int64_t top_k;
  const float *x, *weights;
  const std::int32_t* labels;
  Partners partners;
  double* terms;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* logits = x + row * columns.classes;
    const std::int64_t label = labels[row];
    const std::int64_t partner = partners.label(row, label);
    const double weight = of.share * static_cast<double>(weights[row / of.positions]);
    double term = 0, right = 0, among = 0;
    if (weight != 0 && columns.contains(label) && columns.contains(partner)) {
      const float most = team.max(columns.classes, [&](std::int64_t k) { return logits[k]; });
      const double sum = team.sum(columns.classes, [&](std::int64_t k) { return device::math::exp(logits[k] - most); });
      double goal = logits[columns.physical(label)];
      if (const double theirs = partners.other_share(row); theirs > 0)
        goal = (1 - theirs) * goal + theirs * logits[columns.physical(partner)];
      if (smoothing > 0) {
        const double mean =
            team.sum(columns.classes, [&](std::int64_t k) { return logits[k]; }) / static_cast<double>(columns.classes);
        goal += smoothing * (mean - goal);
      }
      term = weight * (device::math::log(sum) + (static_cast<double>(most) - goal));
      right = is_first_maximum(team, logits, columns, label) && weight > 0 ? of.share : 0;
      if (top_k > 0 && weight > 0)
        among = rank_of(team, logits, columns, label) < static_cast<double>(top_k) ? of.share : 0;
    } else if (weight != 0) {
      term = std::numeric_limits<double>::quiet_NaN();
    }
    if (!team.leads()) return;
    terms[row_terms * row] = term;
    terms[row_terms * row + 1] = right;
    terms[row_terms * row + 2] = among;
  }
};

/// One row of the gradient.
struct GradientRow {
  Columns columns;
  std::int64_t positions;
  float smoothing, factor;
  const float *x, *weights;
  const std::int32_t* labels;
  Partners partners;
  float* dx;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float *logits = x + row * columns.classes, weight = weights[row / positions] * factor;
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
    const std::int64_t label = labels[row], partner = partners.label(row, label);
    const std::int64_t hit = columns.contains(label) ? columns.physical(label) : -1;
    const std::int64_t second = columns.contains(partner) ? columns.physical(partner) : -1;
    const float other = weight * smoothing / static_cast<float>(columns.classes), both = weight * (1 - smoothing);
    const float theirs = both * static_cast<float>(partners.other_share(row)), own = both - theirs;
    team.each(columns.classes, [&](std::int64_t k) {
      const float share = gradient[k] * scale - other;
      gradient[k] = share - (k == hit ? own : 0.0f) - (k == second ? theirs : 0.0f);
    });
  }
};

} // namespace

LossRows loss_rows(const TensorView& logits) {
  if (logits.box.extents.size() == 2) return {.rows = logits.extent(0)};
  ensure(logits.box.extents.size() == 4 && logits.global[3] == 1, "a loss of what is no sequence");
  return {.rows = channel_rows(logits).rows,
          .positions = std::max<std::int64_t>(1, logits.extent(2)),
          .share = 1 / static_cast<double>(logits.global[2])};
}

LossOptions loss_options(const graph::Node& node) {
  const graph::Attributes& a = node.attributes;
  return {.smoothing = a.has("label_smoothing") ? a.real("label_smoothing") : 0,
          .factor = a.has("factor") ? a.real("factor") : 1,
          .top_k = a.has("top_k") ? a.integer("top_k") : 0};
}

void softmax_cross_entropy(const Exec& exec, const LossInputs& in, const LossOptions& options,
                           const LossResults& results, void* scratch) {
  const Columns columns = check(in);
  expect(results.loss, DType::f32);
  expect(results.correct, DType::f32);
  ensure((results.top != nullptr) == (options.top_k > 0), "top_k and its result go together");
  const LossRows of = loss_rows(in.logits);
  const std::int64_t rows = of.rows, classes = columns.classes;
  const float *x = in.logits.as<const float>(), *weights = in.weights.as<const float>();
  const auto* labels = in.labels.as<const std::int32_t>();
  auto* terms = static_cast<double*>(scratch); // [row][loss, correct, top]
  device::teams_for(exec, rows, 16 * classes, "soybean::softmax_cross_entropy::rows",
                    LossRow{columns, of, options.smoothing, options.top_k, x, weights, labels, partners_of(in), terms});
  float* sums[row_terms] = {results.loss.as<float>(), results.correct.as<float>(),
                            results.top != nullptr ? results.top->as<float>() : nullptr};
  device::channel_sums(
      exec, rows, row_terms, terms + row_terms * rows, "soybean::softmax_cross_entropy::sum",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return terms[row_terms * row + i]; },
      KOKKOS_LAMBDA(std::int64_t i, double sum) {
        if (sums[i] != nullptr) *sums[i] = static_cast<float>(sum);
      });
}

std::int64_t loss_scratch(const Exec& exec, const LossInputs& in) {
  const std::int64_t rows = loss_rows(in.logits).rows;
  return row_terms * rows * static_cast<std::int64_t>(sizeof(double)) +
         device::channel_sums_scratch(exec, rows, row_terms);
}

void softmax_cross_entropy_grad(const Exec& exec, const LossInputs& in, const LossOptions& options,
                                const TensorView& dlogits) {
  const Columns columns = check(in);
  expect_alike(in.logits, dlogits);
  const float *x = in.logits.as<const float>(), *weights = in.weights.as<const float>();
  const auto* labels = in.labels.as<const std::int32_t>();
  float* dx = dlogits.as<float>();
  const LossRows of = loss_rows(in.logits);
  device::teams_for(exec, of.rows, 16 * columns.classes, "soybean::softmax_cross_entropy_grad::rows",
                    GradientRow{columns, of.positions, static_cast<float>(options.smoothing),
                                static_cast<float>(options.factor * of.share), x, weights, labels, partners_of(in),
                                dx});
}

namespace {

LossInputs inputs_of(const Call& call) {
  const bool mixed = call.inputs.size() == 5;
  return {call.inputs[0], call.inputs[1], call.inputs[2], mixed ? &call.inputs[3] : nullptr,
          mixed ? &call.inputs[4] : nullptr};
}

} // namespace

void run_softmax_cross_entropy(const Exec& exec, const Call& call) {
  const TensorView* top = call.outputs.size() > 2 ? &call.outputs[2] : nullptr;
  softmax_cross_entropy(exec, inputs_of(call), loss_options(call.node), {call.outputs[0], call.outputs[1], top},
                        call.scratch);
}
std::int64_t scratch_softmax_cross_entropy(const Exec& exec, const Call& call) {
  return loss_scratch(exec, inputs_of(call));
}
void run_softmax_cross_entropy_grad(const Exec& exec, const Call& call) {
  softmax_cross_entropy_grad(exec, inputs_of(call), loss_options(call.node), call.outputs[0]);
}

} // namespace soybean::kernels
