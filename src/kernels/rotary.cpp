#include "device/math.hpp"
#include "device/rows.hpp"
#include "kernels/attention.hpp"
#include "kernels/layout.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

struct Rotation {
  std::int64_t rows, positions, first; ///< of the block; its first position
  std::int64_t heads, half;            ///< of the block; pairs of a head
  double base, sign;
};
Rotation rotation_of(const Call& call) {
  const TensorView& x = call.inputs[0];
  const auto [rows, channels] = channel_rows(x);
  const std::int64_t width = x.global[1] / call.node.attributes.integer("heads");
  ensure(channels % width == 0 && x.box.offsets[1] % width == 0, "a block cuts through a head");
  return {.rows = rows,
          .positions = std::max<std::int64_t>(1, x.extent(2)),
          .first = x.box.offsets[2],
          .heads = channels / width,
          .half = width / 2,
          .base = call.node.attributes.real("base"),
          .sign = call.node.attributes.integer("inverse") == 1 ? -1.0 : 1.0};
}

} // namespace

void run_rotary(const Exec& exec, const Call& call) {
  expect(call.inputs[0], DType::f32);
  expect_alike(call.inputs[0], call.outputs[0]);
  const Rotation r = rotation_of(call);
  auto* table = static_cast<float*>(call.scratch); // [position][pair][cos, sin]
  device::item_for(
      exec, r.positions * r.half, 64, "soybean::rotary::angles", KOKKOS_LAMBDA(std::int64_t i) {
        const double exponent = -static_cast<double>(i % r.half) / static_cast<double>(r.half);
        const double angle = static_cast<double>(r.first + i / r.half) * device::math::pow(r.base, exponent);
        table[2 * i] = static_cast<float>(device::math::cos(angle));
        table[2 * i + 1] = static_cast<float>(r.sign * device::math::sin(angle));
      });
  const auto* x = call.inputs[0].as<const float>();
  auto* y = call.outputs[0].as<float>();
  device::rows_for(
      exec, r.rows * r.heads, r.half, "soybean::rotary", KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) {
        const float* angle = table + 2 * (row / r.heads % r.positions * r.half + i);
        const float a = x[2 * row * r.half + i], b = x[(2 * row + 1) * r.half + i];
        y[2 * row * r.half + i] = a * angle[0] - b * angle[1];
        y[(2 * row + 1) * r.half + i] = b * angle[0] + a * angle[1];
      });
}

std::int64_t scratch_rotary(const Exec&, const Call& call) {
  const Rotation r = rotation_of(call);
  return 2 * r.positions * r.half * static_cast<std::int64_t>(sizeof(float));
}

} // namespace soybean::kernels
