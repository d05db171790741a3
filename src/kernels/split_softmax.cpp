#include "kernels/split_softmax.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "ops/losses.hpp"

#include <limits>

namespace soybean::kernels {

namespace {

/// Rows of logits, all or some of the classes.
struct Logits {
  std::int64_t rows, here, first, classes; ///< classes of the block, the number of its first one, all there are
  const float* x;
};

Logits logits_of(const TensorView& view) {
  expect(view, DType::f32);
  ensure(view.box.extents.size() == 4 || view.spatial == 1, "logits are plain");
  return {loss_rows(view).rows, view.extent(1), view.box.offsets[1], view.global[1], view.as<const float>()};
}

/// One part of the classes of a row.
struct PartRow {
  Logits logits;
  std::int64_t parts, size; ///< of the block; classes of each
  float *max, *sum, *first;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t item) const {
    constexpr float nothing = -std::numeric_limits<float>::infinity();
    const float* x = logits.x + item * size; // parts follow each other within a row, rows too
    const float most = team.max(size, [&](std::int64_t k) { return x[k]; });
    const double total =
        most == nothing ? 0 : team.sum(size, [&](std::int64_t k) { return device::math::exp(x[k] - most); });
    const float before =
        team.max(size, [&](std::int64_t k) { return x[k] == most ? -static_cast<float>(k) : nothing; });
    if (!team.leads()) return;
    max[item] = most;
    sum[item] = static_cast<float>(total);
    first[item] = static_cast<float>(logits.first + item % parts * size) - before;
  }
};

struct TargetRow {
  Logits logits;
  const std::int32_t* labels;
  float *target, *mean; ///< mean: nullptr where nobody asks

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* x = logits.x + row * logits.here;
    const std::int64_t label = labels[row] - logits.first;
    const double sum = mean == nullptr ? 0 : team.sum(logits.here, [&](std::int64_t k) { return x[k]; });
    if (!team.leads()) return;
    target[row] = label >= 0 && label < logits.here ? x[label] : 0.0f;
    if (mean != nullptr) mean[row] = static_cast<float>(sum / static_cast<double>(logits.classes));
  }
};

struct RankRow {
  Logits logits;
  const float* target;
  const std::int32_t* labels;
  float* rank;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float *x = logits.x + row * logits.here, value = target[row];
    const std::int64_t label = labels[row] - logits.first;
    const double before =
        team.sum(logits.here, [&](std::int64_t k) { return x[k] > value || (x[k] == value && k < label) ? 1 : 0; });
    if (team.leads()) rank[row] = static_cast<float>(before);
  }
};

constexpr std::int64_t row_terms = 3;

} // namespace

void run_softmax_parts(const Exec& exec, const Call& call) {
  const Logits logits = logits_of(call.inputs[0]);
  const std::int64_t parts = call.outputs[0].extent(1);
  if (parts == 0) return;
  const std::int64_t size = logits.here / parts;
  ensure(size * call.outputs[0].global[1] == logits.classes && logits.first == call.outputs[0].box.offsets[1] * size,
         call.node.name + ": classes and parts do not fit");
  device::teams_for(exec, logits.rows * parts, 16 * size, "soybean::softmax_parts",
                    PartRow{logits, parts, size, call.outputs[0].as<float>(), call.outputs[1].as<float>(),
                            call.outputs[2].as<float>()});
}

void run_label_logit(const Exec& exec, const Call& call) {
  const Logits logits = logits_of(call.inputs[0]);
  float* mean = call.outputs.size() > 1 ? call.outputs[1].as<float>() : nullptr;
  device::teams_for(exec, logits.rows, mean == nullptr ? 1 : logits.here, "soybean::label_logit",
                    TargetRow{logits, call.inputs[1].as<const std::int32_t>(), call.outputs[0].as<float>(), mean});
}

void run_label_rank(const Exec& exec, const Call& call) {
  const Logits logits = logits_of(call.inputs[0]);
  device::teams_for(exec, logits.rows, 2 * logits.here, "soybean::label_rank",
                    RankRow{logits, call.inputs[1].as<const float>(), call.inputs[2].as<const std::int32_t>(),
                            call.outputs[0].as<float>()});
}

void run_split_softmax_loss(const Exec& exec, const Call& call) {
  const LossOptions options = loss_options(call.node);
  const LossRows of = loss_rows(call.inputs[0]);
  const std::int64_t rows = of.rows, parts = call.inputs[0].extent(1);
  const std::int64_t classes = call.node.attributes.integer("classes"), top_k = options.top_k;
  const auto floats = [&](std::size_t i) { return call.inputs[i].as<const float>(); };
  const float *max = floats(0), *sum = floats(1), *first = floats(2), *target = floats(3), *weights = floats(5);
  const auto* labels = call.inputs[4].as<const std::int32_t>();
  const double smoothing = options.smoothing;
  const float* mean = call.node.attributes.has("label_smoothing") ? floats(6) : nullptr;
  const std::size_t plain = ops::plain_operands(call.node);
  const bool mixed = call.inputs.size() > plain;
  const float* rank = top_k > 0 ? floats(plain - 1) : nullptr;
  const float *partner = mixed ? floats(plain) : nullptr, *shares = mixed ? floats(plain + 2) : nullptr;
  const auto* partners = mixed ? call.inputs[plain + 1].as<const std::int32_t>() : labels;
  float* logsumexp = call.outputs[2].as<float>();
  auto* terms = static_cast<double*>(call.scratch); // [row][loss, correct, top]
  device::item_for(
      exec, rows, 8 * parts, "soybean::split_softmax_loss::rows", KOKKOS_LAMBDA(std::int64_t row) {
        const float *m = max + row * parts, *s = sum + row * parts;
        std::int64_t winner = 0;
        for (std::int64_t p = 1; p < parts; ++p)
          if (m[p] > m[winner]) winner = p;
        const double most = m[winner];
        double total = 0;
        for (std::int64_t p = 0; p < parts; ++p)
          total += static_cast<double>(s[p]) * device::math::exp(static_cast<double>(m[p]) - most);
        const double log = most + device::math::log(total),
                     weight = of.share * static_cast<double>(weights[row / of.positions]);
        double goal = target[row];
        const double theirs = partner == nullptr ? 0.0 : 1.0 - static_cast<double>(shares[row]);
        if (theirs > 0) goal = (1 - theirs) * goal + theirs * partner[row];
        if (mean != nullptr) goal += smoothing * (mean[row] - goal);
        const bool known = labels[row] >= 0 && labels[row] < classes && partners[row] >= 0 && partners[row] < classes;
        const bool counts = weight > 0 && known;
        double loss = weight == 0 ? 0 : weight * (log - goal);
        if (weight != 0 && !known) loss = std::numeric_limits<double>::quiet_NaN();
        logsumexp[row] = static_cast<float>(log);
        terms[row_terms * row] = loss;
        terms[row_terms * row + 1] =
            counts && first[row * parts + winner] == static_cast<float>(labels[row]) ? of.share : 0;
        terms[row_terms * row + 2] = counts && rank != nullptr && rank[row] < static_cast<float>(top_k) ? of.share : 0;
      });
  float* sums[row_terms] = {call.outputs[0].as<float>(), call.outputs[1].as<float>(),
                            top_k > 0 ? call.outputs[3].as<float>() : nullptr};
  device::channel_sums(
      exec, rows, row_terms, terms + row_terms * rows, "soybean::split_softmax_loss::sum",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return terms[row_terms * row + i]; },
      KOKKOS_LAMBDA(std::int64_t i, double total) {
        if (sums[i] != nullptr) *sums[i] = static_cast<float>(total);
      });
}

std::int64_t scratch_split_softmax_loss(const Exec& exec, const Call& call) {
  const std::int64_t rows = loss_rows(call.inputs[0]).rows;
  return row_terms * rows * static_cast<std::int64_t>(sizeof(double)) +
         device::channel_sums_scratch(exec, rows, row_terms);
}

void run_split_softmax_loss_grad(const Exec& exec, const Call& call) {
  const LossOptions options = loss_options(call.node);
  const Logits logits = logits_of(call.inputs[0]);
  expect_alike(call.inputs[0], call.outputs[0]);
  const float *logsumexp = call.inputs[1].as<const float>(), *weights = call.inputs[3].as<const float>();
  const auto* labels = call.inputs[2].as<const std::int32_t>();
  const bool mixed = call.inputs.size() > 4;
  const auto* partners = mixed ? call.inputs[4].as<const std::int32_t>() : labels;
  const float* shares = mixed ? call.inputs[5].as<const float>() : nullptr;
  float* dx = call.outputs[0].as<float>();
  const LossRows of = loss_rows(call.inputs[0]);
  const std::int64_t positions = of.positions;
  const auto factor = static_cast<float>(options.factor * of.share), smoothing = static_cast<float>(options.smoothing);
  const float other = smoothing / static_cast<float>(logits.classes);
  device::rows_for(
      exec, logits.rows, logits.here, "soybean::split_softmax_loss_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t k) {
        const float weight = factor * weights[row / positions],
                    share = device::math::exp(logits.x[row * logits.here + k] - logsumexp[row]);
        const float own = shares == nullptr ? 1.0f : shares[row];
        const float part =
            (logits.first + k == labels[row] ? own : 0.0f) + (logits.first + k == partners[row] ? 1.0f - own : 0.0f);
        const float goal = other + (1.0f - smoothing) * part;
        dx[row * logits.here + k] = weight == 0 ? 0.0f : weight * (share - goal);
      });
}

} // namespace soybean::kernels
