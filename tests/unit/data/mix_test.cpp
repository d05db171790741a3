#include "data/loader.hpp"
#include "data/mix.hpp"
#include "data/part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::data;
using config::AugmentStep;

constexpr int many = 20000;

std::vector<double> betas(double alpha) {
  std::vector<double> values;
  for (int sample = 0; sample < many; ++sample) {
    Draws draws({3, sample, 1}, 0);
    values.push_back(draw_beta(alpha, draws));
  }
  std::sort(values.begin(), values.end());
  return values;
}

/// The distribution function of Beta(alpha, alpha) at x by Simpson's rule; below 1, where the density has poles, over
/// u = t^alpha.
double beta_cdf(double alpha, double x) {
  const bool poles = alpha < 1;
  const auto part = [&](double end) { // of the lower half, without its factor
    constexpr int steps = 2000;
    const double h = (poles ? std::pow(end, alpha) : end) / steps;
    double sum = 0;
    for (int i = 0; i <= steps; ++i) {
      const double t = poles ? std::pow(i * h, 1 / alpha) : i * h;
      const double density = std::pow(1 - t, alpha - 1) * (poles ? 1 : std::pow(t, alpha - 1));
      sum += (i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2) * density;
    }
    return sum * h;
  };
  const double half = part(0.5);
  return x <= 0.5 ? part(x) / half / 2 : 1 - part(1 - x) / half / 2;
}

TEST(Beta, HasItsDistribution) {
  for (const double alpha : {0.1, 0.4, 1.0, 2.5, 40.0}) {
    const std::vector<double> values = betas(alpha);
    double worst = 0;
    for (int i = 0; i < many; i += 50) worst = std::max(worst, std::abs(beta_cdf(alpha, values[i]) - (i + 0.5) / many));
    EXPECT_LT(worst, 1.9 / std::sqrt(many)) << alpha; // Kolmogorov and Smirnov: one in a thousand
  }
}

TEST(Beta, OfExtremesIsStillANumberFrom0To1) {
  for (const double alpha : {1e-300, 1e-9, 1e-3, 1e12, 1e99}) {
    const std::vector<double> values = betas(alpha);
    EXPECT_GE(values.front(), 0);
    EXPECT_LE(values.back(), 1);
    if (alpha < 1e-6) { // half of them are 0, the others 1
      EXPECT_NEAR(std::count(values.begin(), values.end(), 1.0), many / 2.0, 300);
      EXPECT_NEAR(std::count(values.begin(), values.end(), 0.0), many / 2.0, 300);
    }
    if (alpha > 1e6) {
      EXPECT_NEAR(values.front(), 0.5, 1e-4);
      EXPECT_NEAR(values.back(), 0.5, 1e-4);
    }
  }
}

std::tuple<std::int64_t, double> mixed(const std::vector<AugmentStep>& steps, const AugmentKey& key) {
  const Mix mix = mix_for(steps, key, 50, {8, 12, 1});
  return {mix.partner, mix.share};
}

TEST(Mix, IsAFunctionOfSeedSampleAndEpoch) {
  const std::vector<AugmentStep> steps{{.op = "flip"}, {.op = "mixup", .p = 1}};
  std::set<std::tuple<std::int64_t, double>> seen;
  for (std::uint64_t seed : {1, 2})
    for (std::int64_t sample = 0; sample < 10; ++sample)
      for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
        EXPECT_EQ(mixed(steps, {seed, sample, epoch}), mixed(steps, {seed, sample, epoch}));
        seen.insert(mixed(steps, {seed, sample, epoch}));
      }
  EXPECT_EQ(seen.size(), 200u);
}

TEST(Mix, TakesAnyPartnerAndAsOftenAsAsked) {
  const std::vector<AugmentStep> steps{{.op = "mixup", .p = 0.25}, {.op = "cutmix", .p = 0.5}};
  std::vector<int> partners(50);
  int ups = 0, cuts = 0, plain = 0;
  for (int sample = 0; sample < many; ++sample) {
    const Mix mix = mix_for(steps, {5, sample, 0}, 50, {8, 12, 1});
    if (mix.partner == sample && mix.share == 1 && !mix.window) {
      ++plain;
      continue;
    }
    ++(mix.window ? cuts : ups);
    ++partners.at(static_cast<std::size_t>(mix.partner));
  }
  EXPECT_NEAR(ups, many / 4.0, 250); // four standard deviations
  EXPECT_NEAR(cuts, many * 3 / 8.0, 280);
  EXPECT_NEAR(plain, many * 3 / 8.0, 280);
  for (const int count : partners) EXPECT_NEAR(count, many * 5 / 8.0 / 50, 65);
}

TEST(Mix, AWindowIsAsLargeAsItsShareSays) {
  const std::vector<AugmentStep> steps{{.op = "cutmix", .p = 1}};
  std::set<std::int64_t> tops;
  for (int sample = 0; sample < 2000; ++sample) {
    const Mix mix = mix_for(steps, {5, sample, 0}, 50, {8, 12, 1});
    if (!mix.window) FAIL() << "nothing is mixed into sample " << sample;
    const auto [top, bottom, left, right] = *mix.window;
    EXPECT_TRUE(0 <= top && top <= bottom && bottom <= 8 && 0 <= left && left <= right && right <= 12);
    EXPECT_DOUBLE_EQ(mix.share, 1 - static_cast<double>((bottom - top) * (right - left)) / 96);
    tops.insert(top);
  }
  EXPECT_EQ(tops.size(), 8u);
}

TEST(Mix, BlendsValuesOrReplacesPixels) {
  const Box part{{1, 1, 0}, {1, 2, 3}}; // rows 1 and 2, columns 0 to 2 of channel 1
  std::vector<double> values{0, 1, 2, 3, 4, 5};
  const std::vector<double> partner{10, 11, 12, 13, 14, 15};
  blend({.partner = 0, .share = 0.75, .window = {}}, part, partner.data(), values.data());
  EXPECT_EQ(values, (std::vector<double>{2.5, 3.5, 4.5, 5.5, 6.5, 7.5}));
  values = {0, 1, 2, 3, 4, 5};
  blend({.partner = 0, .share = 0.5, .window = Hole{2, 4, 1, 9}}, part, partner.data(), values.data());
  EXPECT_EQ(values, (std::vector<double>{0, 1, 2, 3, 14, 15}));
  blend({.partner = 0, .share = 0.5, .window = Hole{0, 1, 0, 9}}, part, partner.data(), values.data());
  EXPECT_EQ(values, (std::vector<double>{0, 1, 2, 3, 14, 15}));
}

std::unique_ptr<Reader> synthetic() {
  return make_synthetic_reader(
      {.sample = {3, 6, 5}, .classes = 5, .train_samples = 20, .validation_samples = 7, .noise = 0.5, .seed = 11});
}

config::DataOptions mixing() {
  config::DataOptions options;
  options.augment = {
      {.op = "flip"}, {.op = "cutout", .size = 2}, {.op = "mixup", .p = 0.5, .alpha = 0.7}, {.op = "cutmix", .p = 0.9}};
  options.normalise = {.scale = 0.5, .mean = {0.5, 0.4, 0.3}, .std = {2}};
  return options;
}

std::vector<Part> all_of(std::int64_t batch, DType type) {
  return {{Content::inputs, {{0, 0, 0, 0}, {batch, 3, 6, 5}}, type},
          {Content::labels, {{0}, {batch}}, DType::i32},
          {Content::partner_labels, {{0}, {batch}}, DType::i32},
          {Content::shares, {{0}, {batch}}, DType::f64}};
}

template<class T>
void expect_parts_of_the_whole(DType type) {
  const auto reader = synthetic();
  const config::DataOptions options = mixing();
  const BatchSource source = BatchSource::training(*reader, options, {20, 8, 3, true}, 3);
  std::vector<Part> parts = all_of(8, type);
  const std::vector<Box> boxes{
      {{3, 1, 0, 0}, {4, 2, 6, 5}}, {{5, 0, 2, 1}, {2, 3, 3, 4}}, {{0, 2, 5, 0}, {8, 1, 1, 5}}};
  for (const Box& box : boxes) parts.push_back({Content::inputs, box, type});
  for (std::int64_t step = 0; step < 6; ++step) {
    Batch batch;
    source.read(step, parts, batch);
    const auto* all = reinterpret_cast<const T*>(batch.parts[0].data());
    for (std::size_t p = 4; p < parts.size(); ++p) {
      const auto* some = reinterpret_cast<const T*>(batch.parts[p].data());
      for_each_run({8, 3, 6, 5}, parts[p].box, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(*some++, all[first + i]);
      });
    }
  }
}

TEST(MixingLoader, APartIsThatOfTheWholeSample) {
  expect_parts_of_the_whole<float>(DType::f32);
  expect_parts_of_the_whole<double>(DType::f64);
}

/// A sample is mixed the same in whatever batch it comes, with its partner as that is in the same epoch.
TEST(MixingLoader, BatchesDoNotMatter) {
  const auto reader = synthetic();
  const config::DataOptions options = mixing();
  Batch whole, some;
  BatchSource::training(*reader, options, {20, 20, 3, true}).read(1, all_of(20, DType::f32), whole);
  const BatchSource source = BatchSource::training(*reader, options, {20, 4, 3, true}, 2);
  for (int k = 0; k < 5; ++k) {
    source.read(5 + k, all_of(4, DType::f32), some);
    for (std::size_t p = 0; p < 4; ++p) {
      const auto size = static_cast<std::ptrdiff_t>(some.parts[p].size());
      EXPECT_TRUE(std::equal(some.parts[p].begin(), some.parts[p].end(), whole.parts[p].begin() + k * size)) << p;
    }
  }
}

TEST(MixingLoader, ValidationIsLeftAlone) {
  const auto reader = synthetic();
  const config::DataOptions options = mixing();
  config::DataOptions plain = options;
  plain.augment.clear();
  Batch a, b;
  BatchSource::validation(*reader, options, 5).read(1, all_of(5, DType::f64), a);
  BatchSource::validation(*reader, plain, 5).read(1, all_of(5, DType::f64), b);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.parts[1], a.parts[2]);
  for (int row = 0; row < 5; ++row) EXPECT_EQ(reinterpret_cast<const double*>(a.parts[3].data())[row], 1);
}

} // namespace
