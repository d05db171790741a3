// Rotary encodings and attention in f64 on the host, query by query.
#include "kernels/attention.hpp"
#include "kernels/layout.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace soybean::kernels::reference {

namespace {

/// Where an element of a head begins, of queries and of keys.
std::int64_t query_at(const Heads& s, std::int64_t sample, std::int64_t head, std::int64_t i) {
  return ((sample * s.queries + i) * s.heads + head) * s.width;
}
std::int64_t key_at(const Heads& s, std::int64_t sample, std::int64_t head, std::int64_t j) {
  return ((sample * s.keys + j) * s.kv_heads + head / (s.heads / s.kv_heads)) * s.width;
}
std::int64_t visible(const Heads& s, std::int64_t i) {
  return s.causal ? std::min(s.keys, s.first_query + i + 1) : s.keys;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

/// f(sample, head, query) for all of them.
template<class F>
void each_query(const Heads& s, F f) {
  for (std::int64_t sample = 0; sample < s.samples; ++sample)
    for (std::int64_t head = 0; head < s.heads; ++head)
      for (std::int64_t i = 0; i < s.queries; ++i) f(sample, head, i);
}

} // namespace

void run_rotary(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect_alike(x, y);
  const std::int64_t width = x.global[1] / call.node.attributes.integer("heads"), half = width / 2;
  const double base = call.node.attributes.real("base");
  const double sign = call.node.attributes.integer("inverse") == 1 ? -1 : 1;
  const std::int64_t positions = x.extent(2), heads = x.extent(1) / width;
  for (std::int64_t row = 0; row < x.extent(0) * positions; ++row)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < half; ++i) {
        const auto position = static_cast<double>(x.box.offsets[2] + row % positions);
        const double angle = position * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
        const std::int64_t at = (row * heads + head) * width + i;
        const double a = x.as<double>()[at], b = x.as<double>()[at + half];
        y.as<double>()[at] = a * std::cos(angle) - sign * b * std::sin(angle);
        y.as<double>()[at + half] = b * std::cos(angle) + sign * a * std::sin(angle);
      }
}

void run_attention(const Exec&, const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f64);
  const Heads s = make_heads(call.node, call.inputs[0], call.inputs[1]);
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  const double *q = call.inputs[0].as<double>(), *k = call.inputs[1].as<double>(), *v = call.inputs[2].as<double>();
  double *y = call.outputs[0].as<double>(), *logsumexp = call.outputs[1].as<double>();
  std::vector<double> scores(static_cast<std::size_t>(s.keys));
  each_query(s, [&](std::int64_t sample, std::int64_t head, std::int64_t i) {
    const std::int64_t at = query_at(s, sample, head, i), count = visible(s, i);
    double most = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      scores[j] = scale * dot(q + at, k + key_at(s, sample, head, j), s.width);
      most = std::max(most, scores[j]);
    }
    for (std::int64_t d = 0; d < s.width; ++d) y[at + d] = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += std::exp(scores[j] - most);
    for (std::int64_t j = 0; j < count; ++j) {
      const double share = std::exp(scores[j] - most) / sum;
      for (std::int64_t d = 0; d < s.width; ++d) y[at + d] += share * v[key_at(s, sample, head, j) + d];
    }
    logsumexp[at / s.width] = most + std::log(sum);
  });
}

void run_attention_grad(const Exec&, const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f64);
  const Heads s = make_heads(call.node, call.inputs[2], call.inputs[3]);
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  const auto operand = [&](std::size_t i) { return call.inputs[i].as<const double>(); };
  const double *dy = operand(0), *y = operand(1), *q = operand(2), *k = operand(3), *v = operand(4);
  double *dq = call.outputs[0].as<double>(), *dk = call.outputs[1].as<double>(), *dv = call.outputs[2].as<double>();
  for (const TensorView& view : call.outputs) std::fill_n(view.as<double>(), view.size(), 0.0);
  each_query(s, [&](std::int64_t sample, std::int64_t head, std::int64_t i) {
    const std::int64_t at = query_at(s, sample, head, i);
    const double delta = dot(dy + at, y + at, s.width);
    for (std::int64_t j = 0; j < visible(s, i); ++j) {
      const std::int64_t key = key_at(s, sample, head, j);
      const double share = std::exp(scale * dot(q + at, k + key, s.width) - operand(5)[at / s.width]);
      const double slope = scale * share * (dot(dy + at, v + key, s.width) - delta);
      for (std::int64_t d = 0; d < s.width; ++d) {
        dq[at + d] += slope * k[key + d];
        dk[key + d] += slope * q[at + d];
        dv[key + d] += share * dy[at + d];
      }
    }
  });
}

} // namespace soybean::kernels::reference
