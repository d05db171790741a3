// Sums, f32, added up in double. Of n elements: 4n bytes (8n of products) and n flops. expand to n elements: 4n bytes.
#include "kernels/reduce.hpp"

#include "device/reduce.hpp"
#include "device/rows.hpp"
#include "device/teams.hpp"
#include "kernels/repeat.hpp"
#include "kernels/spans.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

/// The terms of a sum: x, or the product of two.
struct Terms {
  const float *x, *u; // u null: x alone
  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i) const { return u == nullptr ? x[i] : x[i] * u[i]; }
};

Terms terms_of(const Call& call) {
  for (const TensorView& view : call.inputs) {
    expect(view, DType::f32);
    expect_alike(view, call.inputs[0]);
  }
  return {call.inputs[0].as<const float>(), call.inputs.size() > 1 ? call.inputs[1].as<const float>() : nullptr};
}

/// y[i] = factor·Σ over a run of `length` elements.
struct Runs {
  Terms terms;
  std::int64_t length;
  double factor;
  float* y;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t i) const {
    const double sum = team.sum(length, [&](std::int64_t k) { return terms(i * length + k); });
    if (team.leads()) y[i] = static_cast<float>(factor * sum);
  }
};

/// Over positions: y[b][c] = factor·Σ over s of [b][s][c].
void over_positions(const Exec& exec, const Terms& terms, const Cells& cells, double factor, float* y) {
  const std::int64_t positions = cells.positions, channels = cells.channels;
  spans_for(
      exec, cells.samples, channels, positions, "soybean::reduce::positions",
      KOKKOS_LAMBDA(std::int64_t b, std::int64_t begin, int width) {
        double sums[span_width];
        for (int i = 0; i < width; ++i) sums[i] = 0;
        for (std::int64_t s = 0; s < positions; ++s) {
          const std::int64_t first = (b * positions + s) * channels + begin;
#pragma omp simd
          for (int i = 0; i < width; ++i) sums[i] += static_cast<double>(terms(first + i));
        }
        for (int i = 0; i < width; ++i) y[b * channels + begin + i] = static_cast<float>(factor * sums[i]);
      });
}

} // namespace

void run_reduce(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(y, DType::f32);
  const Terms terms = terms_of(call);
  const Cells cells = cells_of(x);
  const std::vector<std::int64_t>& dims = call.node.attributes.integers("dims");
  const bool channels = std::count(dims.begin(), dims.end(), 1) > 0;
  const bool positions = std::count(dims.begin(), dims.end(), 2) > 0;
  const double factor = call.node.attributes.real("factor");
  float* to = y.as<float>();
  if (y.size() == 0) return; // of a single channel, which another rank has
  if (!channels) return over_positions(exec, terms, cells, factor, to);
  const std::int64_t runs = positions ? cells.samples : cells.rows();
  const std::int64_t length = positions ? cells.positions * cells.channels : cells.channels;
  ensure(y.size() == runs, "the result of a sum has another size");
  device::teams_for(exec, runs, length, "soybean::reduce", Runs{terms, length, factor, to});
}

void run_reduce_batch(const Exec& exec, const Call& call) {
  const TensorView& y = call.outputs[0];
  expect(y, DType::f32);
  const Terms terms = terms_of(call);
  const Cells cells = cells_of(call.inputs[0]);
  ensure(y.size() == cells.channels, "the result of a sum has another size");
  const double factor = call.node.attributes.real("factor");
  const std::int64_t channels = cells.channels;
  float* to = y.as<float>();
  device::channel_sums(
      exec, cells.rows(), channels, call.scratch, "soybean::reduce_batch",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return terms(row * channels + c); },
      KOKKOS_LAMBDA(std::int64_t c, double sum) { to[c] = static_cast<float>(factor * sum); });
}

std::int64_t scratch_reduce_batch(const Exec& exec, const Call& call) {
  const Cells cells = cells_of(call.inputs[0]);
  return device::channel_sums_scratch(exec, cells.rows(), cells.channels);
}

void run_expand(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  const Cells cells = cells_of(y);
  const Steps steps = steps_of(x, y);
  const auto factor = static_cast<float>(call.node.attributes.real("factor"));
  const float* from = x.as<const float>();
  float* to = y.as<float>();
  const std::int64_t positions = cells.positions, channels = cells.channels;
  device::rows_for(
      exec, cells.rows(), channels, "soybean::expand", KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const std::int64_t sample = row / positions, position = row - sample * positions;
        to[row * channels + c] = factor * from[steps.at(sample, position, c)];
      });
}

} // namespace soybean::kernels
