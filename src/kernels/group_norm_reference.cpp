// Group and layer normalisation in f64 on the host: the formulas of group_norm.hpp, group by group.
#include "kernels/group_norm.hpp"
#include "kernels/layout.hpp"

#include <cmath>
#include <vector>

namespace soybean::kernels::reference {

namespace {

/// f(offset, weight index) for all values of a group of a sample.
template<class F>
void each(const Groups& g, std::int64_t sample, std::int64_t group, F f) {
  for (std::int64_t s = 0; s < g.positions; ++s)
    for (std::int64_t c = group * g.width; c < (group + 1) * g.width; ++c)
      f((sample * g.positions + s) * g.channels + c, s * g.weight_position + c * g.weight_channel);
}

struct Statistics {
  double mean = 0, r = 0;
};
Statistics statistics(const Groups& g, std::int64_t sample, std::int64_t group, const double* x) {
  const auto count = static_cast<double>(g.positions * g.width);
  Statistics st;
  if (g.centred) each(g, sample, group, [&](std::int64_t i, std::int64_t) { st.mean += x[i] / count; });
  double variance = 0;
  each(g, sample, group,
       [&](std::int64_t i, std::int64_t) { variance += (x[i] - st.mean) * (x[i] - st.mean) / count; });
  st.r = 1 / std::sqrt(variance + g.eps);
  return st;
}

const double* weight_of(const Groups& g, const Call& call, std::size_t i) {
  if (call.inputs.size() <= i) return nullptr;
  expect(call.inputs[i], DType::f64);
  ensure(call.inputs[i].size() == g.weights(), "weights and groups differ");
  return call.inputs[i].as<const double>();
}

template<class F>
void each_group(const Groups& g, F f) {
  for (std::int64_t sample = 0; sample < g.samples; ++sample)
    for (std::int64_t group = 0; group < g.groups; ++group) f(sample, group);
}

} // namespace

void run_group_norm(const Exec&, const Call& call) {
  const TensorView &in = call.inputs[0], &y = call.outputs[0];
  expect(in, DType::f64);
  expect_alike(in, y);
  const Groups g = make_groups(call.node, in);
  const double *x = in.as<double>(), *weight = weight_of(g, call, 1), *bias = weight_of(g, call, 2);
  each_group(g, [&](std::int64_t sample, std::int64_t group) {
    const Statistics st = statistics(g, sample, group, x);
    each(g, sample, group, [&](std::int64_t i, std::int64_t k) {
      const double normal = (x[i] - st.mean) * st.r;
      y.as<double>()[i] = (weight ? normal * weight[k] : normal) + (bias ? bias[k] : 0);
    });
  });
}

void run_group_norm_grad(const Exec&, const Call& call) {
  const TensorView &above = call.inputs[0], &in = call.inputs[1], &dx = call.outputs[0];
  expect(in, DType::f64);
  expect_alike(above, in);
  expect_alike(above, dx);
  const Groups g = make_groups(call.node, in);
  const double *dy = above.as<double>(), *x = in.as<double>(), *weight = weight_of(g, call, 2);
  const auto count = static_cast<double>(g.positions * g.width);
  each_group(g, [&](std::int64_t sample, std::int64_t group) {
    const Statistics st = statistics(g, sample, group, x);
    const auto slope = [&](std::int64_t i, std::int64_t k) { return weight ? dy[i] * weight[k] : dy[i]; };
    double constant = 0, along = 0;
    each(g, sample, group, [&](std::int64_t i, std::int64_t k) {
      if (g.centred) constant += slope(i, k) / count;
      along += slope(i, k) * (x[i] - st.mean) * st.r / count;
    });
    each(g, sample, group, [&](std::int64_t i, std::int64_t k) {
      dx.as<double>()[i] = st.r * (slope(i, k) - constant - (x[i] - st.mean) * st.r * along);
    });
  });
}

void run_group_norm_sums(const Exec&, const Call& call) {
  const TensorView &above = call.inputs[0], &in = call.inputs[1];
  expect(in, DType::f64);
  expect_alike(above, in);
  const Groups g = make_groups(call.node, in);
  for (const TensorView& result : call.outputs) {
    ensure(result.dtype == DType::f64 && result.size() == g.weights(), "weights and groups differ");
    for (std::int64_t k = 0; k < result.size(); ++k) result.as<double>()[k] = 0;
  }
  const double *dy = above.as<double>(), *x = in.as<double>();
  each_group(g, [&](std::int64_t sample, std::int64_t group) {
    const Statistics st = statistics(g, sample, group, x);
    each(g, sample, group, [&](std::int64_t i, std::int64_t k) {
      if (g.centred) call.outputs[0].as<double>()[k] += dy[i];
      call.outputs.back().as<double>()[k] += dy[i] * (x[i] - st.mean) * st.r;
    });
  });
}

} // namespace soybean::kernels::reference
