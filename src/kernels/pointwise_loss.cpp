#include "kernels/pointwise_loss.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

enum class Kind : std::uint8_t { mse, binary_cross_entropy };

/// A block of the operands, row by row, and where its elements stand in a whole sample.
struct Rows {
  std::int64_t rows = 0, features = 0; ///< of the block
  std::int64_t spatial = 1, channels = 0;
  std::int64_t first = 0, whole = 0; ///< logical number of the block's first element in a sample; elements of a sample
  const float *x = nullptr, *target = nullptr, *weights = nullptr;
  const std::int32_t* labels = nullptr; ///< in place of target

  /// The target of element `i`, in physical order, of a row.
  KOKKOS_INLINE_FUNCTION float target_of(std::int64_t row, std::int64_t i) const {
    if (labels == nullptr) return target[row * features + i];
    if (whole == 1) return static_cast<float>(labels[row]);
    return first + i % channels * spatial + i / channels == labels[row] ? 1.0f : 0.0f;
  }
};

Rows rows_of(const Call& call) {
  const TensorView &x = call.inputs[0], &target = call.inputs[1], &weights = call.inputs[2];
  expect(x, DType::f32);
  expect(weights, DType::f32);
  Rows r{.rows = x.extent(0), .features = 1, .spatial = x.spatial, .whole = 1, .x = x.as<const float>()};
  std::int64_t positions = 1; // of an image
  for (std::size_t d = 1; d < x.box.extents.size(); ++d) {
    r.features *= x.box.extents[d];
    r.whole *= x.global[d];
    if (d > 1) positions *= x.global[d];
  }
  r.channels = r.features / r.spatial;
  r.first = x.box.offsets[1] * positions;
  r.weights = weights.as<const float>();
  if (target.dtype == DType::i32) {
    r.labels = target.as<const std::int32_t>();
  } else {
    expect_alike(x, target);
    r.target = target.as<const float>();
  }
  ensure(target.extent(0) == r.rows && weights.size() == r.rows, call.node.name + ": operands have different rows");
  return r;
}

/// log(1 + exp(z)) for z <= 0.
KOKKOS_INLINE_FUNCTION double softplus(double z) {
  return device::math::log(1.0 + device::math::exp(z));
}

/// One row of a loss: terms[2 row] its weighted loss, terms[2 row + 1] the share of right elements.
struct LossRow {
  Rows r;
  Kind kind;
  double* terms;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* x = r.x + row * r.features;
    const double weight = r.weights[row], share = 1.0 / static_cast<double>(r.whole);
    double sum = 0, right = 0;
    if (weight != 0 && kind == Kind::mse) {
      sum = team.sum(r.features, [&](std::int64_t i) {
        const double difference = static_cast<double>(x[i]) - r.target_of(row, i);
        return difference * difference;
      });
    } else if (weight != 0) {
      sum = team.sum(r.features, [&](std::int64_t i) {
        const double value = x[i], size = value < 0 ? -value : value;
        return (value > 0 ? value : 0.0) - value * r.target_of(row, i) + softplus(-size);
      });
      right = team.sum(r.features, [&](std::int64_t i) { return (x[i] > 0) == (r.target_of(row, i) > 0.5f) ? 1 : 0; });
    }
    if (!team.leads()) return;
    terms[2 * row] = weight * sum * share;
    terms[2 * row + 1] = weight > 0 ? right * share : 0;
  }
};

void loss(const Exec& exec, const Call& call, Kind kind) {
  const Rows r = rows_of(call);
  for (const TensorView& result : call.outputs) expect(result, DType::f32);
  auto* terms = static_cast<double*>(call.scratch); // [row][loss, correct]
  device::teams_for(exec, r.rows, 8 * r.features, "soybean::pointwise_loss::rows", LossRow{r, kind, terms});
  float* first = call.outputs[0].as<float>();
  float* second = call.outputs.size() > 1 ? call.outputs[1].as<float>() : nullptr;
  device::channel_sums(
      exec, r.rows, 2, terms + 2 * r.rows, "soybean::pointwise_loss::sum",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return terms[2 * row + i]; },
      KOKKOS_LAMBDA(std::int64_t i, double sum) {
        if (i == 0) *first = static_cast<float>(sum);
        if (i == 1 && second != nullptr) *second = static_cast<float>(sum);
      });
}

double factor_of(const graph::Node& node) {
  return node.attributes.has("factor") ? node.attributes.real("factor") : 1.0;
}

/// dx of every element, of a row's weight and the factor of the loss.
void gradient(const Exec& exec, const Call& call, Kind kind) {
  const Rows r = rows_of(call);
  expect_alike(call.inputs[0], call.outputs[0]);
  float* dx = call.outputs[0].as<float>();
  const auto share =
      static_cast<float>((kind == Kind::mse ? 2 : 1) * factor_of(call.node) / static_cast<double>(r.whole));
  device::rows_for(
      exec, r.rows, r.features, "soybean::pointwise_loss_grad", KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) {
        const float weight = r.weights[row] * share, value = r.x[row * r.features + i];
        const float target = r.target_of(row, i);
        const float guess = kind == Kind::mse ? value : 1.0f / (1.0f + device::math::exp(-value));
        dx[row * r.features + i] = weight == 0 ? 0.0f : weight * (guess - target);
      });
}

} // namespace

void run_mse(const Exec& exec, const Call& call) {
  loss(exec, call, Kind::mse);
}
void run_binary_cross_entropy(const Exec& exec, const Call& call) {
  loss(exec, call, Kind::binary_cross_entropy);
}
std::int64_t scratch_pointwise_loss(const Exec& exec, const Call& call) {
  const std::int64_t rows = call.inputs[0].extent(0);
  return 2 * rows * static_cast<std::int64_t>(sizeof(double)) + device::channel_sums_scratch(exec, rows, 2);
}
void run_mse_grad(const Exec& exec, const Call& call) {
  gradient(exec, call, Kind::mse);
}
void run_binary_cross_entropy_grad(const Exec& exec, const Call& call) {
  gradient(exec, call, Kind::binary_cross_entropy);
}

void run_total_loss(const Exec& exec, const Call& call) {
  float* total = call.outputs[0].as<float>();
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const auto factor = static_cast<float>(call.node.attributes.real(fmt::format("factor_{}", k)));
    const float* part = call.inputs[k].as<const float>();
    const bool first = k == 0;
    device::flat_for(
        exec, 1, "soybean::total_loss", KOKKOS_LAMBDA(std::int64_t) {
          const float sum = first ? 0.0f : *total;
          *total = sum + factor * *part;
        });
  }
}

} // namespace soybean::kernels
