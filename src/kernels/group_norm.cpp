// Group and layer normalisation, f32; sums in double. A block of n elements: forward reads 4n bytes three times (twice
// from cache where a group fits) and writes 4n; the gradient reads 8n three or four times and writes 4n; the sums by
// weight read 4n twice and 8n once. About 7, 14 and 8 flops per element.
#include "kernels/group_norm.hpp"

#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

#include <type_traits>

namespace soybean::kernels {

Groups make_groups(const graph::Node& node, const TensorView& x) {
  const auto [rows, channels] = channel_rows(x);
  Groups g;
  g.samples = x.extent(0);
  g.channels = channels;
  g.positions = x.box.extents.size() == 4 ? x.extent(2) * x.extent(3) : 1;
  g.eps = node.attributes.real("eps");
  g.centred = !node.op.starts_with("rms_norm");
  if (g.centred && !node.op.starts_with("layer_norm")) {
    const std::int64_t all = node.attributes.integer("groups");
    g.width = x.global[1] / all;
    g.groups = channels / g.width;
    ensure(g.groups * g.width == channels && x.box.offsets[1] % g.width == 0, "a block cuts through a group");
    return g;
  }
  ensure(channels == x.global[1], "a layer norm needs all channels");
  g.width = channels;
  if (!g.centred || node.attributes.text("over") == "channels") {
    g.samples = rows;
    g.positions = 1;
  } else if (g.positions > 1) {
    g.weight_position = 1;
    g.weight_channel = g.positions;
  }
  return g;
}

namespace {

/// The values of one group of one sample: element (s, c) is at first + s·stride + c.
struct Group {
  std::int64_t first, positions, width, stride;
};
KOKKOS_INLINE_FUNCTION Group group_at(const Groups& g, std::int64_t item) {
  const std::int64_t sample = item / g.groups, group = item % g.groups;
  return {sample * g.positions * g.channels + group * g.width, g.positions, g.width, g.channels};
}

/// Σ term(s, c) over a group, in double.
template<class Team, class Term>
KOKKOS_INLINE_FUNCTION double sum_of(const Team& team, const Group& group, const Term& term) {
  if constexpr (std::is_same_v<Team, device::HostTeam>) {
    double total = 0;
    for (std::int64_t s = 0; s < group.positions; ++s) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t c = 0; c < group.width; ++c) sum += static_cast<double>(term(s, c));
      total += sum;
    }
    return total;
  } else {
    return team.sum(group.positions * group.width,
                    [&](std::int64_t i) { return term(i / group.width, i % group.width); });
  }
}

/// f(s, c) for all of a group.
template<class Team, class F>
KOKKOS_INLINE_FUNCTION void each_of(const Team& team, const Group& group, const F& f) {
  if constexpr (std::is_same_v<Team, device::HostTeam>) {
    for (std::int64_t s = 0; s < group.positions; ++s) {
#pragma omp simd
      for (std::int64_t c = 0; c < group.width; ++c) f(s, c);
    }
  } else {
    team.each(group.positions * group.width, [&](std::int64_t i) { f(i / group.width, i % group.width); });
  }
}

struct Statistics {
  float mean, r;
};
template<class Team>
KOKKOS_INLINE_FUNCTION Statistics statistics_of(const Team& team, const Group& group, const float* x, const Groups& g) {
  const double count = static_cast<double>(group.positions * group.width);
  const float* from = x + group.first;
  double mean = 0;
  if (g.centred)
    mean = sum_of(team, group, [&](std::int64_t s, std::int64_t c) { return from[s * group.stride + c]; }) / count;
  const auto middle = static_cast<float>(mean);
  const double variance = sum_of(team, group,
                                 [&](std::int64_t s, std::int64_t c) {
                                   const float d = from[s * group.stride + c] - middle;
                                   return d * d;
                                 }) /
                          count;
  return {middle, static_cast<float>(1 / device::math::sqrt(variance + g.eps))};
}

/// The place of a group's first weight.
KOKKOS_INLINE_FUNCTION std::int64_t first_weight(const Groups& g, std::int64_t item) {
  return item % g.groups * g.width * g.weight_channel;
}

struct Forward {
  Groups g;
  const float *x, *weight, *bias;
  float* y;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t item) const {
    const Group group = group_at(g, item);
    const Statistics st = statistics_of(team, group, x, g);
    const float* from = x + group.first;
    float* to = y + group.first;
    if (weight == nullptr) {
      each_of(team, group, [&](std::int64_t s, std::int64_t c) {
        to[s * group.stride + c] = (from[s * group.stride + c] - st.mean) * st.r;
      });
      return;
    }
    const std::int64_t first = first_weight(g, item);
    const float *w = weight + first, *b = bias + first;
    if (!g.centred) {
      each_of(team, group, [&](std::int64_t s, std::int64_t c) {
        to[s * group.stride + c] = from[s * group.stride + c] * st.r * w[c];
      });
      return;
    }
    if (g.weight_channel == 1) {
      each_of(team, group, [&](std::int64_t s, std::int64_t c) {
        to[s * group.stride + c] = (from[s * group.stride + c] - st.mean) * st.r * w[c] + b[c];
      });
      return;
    }
    each_of(team, group, [&](std::int64_t s, std::int64_t c) {
      const std::int64_t k = s * g.weight_position + c * g.weight_channel;
      to[s * group.stride + c] = (from[s * group.stride + c] - st.mean) * st.r * w[k] + b[k];
    });
  }
};

struct Gradient {
  Groups g;
  const float *dy, *x, *weight; // weight may be null
  float* dx;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t item) const {
    const Group group = group_at(g, item);
    const Statistics st = statistics_of(team, group, x, g);
    const float *from = x + group.first, *above = dy + group.first;
    const float* w = weight == nullptr ? nullptr : weight + first_weight(g, item);
    const auto slope = [&](std::int64_t s, std::int64_t c) {
      const float factor = w == nullptr ? 1.0f : w[s * g.weight_position + c * g.weight_channel];
      return above[s * group.stride + c] * factor;
    };
    const auto normal = [&](std::int64_t s, std::int64_t c) { return (from[s * group.stride + c] - st.mean) * st.r; };
    const double count = static_cast<double>(group.positions * group.width);
    const auto constant = g.centred ? static_cast<float>(sum_of(team, group, slope) / count) : 0.0f;
    const auto along = static_cast<float>(
        sum_of(team, group, [&](std::int64_t s, std::int64_t c) { return slope(s, c) * normal(s, c); }) / count);
    float* to = dx + group.first;
    each_of(team, group, [&](std::int64_t s, std::int64_t c) {
      to[s * group.stride + c] = st.r * ((slope(s, c) - constant) - normal(s, c) * along);
    });
  }
};

/// Mean and r of every group: [sample][group][2].
struct Summary {
  Groups g;
  const float* x;
  float* statistics;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t item) const {
    const Statistics st = statistics_of(team, group_at(g, item), x, g);
    if (!team.leads()) return;
    statistics[2 * item] = st.mean;
    statistics[2 * item + 1] = st.r;
  }
};

const float* weight_of(const Groups& g, const Call& call, std::size_t i) {
  if (call.inputs.size() <= i) return nullptr;
  expect(call.inputs[i], DType::f32);
  ensure(call.inputs[i].size() == g.weights(), "weights and groups differ");
  return call.inputs[i].as<const float>();
}

} // namespace

void run_group_norm(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect_alike(x, y);
  const Groups g = make_groups(call.node, x);
  device::teams_for(exec, g.samples * g.groups, 3 * g.positions * g.width, "soybean::group_norm",
                    Forward{g, x.as<const float>(), weight_of(g, call, 1), weight_of(g, call, 2), y.as<float>()});
}

void run_group_norm_grad(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  expect(x, DType::f32);
  expect_alike(dy, x);
  expect_alike(dy, dx);
  const Groups g = make_groups(call.node, x);
  device::teams_for(exec, g.samples * g.groups, 5 * g.positions * g.width, "soybean::group_norm_grad",
                    Gradient{g, dy.as<const float>(), x.as<const float>(), weight_of(g, call, 2), dx.as<float>()});
}

void run_group_norm_sums(const Exec& exec, const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1];
  expect(x, DType::f32);
  expect_alike(dy, x);
  const Groups g = make_groups(call.node, x);
  for (const TensorView& result : call.outputs)
    ensure(result.dtype == DType::f32 && result.size() == g.weights(), "weights and groups differ");
  const std::int64_t items = g.samples * g.groups;
  auto* statistics = static_cast<float*>(call.scratch);
  void* rest = statistics + (2 * items + 15) / 16 * 16;
  const float *from = x.as<const float>(), *above = dy.as<const float>();
  device::teams_for(exec, items, 2 * g.positions * g.width, "soybean::group_norm_sums::statistics",
                    Summary{g, from, statistics});
  float *bias = g.centred ? call.outputs[0].as<float>() : nullptr, *weight = call.outputs.back().as<float>();
  // Rows of samples where there is a weight for every value, of positions else.
  const bool whole = g.weight_position != 0;
  const std::int64_t rows = whole ? g.samples : g.samples * g.positions, columns = whole ? g.sample_size() : g.channels;
  const std::int64_t rows_of_sample = whole ? 1 : g.positions;
  device::channel_pair_sums(
      exec, rows, columns, rest, "soybean::group_norm_sums",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { return above[row * columns + i]; },
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) {
        const std::int64_t group = g.groups == 1 ? 0 : i / g.width;
        const float* st = statistics + 2 * (row / rows_of_sample * g.groups + group);
        return above[row * columns + i] * ((from[row * columns + i] - st[0]) * st[1]);
      },
      KOKKOS_LAMBDA(std::int64_t i, double first, double second) {
        const std::int64_t k = whole ? i / g.channels * g.weight_position + i % g.channels * g.weight_channel : i;
        if (bias != nullptr) bias[k] = static_cast<float>(first);
        weight[k] = static_cast<float>(second);
      });
}

std::int64_t scratch_group_norm_sums(const Exec& exec, const Call& call) {
  const Groups g = make_groups(call.node, call.inputs[0]);
  const bool whole = g.weight_position != 0;
  const std::int64_t floats = (2 * g.samples * g.groups + 15) / 16 * 16;
  return floats * static_cast<std::int64_t>(sizeof(float)) +
         device::channel_pair_sums_scratch(exec, whole ? g.samples : g.samples * g.positions,
                                           whole ? g.sample_size() : g.channels);
}

} // namespace soybean::kernels
