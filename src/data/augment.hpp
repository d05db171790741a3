#pragma once
// Random changes of training images. Each is a function of (seed, sample, epoch) and its place in the list alone, so
// the same on every rank that needs a part of the sample, whatever was read before. Used by the loader, on whole
// samples.
#include "config/data_options.hpp"
#include "data/reader.hpp"

#include <cstdint>
#include <vector>

namespace soybean::data {

/// An image being changed: [channels, height, width].
template<class T>
struct Picture {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<T> values;
  std::vector<T> spare; ///< of no meaning; kept for its memory
};

/// A rectangle to be set to 0 after normalisation, rows [top, bottom), columns [left, right).
struct Hole {
  std::int64_t top, bottom, left, right;
};

struct AugmentKey {
  std::uint64_t seed = 1;
  std::int64_t sample = 0, epoch = 0;
};

/// What images become: the model's input, `white` the value that counts as white.
struct AugmentTarget {
  std::int64_t height = 0, width = 0;
  double white = 1;
};

/// How images have to be read for these steps.
Fit fit_for(const std::vector<config::AugmentStep>& steps);

/// Applies the steps in order, those that mix samples left out (mix.hpp); formulas as torchvision's on images of
/// floating point (RandomHorizontalFlip, RandomCrop, RandomResizedCrop with antialias, ColorJitter), cutout that of
/// DeVries and Taylor (arXiv 1708.04552): a square around a random pixel, cut off at the borders. Random numbers are
/// our own.
template<class T>
void augment(const std::vector<config::AugmentStep>& steps, const AugmentKey& key, const AugmentTarget& target,
             Picture<T>& picture, std::vector<Hole>& holes);

// The single changes, with what chance has chosen.

template<class T>
void flip(Picture<T>& picture, bool vertical);
/// The window of that size whose first pixel is (top, left); outside the image there is 0.
template<class T>
void crop(Picture<T>& picture, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width);
/// The picture resized linearly, antialiased, horizontally first.
template<class T>
void resize(Picture<T>& picture, std::int64_t height, std::int64_t width);
template<class T>
void adjust_brightness(Picture<T>& picture, double factor, double white);
template<class T>
void adjust_contrast(Picture<T>& picture, double factor, double white);
template<class T>
void adjust_saturation(Picture<T>& picture, double factor, double white);
template<class T>
void adjust_hue(Picture<T>& picture, double shift, double white);

} // namespace soybean::data
