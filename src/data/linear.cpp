#include "data/linear.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::data {

Taps linear_taps(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0); // half the width of the triangle
  Taps taps;
  taps.most = 2 * static_cast<std::int64_t>(std::ceil(support)) + 1;
  taps.firsts.resize(static_cast<std::size_t>(to));
  taps.counts.resize(static_cast<std::size_t>(to));
  taps.weights.resize(static_cast<std::size_t>(to * taps.most));
  for (std::int64_t x = 0; x < to; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, std::llround(centre - support));
    const auto last = std::min<std::int64_t>(from, std::llround(centre + support));
    double* weights = taps.weights.data() + x * taps.most;
    double sum = 0;
    for (std::int64_t k = 0; k < last - first; ++k) {
      const double distance = (static_cast<double>(k + first) - centre + 0.5) * (1 / support);
      weights[k] = std::max(0.0, 1 - std::abs(distance));
      sum += weights[k];
    }
    for (std::int64_t k = 0; k < last - first; ++k)
      if (sum != 0) weights[k] /= sum;
    taps.firsts[x] = first;
    taps.counts[x] = last - first;
  }
  return taps;
}

} // namespace soybean::data
