#include "data/augment.hpp"

#include "base/error.hpp"
#include "data/draws.hpp"
#include "data/linear.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace soybean::data {

namespace {

/// Where RandomResizedCrop cuts, before it resizes.
struct Window {
  std::int64_t top, left, height, width;
};

Window random_window(const config::AugmentStep& step, std::int64_t height, std::int64_t width, Draws& draws) {
  const auto [least, most] = step.ratio;
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draws.between(step.scale[0], step.scale[1]);
    const double ratio = std::exp(draws.between(std::log(least), std::log(most)));
    const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const std::int64_t top = draws.below(height - h + 1);
    return {top, draws.below(width - w + 1), h, w};
  }
  std::int64_t h = height, w = width; // the largest in the middle whose ratio will do
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < least)
    h = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(width) / least));
  else if (ratio > most)
    w = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(height) * most));
  h = std::clamp<std::int64_t>(h, 1, height);
  w = std::clamp<std::int64_t>(w, 1, width);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

template<class T>
void random_crop(const config::AugmentStep& step, const AugmentTarget& target, Draws& draws, Picture<T>& picture) {
  const auto [high, wide] = step.padding;
  const std::int64_t rows = picture.height + 2 * high - target.height + 1;
  const std::int64_t columns = picture.width + 2 * wide - target.width + 1;
  ensure(rows > 0 && columns > 0, "an image smaller than what is to be cut from it");
  const std::int64_t top = draws.below(rows) - high;
  crop(picture, top, draws.below(columns) - wide, target.height, target.width);
}

template<class T>
void jitter(const config::AugmentStep& step, double white, Draws& draws, Picture<T>& picture) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draws.below(i + 1))]);
  const auto factor = [&](double strength) { return draws.between(std::max(0.0, 1 - strength), 1 + strength); };
  const double brightness = factor(step.brightness), contrast = factor(step.contrast);
  const double saturation = factor(step.saturation), hue = draws.between(-step.hue, step.hue);
  for (const int change : order) {
    if (change == 0 && step.brightness > 0) adjust_brightness(picture, brightness, white);
    if (change == 1 && step.contrast > 0) adjust_contrast(picture, contrast, white);
    if (change == 2 && step.saturation > 0) adjust_saturation(picture, saturation, white);
    if (change == 3 && step.hue > 0) adjust_hue(picture, hue, white);
  }
}

Hole random_hole(const config::AugmentStep& step, const AugmentTarget& target, Draws& draws) {
  const std::int64_t top = draws.below(target.height) - step.size / 2, left = draws.below(target.width) - step.size / 2;
  return {std::max<std::int64_t>(0, top), std::min(target.height, top + step.size), std::max<std::int64_t>(0, left),
          std::min(target.width, left + step.size)};
}

/// a·x + (1 − a)·y, held to [0, white].
template<class T>
T blend(T x, double y, double a, double white) {
  return static_cast<T>(std::clamp(a * static_cast<double>(x) + (1 - a) * y, 0.0, white));
}

/// The grey of pixel i as torchvision takes it; of an image with one channel that itself.
template<class T>
double grey(const Picture<T>& picture, std::int64_t i) {
  const T* v = picture.values.data() + i;
  const std::int64_t plane = picture.height * picture.width;
  if (picture.channels != 3) return static_cast<double>(v[0]);
  return 0.2989 * static_cast<double>(v[0]) + 0.587 * static_cast<double>(v[plane]) +
         0.114 * static_cast<double>(v[2 * plane]);
}

struct Colour {
  double r, g, b;
};

/// A colour of [0, 1] with its hue turned by `shift` of a circle, by way of HSV.
Colour turn_hue(const Colour& colour, double shift) {
  const auto [r, g, b] = colour;
  const double most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  const double divisor = range == 0 ? 1 : range, saturation = range / (range == 0 ? 1 : most);
  const double rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
  const double sector = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
  double hue = std::fmod(sector / 6 + 1, 1.0) + shift;
  hue -= std::floor(hue);
  const double sixths = hue * 6, whole = std::floor(sixths), rest = sixths - whole;
  const double p = most * (1 - saturation), q = most * (1 - saturation * rest);
  const double t = most * (1 - saturation * (1 - rest));
  switch (static_cast<int>(whole) % 6) {
  case 0:
    return {most, t, p};
  case 1:
    return {q, most, p};
  case 2:
    return {p, most, t};
  case 3:
    return {p, q, most};
  case 4:
    return {t, p, most};
  default:
    return {most, p, q};
  }
}

} // namespace

Fit fit_for(const std::vector<config::AugmentStep>& steps) {
  for (const config::AugmentStep& step : steps) {
    if (step.op == "crop") return Fit::covering;
    if (step.op == "resized_crop") return Fit::stored;
  }
  return Fit::sample;
}

template<class T>
void augment(const std::vector<config::AugmentStep>& steps, const AugmentKey& key, const AugmentTarget& target,
             Picture<T>& picture, std::vector<Hole>& holes) {
  holes.clear();
  for (std::size_t place = 0; place < steps.size(); ++place) {
    const config::AugmentStep& step = steps[place];
    Draws draws(key, place);
    if (step.op == "flip") {
      if (draws.uniform() < step.p) flip(picture, step.vertical);
    } else if (step.op == "crop") {
      random_crop(step, target, draws, picture);
    } else if (step.op == "resized_crop") {
      const Window w = random_window(step, picture.height, picture.width, draws);
      crop(picture, w.top, w.left, w.height, w.width);
      resize(picture, target.height, target.width);
    } else if (step.op == "colour_jitter") {
      jitter(step, target.white, draws, picture);
    } else if (step.op == "cutout") {
      holes.push_back(random_hole(step, target, draws));
    } else {
      ensure(config::mixes(step), "unknown augmentation"); // see mix.hpp
    }
  }
  ensure(picture.height == target.height && picture.width == target.width, "augmentation left another size");
}

template<class T>
void flip(Picture<T>& picture, bool vertical) {
  const std::int64_t rows = picture.channels * picture.height;
  T* values = picture.values.data();
  if (!vertical)
    for (std::int64_t row = 0; row < rows; ++row)
      std::reverse(values + row * picture.width, values + (row + 1) * picture.width);
  else
    for (std::int64_t c = 0; c < picture.channels; ++c)
      for (std::int64_t y = 0; y < picture.height / 2; ++y) {
        T* upper = values + (c * picture.height + y) * picture.width;
        T* lower = values + (c * picture.height + picture.height - 1 - y) * picture.width;
        std::swap_ranges(upper, upper + picture.width, lower);
      }
}

template<class T>
void crop(Picture<T>& picture, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  picture.spare.assign(static_cast<std::size_t>(picture.channels * height * width), T{0});
  const std::int64_t begin = std::max<std::int64_t>(0, -left), end = std::min(width, picture.width - left);
  for (std::int64_t c = 0; c < picture.channels; ++c)
    for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min(height, picture.height - top); ++y) {
      if (begin >= end) continue;
      const T* from = picture.values.data() + (c * picture.height + top + y) * picture.width + left;
      std::copy(from + begin, from + end, picture.spare.data() + (c * height + y) * width + begin);
    }
  std::swap(picture.values, picture.spare);
  picture.height = height;
  picture.width = width;
}

template<class T>
void resize(Picture<T>& picture, std::int64_t height, std::int64_t width) {
  if (width != picture.width) {
    const Taps taps = linear_taps(picture.width, width);
    const std::int64_t rows = picture.channels * picture.height;
    picture.spare.resize(static_cast<std::size_t>(rows * width));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t x = 0; x < width; ++x) {
        const T* from = picture.values.data() + row * picture.width + taps.firsts[x];
        const double* weights = taps.weights.data() + x * taps.most;
        double sum = 0;
        for (std::int64_t k = 0; k < taps.counts[x]; ++k) sum += weights[k] * static_cast<double>(from[k]);
        picture.spare[static_cast<std::size_t>(row * width + x)] = static_cast<T>(sum);
      }
    std::swap(picture.values, picture.spare);
    picture.width = width;
  }
  if (height == picture.height) return;
  const Taps taps = linear_taps(picture.height, height);
  picture.spare.resize(static_cast<std::size_t>(picture.channels * height * width));
  std::vector<double> sums(static_cast<std::size_t>(width));
  for (std::int64_t c = 0; c < picture.channels; ++c)
    for (std::int64_t y = 0; y < height; ++y) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t k = 0; k < taps.counts[y]; ++k) {
        const T* from = picture.values.data() + (c * picture.height + taps.firsts[y] + k) * width;
        const double weight = taps.weights[y * taps.most + k];
        for (std::int64_t x = 0; x < width; ++x) sums[x] += weight * static_cast<double>(from[x]);
      }
      std::transform(sums.begin(), sums.end(), picture.spare.begin() + (c * height + y) * width,
                     [](double sum) { return static_cast<T>(sum); });
    }
  std::swap(picture.values, picture.spare);
  picture.height = height;
}

template<class T>
void adjust_brightness(Picture<T>& picture, double factor, double white) {
  for (T& value : picture.values) value = blend(value, 0.0, factor, white);
}

template<class T>
void adjust_contrast(Picture<T>& picture, double factor, double white) {
  const std::int64_t plane = picture.height * picture.width;
  double mean = 0;
  for (std::int64_t i = 0; i < plane; ++i) mean += grey(picture, i);
  mean /= static_cast<double>(plane);
  for (T& value : picture.values) value = blend(value, mean, factor, white);
}

template<class T>
void adjust_saturation(Picture<T>& picture, double factor, double white) {
  if (picture.channels != 3) return;
  const std::int64_t plane = picture.height * picture.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    const double level = grey(picture, i);
    for (T* v = picture.values.data() + i; v < picture.values.data() + 3 * plane; v += plane)
      *v = blend(*v, level, factor, white);
  }
}

template<class T>
void adjust_hue(Picture<T>& picture, double shift, double white) {
  if (picture.channels != 3) return;
  const std::int64_t plane = picture.height * picture.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    T* v = picture.values.data() + i;
    const auto level = [&](std::int64_t c) { return static_cast<double>(v[c * plane]) / white; };
    const Colour turned = turn_hue({level(0), level(1), level(2)}, shift);
    v[0] = static_cast<T>(turned.r * white);
    v[plane] = static_cast<T>(turned.g * white);
    v[2 * plane] = static_cast<T>(turned.b * white);
  }
}

#define SOYBEAN_FOR(T)                                                                                                 \
  template void augment(const std::vector<config::AugmentStep>&, const AugmentKey&, const AugmentTarget&, Picture<T>&, \
                        std::vector<Hole>&);                                                                           \
  template void flip(Picture<T>&, bool);                                                                               \
  template void crop(Picture<T>&, std::int64_t, std::int64_t, std::int64_t, std::int64_t);                             \
  template void resize(Picture<T>&, std::int64_t, std::int64_t);                                                       \
  template void adjust_brightness(Picture<T>&, double, double);                                                        \
  template void adjust_contrast(Picture<T>&, double, double);                                                          \
  template void adjust_saturation(Picture<T>&, double, double);                                                        \
  template void adjust_hue(Picture<T>&, double, double);
SOYBEAN_FOR(float)
SOYBEAN_FOR(double)
#undef SOYBEAN_FOR

} // namespace soybean::data
