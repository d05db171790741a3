#include "support/layer_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace soybean::support {

using device::Pool;
using device::PoolKind;
using device::Softmax;

std::string text(const Pool& p) {
  constexpr const char* names[] = {"max", "average", "average in image"};
  return fmt::format("{} pool b{} c{} {}x{} k{}x{} s{}x{} p{}x{}", names[static_cast<int>(p.kind)], p.batch, p.channels,
                     p.height, p.width, p.kernel_h, p.kernel_w, p.stride_h, p.stride_w, p.padding_h, p.padding_w);
}

std::string text(const Softmax& s) {
  return fmt::format("{}softmax of {} rows of {}", s.logarithm ? "log " : "", s.rows, s.width);
}

std::vector<Pool> pools() {
  std::vector<Pool> result;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::average_in_image}) {
    Pool p{.kind = kind, .batch = 2, .channels = 32, .height = 14, .width = 14};
    p.kernel_h = p.kernel_w = p.stride_h = p.stride_w = 2; // VGG
    result.push_back(p);
    p.kernel_h = p.kernel_w = 3; // AlexNet
    result.push_back(p);
    p.padding_h = p.padding_w = 1; // ResNet
    result.push_back(p);
    p.stride_h = p.stride_w = 1; // Inception
    result.push_back(p);
    p.kernel_h = p.kernel_w = 14; // global
    p.padding_h = p.padding_w = 0;
    result.push_back(p);
    result.push_back({.kind = kind,
                      .batch = 3,
                      .channels = 5,
                      .height = 7,
                      .width = 11,
                      .kernel_h = 3,
                      .kernel_w = 4,
                      .stride_h = 1,
                      .stride_w = 3,
                      .padding_h = 2,
                      .padding_w = 1});
    result.push_back({.kind = kind, .batch = 1, .channels = 1, .height = 5, .width = 1, .kernel_h = 5});
  }
  return result;
}

std::vector<Softmax> softmaxes() {
  std::vector<Softmax> result;
  for (const bool logarithm : {false, true})
    for (const auto& [rows, width] : {std::pair{1, 1}, {1, 17}, {64, 10}, {7, 1000}, {70000, 3}, {2, 5001}})
      result.push_back({.rows = rows, .width = width, .logarithm = logarithm});
  return result;
}

namespace {

/// The result of the window at output position i, j of an image's channel; x[h, w] = at(h, w).
template<class F>
double window(const Pool& p, std::int64_t i, std::int64_t j, F at) {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  std::int64_t inside = 0;
  for (std::int64_t h = i * p.stride_h - p.padding_h; h < i * p.stride_h - p.padding_h + p.kernel_h; ++h)
    for (std::int64_t w = j * p.stride_w - p.padding_w; w < j * p.stride_w - p.padding_w + p.kernel_w; ++w) {
      if (h < 0 || h >= p.height || w < 0 || w >= p.width) continue;
      sum += at(h, w);
      most = std::max(most, at(h, w));
      ++inside;
    }
  if (p.kind == PoolKind::max) return most;
  return sum / static_cast<double>(p.kind == PoolKind::average ? p.kernel_h * p.kernel_w : inside);
}

} // namespace

std::vector<double> naive(const Pool& p, const std::vector<float>& x) {
  std::vector<double> y;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < p.out_height(); ++i)
      for (std::int64_t j = 0; j < p.out_width(); ++j)
        for (std::int64_t c = 0; c < p.channels; ++c)
          y.push_back(window(p, i, j, [&](std::int64_t h, std::int64_t w) {
            return double(x[static_cast<std::size_t>(((b * p.height + h) * p.width + w) * p.channels + c)]);
          }));
  return y;
}

SoftmaxResults naive(const Softmax& s, const std::vector<float>& x, const std::vector<float>& dy) {
  SoftmaxResults result{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const auto width = static_cast<std::size_t>(s.width);
  for (std::size_t first = 0; first < x.size(); first += width) {
    double sum = 0, above = 0, mean = 0;
    for (std::size_t k = first; k < first + width; ++k) sum += std::exp(double(x[k]));
    for (std::size_t k = first; k < first + width; ++k) {
      const double share = std::exp(double(x[k])) / sum;
      result.y[k] = s.logarithm ? std::log(share) : share;
      above += dy[k];
      mean += dy[k] * share;
    }
    for (std::size_t k = first; k < first + width; ++k) {
      const double share = std::exp(double(x[k])) / sum;
      result.dx[k] = s.logarithm ? dy[k] - share * above : share * (dy[k] - mean);
    }
  }
  return result;
}

} // namespace soybean::support
