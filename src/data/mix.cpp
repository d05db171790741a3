#include "data/mix.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace soybean::data {

namespace {

/// The logarithm of a number of the distribution Gamma(shape). Below 1 it is that of shape + 1 times U^(1/shape), which
/// is 0 as a number where shape is small.
double draw_log_gamma(double shape, Draws& draws) {
  const auto above_zero = [&] { return 1 - draws.uniform(); };
  double more = 0;
  if (shape < 1) {
    more = std::log(above_zero()) / shape;
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(above_zero()));
    const double x = radius * std::cos(2 * std::numbers::pi * draws.uniform()); // normal
    const double u = above_zero(), root = 1 + c * x, v = root * root * root;
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return std::log(d * v) + more;
  }
}

/// A window of a share 1 − `share` of the image around a random pixel, cut off at its borders; share becomes what is
/// left (algorithm A1 of the paper).
Hole random_window(const AugmentTarget& target, Draws& draws, double& share) {
  const double ratio = std::sqrt(1 - share);
  const auto side = [&](std::int64_t whole) { return static_cast<std::int64_t>(static_cast<double>(whole) * ratio); };
  const std::int64_t up = side(target.height) / 2, left = side(target.width) / 2;
  const std::int64_t y = draws.below(target.height), x = draws.below(target.width);
  const Hole window{std::max<std::int64_t>(0, y - up), std::min(target.height, y + up),
                    std::max<std::int64_t>(0, x - left), std::min(target.width, x + left)};
  const std::int64_t area = (window.bottom - window.top) * (window.right - window.left);
  share = 1 - static_cast<double>(area) / static_cast<double>(target.height * target.width);
  return window;
}

} // namespace

double draw_beta(double alpha, Draws& draws) {
  alpha = std::max(alpha, 1e-12); // already all but certain to give 0 or 1
  const double a = draw_log_gamma(alpha, draws), b = draw_log_gamma(alpha, draws);
  return 1 / (1 + std::exp(b - a));
}

Mix mix_for(const std::vector<config::AugmentStep>& steps, const AugmentKey& key, std::int64_t samples,
            const AugmentTarget& target) {
  for (std::size_t place = 0; place < steps.size(); ++place) {
    const config::AugmentStep& step = steps[place];
    if (!config::mixes(step)) continue;
    Draws draws(key, place);
    if (draws.uniform() >= step.p) continue;
    Mix mix{.partner = draws.below(samples)};
    mix.share = draw_beta(step.alpha, draws);
    if (step.op == "cutmix") mix.window = random_window(target, draws, mix.share);
    return mix;
  }
  return {.partner = key.sample};
}

template<class T>
void blend(const Mix& mix, const Box& part, const T* partner, T* values) {
  if (!mix.window) {
    const std::int64_t count = volume(part);
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(mix.share * static_cast<double>(values[i]) +
                                 (1 - mix.share) * static_cast<double>(partner[i]));
    return;
  }
  const std::int64_t top = part.offsets[1], left = part.offsets[2], height = part.extents[1], width = part.extents[2];
  const std::int64_t begin = std::clamp<std::int64_t>(mix.window->left - left, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(mix.window->right - left, 0, width);
  const std::int64_t last = std::min(height, mix.window->bottom - top);
  for (std::int64_t c = 0; c < part.extents[0]; ++c)
    for (std::int64_t y = std::max<std::int64_t>(0, mix.window->top - top); y < last; ++y) {
      const std::int64_t row = (c * height + y) * width;
      std::copy(partner + row + begin, partner + row + end, values + row + begin);
    }
}

template void blend(const Mix&, const Box&, const float*, float*);
template void blend(const Mix&, const Box&, const double*, double*);

} // namespace soybean::data
