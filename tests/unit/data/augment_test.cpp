#include "base/error.hpp"
#include "data/augment.hpp"
#include "data/loader.hpp"
#include "data/part.hpp"
#include "data/workers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>

namespace {

using namespace soybean;
using namespace soybean::data;
using config::AugmentStep;

/// The lines of tests/golden/augment.txt.
std::map<std::string, std::vector<double>> golden() {
  std::ifstream file(std::string(SOYBEAN_SOURCE_DIR) + "/tests/golden/augment.txt");
  std::map<std::string, std::vector<double>> lists;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double value; words >> value;) lists[name].push_back(value);
  }
  return lists;
}

constexpr std::int64_t golden_height = 5, golden_width = 7;

template<class T>
Picture<T> picture_of(const std::vector<double>& values) {
  return {3, golden_height, golden_width, {values.begin(), values.end()}, {}};
}

template<class T>
void expect_near(const Picture<T>& got, const std::vector<double>& expected, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(got.values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got.values[i], expected[i], tolerance) << name << i;
}

template<class T>
void compare_with_golden(double tolerance) {
  const auto lists = golden();
  ASSERT_EQ(lists.size(), 16u);
  for (const auto& [name, expected] : lists) {
    Picture<T> picture = picture_of<T>(lists.at("image"));
    const std::string kind = name.substr(0, name.find('_')), rest = name.substr(std::min(name.size(), kind.size() + 1));
    if (kind == "brightness") adjust_brightness(picture, std::stod(rest), 255);
    if (kind == "contrast") adjust_contrast(picture, std::stod(rest), 255);
    if (kind == "saturation") adjust_saturation(picture, std::stod(rest), 255);
    if (kind == "hue") adjust_hue(picture, std::stod(rest), 255);
    if (kind == "resized") resize(picture, std::stoll(rest), std::stoll(rest.substr(rest.find('_') + 1)));
    expect_near(picture, expected, tolerance, name);
  }
}

TEST(Augment, FollowsPyTorchAndColorsys) {
  compare_with_golden<double>(1e-11);
  compare_with_golden<float>(1e-3 / 16);
}

TEST(Augment, FlipsAndCropsMoveElements) {
  const Picture<float> start{2, 2, 3, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}, {}};
  Picture<float> p = start;
  flip(p, false);
  EXPECT_EQ(p.values, (std::vector<float>{2, 1, 0, 5, 4, 3, 12, 11, 10, 15, 14, 13}));
  p = start;
  flip(p, true);
  EXPECT_EQ(p.values, (std::vector<float>{3, 4, 5, 0, 1, 2, 13, 14, 15, 10, 11, 12}));
  p = start;
  crop(p, -1, 1, 2, 3);
  EXPECT_EQ(p.values, (std::vector<float>{0, 0, 0, 1, 2, 0, 0, 0, 0, 11, 12, 0}));
  p = start;
  crop(p, 1, -2, 3, 3);
  EXPECT_EQ(p.values, (std::vector<float>{0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0}));
  p = start;
  crop(p, 5, 5, 1, 1);
  EXPECT_EQ(p.values, (std::vector<float>{0, 0}));
}

/// Applies steps to an image whose elements are their own indices.
Picture<double> numbered(const std::vector<AugmentStep>& steps, const AugmentKey& key, std::int64_t size,
                         std::vector<Hole>& holes, std::int64_t target = 0) {
  Picture<double> picture{1, size, size, std::vector<double>(static_cast<std::size_t>(size * size)), {}};
  std::iota(picture.values.begin(), picture.values.end(), 1.0);
  target = target > 0 ? target : size;
  augment(steps, key, {target, target, 255}, picture, holes);
  return picture;
}

TEST(Augment, IsAFunctionOfSeedSampleAndEpoch) {
  const std::vector<AugmentStep> steps{{.op = "flip"}, {.op = "crop", .padding = {3, 3}}, {.op = "cutout", .size = 4}};
  std::vector<Hole> holes;
  std::set<std::vector<double>> seen;
  const auto values = [&](std::uint64_t seed, std::int64_t sample, std::int64_t epoch) {
    return numbered(steps, {seed, sample, epoch}, 9, holes).values;
  };
  EXPECT_EQ(values(1, 2, 3), values(1, 2, 3));
  for (std::uint64_t seed : {1, 2})
    for (std::int64_t sample = 0; sample < 10; ++sample)
      for (std::int64_t epoch = 0; epoch < 10; ++epoch) seen.insert(values(seed, sample, epoch));
  EXPECT_GT(seen.size(), 80u); // of 98 ways to flip and crop
}

TEST(Augment, ChanceIsFair) {
  std::vector<Hole> holes;
  constexpr int samples = 4000;
  int flipped = 0, often = 0;
  std::map<std::pair<int, int>, int> crops;
  std::map<std::int64_t, int> tops;
  for (int sample = 0; sample < samples; ++sample) {
    const AugmentKey key{7, sample, 2};
    flipped += numbered({{.op = "flip"}}, key, 4, holes).values[0] != 1;
    often += numbered({{.op = "flip", .p = 0.9, .vertical = true}}, key, 4, holes).values[0] != 1;
    const double middle = numbered({{.op = "crop", .padding = {1, 2}}}, key, 5, holes).values[12] - 1;
    ++crops[{static_cast<int>(middle) / 5, static_cast<int>(middle) % 5}];
    numbered({{.op = "cutout", .size = 3}}, key, 6, holes);
    ASSERT_EQ(holes.size(), 1u);
    EXPECT_GE(holes[0].top, 0);
    EXPECT_LE(holes[0].bottom, 6);
    EXPECT_LE(holes[0].right - holes[0].left, 3);
    EXPECT_GE(holes[0].right - holes[0].left, 2);
    ++tops[holes[0].bottom];
  }
  EXPECT_NEAR(flipped, samples / 2.0, 130); // four standard deviations
  EXPECT_NEAR(often, samples * 0.9, 80);
  EXPECT_EQ(crops.size(), 15u); // 3 rows, 5 columns
  for (const auto& [where, count] : crops) EXPECT_NEAR(count, samples / 15.0, 65);
  EXPECT_EQ(tops.size(), 5u); // centres of the last two rows end alike
  for (const auto& [bottom, count] : tops) EXPECT_NEAR(count, samples / (bottom == 6 ? 3.0 : 6.0), 120);
}

TEST(Augment, ResizedCropsHaveTheAreasAndRatiosAskedFor) {
  std::vector<Hole> holes;
  double smallest = 1, largest = 0;
  for (int sample = 0; sample < 300; ++sample) {
    // 40 equal columns, each its number: the resized row tells where the window began and ended.
    Picture<double> picture{1, 40, 40, std::vector<double>(1600), {}};
    for (std::size_t i = 0; i < 1600; ++i) picture.values[i] = static_cast<double>(i % 40);
    augment<double>({{.op = "resized_crop", .scale = {0.25, 0.5}, .ratio = {1, 1}}}, {3, sample, 0}, {20, 20, 255},
                    picture, holes);
    ASSERT_EQ(picture.width, 20);
    const double width = (picture.values[15] - picture.values[5]) * 2;
    smallest = std::min(smallest, width * width / 1600);
    largest = std::max(largest, width * width / 1600);
  }
  EXPECT_NEAR(smallest, 0.25, 0.02);
  EXPECT_NEAR(largest, 0.5, 0.02);
  // No window of such a ratio fits: the largest in the middle, here 4 of 40 rows.
  Picture<double> picture{1, 40, 4, std::vector<double>(160), {}};
  for (std::size_t i = 0; i < 160; ++i) picture.values[i] = std::floor(static_cast<double>(i) / 4);
  augment<double>({{.op = "resized_crop", .scale = {0.9, 1}, .ratio = {1, 1}}}, {3, 0, 0}, {4, 4, 255}, picture, holes);
  EXPECT_EQ(picture.values[0], 18);
  EXPECT_EQ(picture.values[15], 21);
}

TEST(Augment, JitterStaysWithinItsStrength) {
  std::vector<Hole> holes;
  std::set<double> seen;
  for (int sample = 0; sample < 200; ++sample) {
    Picture<float> picture{3, 1, 1, {100, 100, 100}, {}};
    augment<float>({{.op = "colour_jitter", .brightness = 0.2}}, {1, sample, 0}, {1, 1, 255}, picture, holes);
    EXPECT_GE(picture.values[0], 79.99);
    EXPECT_LE(picture.values[0], 120.01);
    seen.insert(picture.values[0]);
  }
  EXPECT_GT(seen.size(), 190u);
  Picture<float> bright{3, 1, 1, {200, 100, 0}, {}};
  adjust_brightness(bright, 2.0, 255);
  EXPECT_EQ(bright.values, (std::vector<float>{255, 200, 0}));
}

TEST(Augment, ReadsImagesAsItsFirstCropNeedsThem) {
  EXPECT_EQ(fit_for({{.op = "flip"}, {.op = "cutout"}}), Fit::sample);
  EXPECT_EQ(fit_for({{.op = "flip"}, {.op = "crop"}, {.op = "resized_crop"}}), Fit::covering);
  EXPECT_EQ(fit_for({{.op = "resized_crop"}, {.op = "crop"}}), Fit::stored);
}

config::DataOptions augmented() {
  config::DataOptions options;
  options.augment = {{.op = "crop", .padding = {2, 1}},
                     {.op = "resized_crop", .scale = {0.5, 1}},
                     {.op = "flip"},
                     {.op = "colour_jitter", .brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1},
                     {.op = "cutout", .size = 3}};
  options.normalise = {.scale = 0.5, .mean = {0.5, 0.4, 0.3}, .std = {2}};
  return options;
}

std::unique_ptr<Reader> synthetic() {
  return make_synthetic_reader(
      {.sample = {3, 6, 5}, .classes = 5, .train_samples = 20, .validation_samples = 7, .noise = 0.5, .seed = 11});
}

template<class T>
void expect_parts_of_the_whole(DType type) {
  const auto reader = synthetic();
  const config::DataOptions options = augmented();
  const BatchSource source = BatchSource::training(*reader, options, {20, 8, 3, true}, 3);
  const std::vector<Part> parts{{Content::inputs, {{0, 0, 0, 0}, {8, 3, 6, 5}}, type},
                                {Content::inputs, {{3, 1, 0, 0}, {4, 2, 6, 5}}, type},
                                {Content::inputs, {{5, 0, 2, 1}, {2, 3, 3, 4}}, type},
                                {Content::inputs, {{8, 0, 0, 0}, {0, 3, 6, 5}}, type}};
  bool holes = false;
  for (std::int64_t step = 0; step < 4; ++step) {
    Batch batch;
    source.read(step, parts, batch);
    const auto* all = reinterpret_cast<const T*>(batch.parts[0].data());
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const auto* some = reinterpret_cast<const T*>(batch.parts[p].data());
      for_each_run({8, 3, 6, 5}, parts[p].box, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(*some++, all[first + i]);
      });
    }
    holes |= std::count(all, all + 8 * 90, T{0}) > 3 * 8; // what is normalised is hardly ever 0
  }
  EXPECT_TRUE(holes);
}

TEST(AugmentedLoader, APartIsThatOfTheWholeSample) {
  expect_parts_of_the_whole<float>(DType::f32);
  expect_parts_of_the_whole<double>(DType::f64);
}

TEST(AugmentedLoader, ThreadsPrefetchAndBeginningDoNotMatter) {
  const auto reader = synthetic();
  const config::DataOptions options = augmented();
  const std::vector<Part> parts{{Content::inputs, {{1, 0, 0, 0}, {6, 3, 6, 5}}, DType::f32}};
  std::vector<std::vector<std::byte>> plain;
  plain.reserve(9);
  Loader direct(BatchSource::training(*reader, options, {20, 7, 3, true}), parts, 0, 0);
  for (int step = 0; step < 9; ++step) plain.push_back(direct.next().parts[0]);
  EXPECT_NE(plain[0], plain[1]);
  for (int threads : {1, 2, 5})
    for (std::int64_t depth : {0, 3}) {
      Loader loader(BatchSource::training(*reader, options, {20, 7, 3, true}, threads), parts, 4, depth);
      for (int step = 4; step < 9; ++step) EXPECT_EQ(loader.next().parts[0], plain[static_cast<std::size_t>(step)]);
    }
}

TEST(AugmentedLoader, TheSameSampleDiffersBetweenEpochsAndValidationIsLeftAlone) {
  const auto reader = synthetic();
  config::DataOptions options = augmented(), plain = options;
  plain.augment.clear();
  const std::vector<Part> parts{{Content::inputs, {{0, 0, 0, 0}, {5, 3, 6, 5}}, DType::f32}};
  Batch first, second, a, b;
  const BatchSource source = BatchSource::training(*reader, options, {20, 5, 3, false});
  source.read(0, parts, first);
  source.read(4, parts, second); // the same samples, an epoch later
  EXPECT_NE(first.parts, second.parts);
  BatchSource::validation(*reader, options, 5).read(0, parts, a);
  BatchSource::validation(*reader, plain, 5).read(0, parts, b);
  EXPECT_EQ(a.parts, b.parts);
}

TEST(Workers, DoEveryItemOnceAndThrowTheFirstFault) {
  for (int threads : {1, 2, 4}) {
    Workers workers(threads);
    for (std::int64_t items : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(items));
      workers.run(items, [&](std::int64_t item, int worker) {
        EXPECT_LT(worker, threads);
        ++done[static_cast<std::size_t>(item)];
      });
      for (const auto& count : done) EXPECT_EQ(count, 1);
    }
    for (int round = 0; round < 3; ++round) try {
        workers.run(50, [&](std::int64_t item, int) {
          if (item % 7 == 6) fail("item {}", item);
        });
        FAIL();
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "item 6");
      }
  }
}

} // namespace
