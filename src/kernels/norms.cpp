// Norms, f32 in, f64 out. n elements: 4n bytes and 2n flops.
#include "kernels/norms.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "kernels/layout.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

constexpr std::size_t per_launch = 16;
struct Operands {
  const double* at[per_launch];
};

} // namespace

void run_sum_of_squares(const Exec& exec, const Call& call) {
  expect(call.outputs[0], DType::f64);
  double* sums = call.outputs[0].as<double>();
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    expect(call.inputs[k], DType::f32);
    const float* x = call.inputs[k].as<const float>();
    device::total_sum(
        exec, call.inputs[k].size(), call.scratch, "soybean::sum_of_squares",
        KOKKOS_LAMBDA(std::int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); },
        KOKKOS_LAMBDA(double sum) { sums[k] = sum; });
  }
}

std::int64_t scratch_sum_of_squares(const Exec& exec, const Call& call) {
  return device::total_sum_scratch(exec, call.inputs[0].size());
}

void run_sum_of_sums(const Exec& exec, const Call& call) {
  double* total = call.outputs[0].as<double>();
  for (std::size_t begin = 0; begin < call.inputs.size(); begin += per_launch) {
    const std::size_t count = std::min(per_launch, call.inputs.size() - begin);
    Operands operands{};
    for (std::size_t k = 0; k < count; ++k) operands.at[k] = call.inputs[begin + k].as<const double>();
    const bool first = begin == 0;
    device::item_for(
        exec, 1, static_cast<std::int64_t>(per_launch), "soybean::sum_of_sums", KOKKOS_LAMBDA(std::int64_t) {
          double sum = first ? 0 : *total;
          for (std::size_t k = 0; k < count; ++k) sum += *operands.at[k];
          *total = sum;
        });
  }
}

void run_clip_factor(const Exec& exec, const Call& call) {
  const double most = call.node.attributes.real("most");
  const double* total = call.inputs[0].as<const double>();
  float* norm = call.outputs[0].as<float>();
  double* factor = call.outputs[1].as<double>();
  device::item_for(
      exec, 1, 1, "soybean::clip_factor", KOKKOS_LAMBDA(std::int64_t) {
        const double root = device::math::sqrt(*total), part = most / (root + 1e-6);
        *norm = static_cast<float>(root);
        *factor = part > 1 ? 1 : part;
      });
}

} // namespace soybean::kernels
