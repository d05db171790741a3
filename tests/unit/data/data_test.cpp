#include "data/bytes.hpp"
#include "data/loader.hpp"
#include "data/order.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

namespace {

using namespace soybean;
using namespace soybean::data;

TEST(Order, IsAPermutationOfEveryEpoch) {
  for (std::int64_t count : {1, 2, 3, 5, 16, 17, 1437, 4096, 5000}) {
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < count; ++i) seen.insert(shuffled(count, i, 3, 1));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
}

TEST(Order, DiffersBetweenEpochsAndSeeds) {
  auto order = [](std::int64_t epoch, std::uint64_t seed) {
    std::vector<std::int64_t> ids(100);
    for (std::int64_t i = 0; i < 100; ++i) ids[i] = shuffled(100, i, epoch, seed);
    return ids;
  };
  EXPECT_EQ(order(0, 1), order(0, 1));
  EXPECT_NE(order(0, 1), order(1, 1));
  EXPECT_NE(order(0, 1), order(0, 2));
  std::vector<std::int64_t> identity(100);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_NE(order(0, 1), identity);
}

TEST(Order, FirstPositionsAreSpreadOverTheSamples) {
  // The mean of sample 0's position over many seeds is the middle: a biased shuffle would show.
  double sum = 0;
  constexpr int seeds = 2000;
  for (int seed = 0; seed < seeds; ++seed) sum += static_cast<double>(shuffled(101, 0, 0, seed));
  EXPECT_NEAR(sum / seeds, 50, 3);
}

TEST(Order, IncompleteBatchGoesOnIntoTheNextEpoch) {
  const Order order{.samples = 5, .batch = 3, .seed = 9, .shuffle = true};
  std::vector<std::int64_t> ids;
  for (std::int64_t step = 0; step < 5; ++step)
    for (std::int64_t row = 0; row < 3; ++row) ids.push_back(sample_at(order, step, row));
  for (std::ptrdiff_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> part(ids.begin() + 5 * epoch, ids.begin() + 5 * epoch + 5);
    std::sort(part.begin(), part.end());
    EXPECT_EQ(part, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  }
  EXPECT_EQ(steps_of_epochs(order, 3), 5);
  EXPECT_EQ(steps_of_epochs({.samples = 1, .batch = 64}, 1), 1);
  EXPECT_EQ(epoch_of(order, 2), 1);
}

TEST(Order, UnshuffledIsInOrder) {
  const Order order{.samples = 4, .batch = 3, .seed = 1, .shuffle = false};
  EXPECT_EQ(sample_at(order, 1, 0), 3);
  EXPECT_EQ(sample_at(order, 1, 1), 0);
}

TEST(Runs, VisitTheBoxInOrder) {
  const Shape whole{3, 4, 5};
  for (const Box& part : {Box{{0, 0, 0}, {3, 4, 5}}, Box{{1, 0, 0}, {2, 4, 5}}, Box{{0, 1, 0}, {3, 2, 5}},
                          Box{{1, 2, 3}, {2, 1, 2}}, Box{{0, 0, 0}, {0, 4, 5}}}) {
    std::vector<std::int64_t> expected, got;
    for (std::int64_t i = 0; i < part.extents[0]; ++i)
      for (std::int64_t j = 0; j < part.extents[1]; ++j)
        for (std::int64_t k = 0; k < part.extents[2]; ++k)
          expected.push_back(((part.offsets[0] + i) * 4 + part.offsets[1] + j) * 5 + part.offsets[2] + k);
    for_each_run(whole, part, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) got.push_back(first + i);
    });
    EXPECT_EQ(got, expected);
  }
}

Synthetic small_set() {
  return {.sample = {3, 4, 4}, .classes = 5, .train_samples = 20, .validation_samples = 7, .noise = 0.5, .seed = 11};
}

TEST(Synthetic, AnyPartEqualsThatPartOfTheWhole) {
  const auto reader = make_synthetic_reader(small_set());
  const std::vector<std::int64_t> ids{4, 0, 19};
  std::vector<double> whole_rows(3 * 48), part_rows(3 * 16);
  reader->read_inputs(Split::train, ids, {{0, 0, 0}, {3, 4, 4}}, DType::f64, whole_rows.data());
  reader->read_inputs(Split::train, ids, {{1, 0, 0}, {1, 4, 4}}, DType::f64, part_rows.data());
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 16; ++i) EXPECT_EQ(part_rows[r * 16 + i], whole_rows[r * 48 + 16 + i]);
}

TEST(Synthetic, IsItsFormula) {
  Synthetic options = small_set();
  options.sample = {2, 9, 17}; // odd runs, longer than what is made at once
  const auto reader = make_synthetic_reader(options);
  const std::vector<std::int64_t> ids{3};
  std::int32_t label = 0;
  reader->read_labels(Split::validation, ids, &label);
  const auto unit = [&](const char* name, std::uint64_t key, std::int64_t index) {
    const std::uint64_t bits =
        philox::bits({options.seed, hash_text(name), key}, static_cast<std::uint64_t>(index / 2));
    return (static_cast<std::uint32_t>(index % 2 ? bits >> 32 : bits) * 0x1.0p-31 - 1.0) * std::sqrt(3.0);
  };
  for (const Box& part : {Box{{0, 0, 0}, {2, 9, 17}}, Box{{0, 3, 0}, {2, 5, 17}}, Box{{1, 1, 1}, {1, 8, 3}}}) {
    std::vector<double> got(static_cast<std::size_t>(volume(part)));
    reader->read_inputs(Split::validation, ids, part, DType::f64, got.data());
    std::size_t at = 0;
    for_each_run(options.sample, part, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i, ++at)
        ASSERT_EQ(got[at], unit("prototype", static_cast<std::uint64_t>(label), i) + 0.5 * unit("noise", 7, i));
    });
  }
}

TEST(Synthetic, ClassesDifferByMoreThanTheirNoise) {
  // A nearest-class-mean classifier made from the training samples must get the held-out ones right.
  Synthetic options = small_set();
  options.sample = {1, 8, 8};
  options.train_samples = 200;
  options.validation_samples = 50;
  const auto reader = make_synthetic_reader(options);
  std::vector<std::int64_t> ids(200), held(50);
  std::iota(ids.begin(), ids.end(), 0);
  std::iota(held.begin(), held.end(), 0);
  std::vector<double> train(200 * 64), test(50 * 64), mean(5 * 64);
  std::vector<std::int32_t> labels(200), truth(50);
  reader->read_inputs(Split::train, ids, {{0, 0, 0}, {1, 8, 8}}, DType::f64, train.data());
  reader->read_inputs(Split::validation, held, {{0, 0, 0}, {1, 8, 8}}, DType::f64, test.data());
  reader->read_labels(Split::train, ids, labels.data());
  reader->read_labels(Split::validation, held, truth.data());
  std::vector<int> count(5);
  for (int s = 0; s < 200; ++s, ++count[labels[s - 1]])
    for (int i = 0; i < 64; ++i) mean[labels[s] * 64 + i] += train[s * 64 + i];
  int right = 0;
  for (int s = 0; s < 50; ++s) {
    int best = -1;
    double least = 1e300;
    for (int c = 0; c < 5; ++c) {
      double distance = 0;
      for (int i = 0; i < 64; ++i) distance += std::pow(test[s * 64 + i] - mean[c * 64 + i] / count[c], 2);
      if (distance < least) least = distance, best = c;
    }
    right += best == truth[s];
  }
  EXPECT_GE(right, 48);
  EXPECT_GT(*std::min_element(count.begin(), count.end()), 0);
}

std::vector<Part> all_parts(std::int64_t batch) {
  return {{Content::inputs, {{0, 0, 0, 0}, {batch, 3, 4, 4}}, DType::f32},
          {Content::labels, {{0}, {batch}}, DType::i32},
          {Content::weights, {{0}, {batch}}, DType::f64}};
}

TEST(Loader, ThreadGivesTheSameBatchesAsTheCallingThread) {
  const auto reader = make_synthetic_reader(small_set());
  const config::DataOptions options;
  const Order order{20, 6, 3, true};
  Loader ahead(BatchSource::training(*reader, options, order), all_parts(6), 2, 3);
  Loader direct(BatchSource::training(*reader, options, order), all_parts(6), 2, 0);
  for (int step = 2; step < 12; ++step) {
    const Batch& a = ahead.next();
    const Batch& b = direct.next();
    EXPECT_EQ(a.step, step);
    EXPECT_EQ(a.parts, b.parts);
  }
}

TEST(Loader, NormalisesPerChannel) {
  const auto reader = make_synthetic_reader(small_set());
  config::DataOptions plain, scaled;
  scaled.normalise.scale = 2;
  scaled.normalise.mean = {1, 2, 3};
  scaled.normalise.std = {1, 2, 4};
  const std::vector<Part> parts{{Content::inputs, {{0, 1, 0, 0}, {6, 2, 4, 4}}, DType::f64}};
  Batch a, b;
  BatchSource::training(*reader, plain, {20, 6, 3, true}).read(0, parts, a);
  BatchSource::training(*reader, scaled, {20, 6, 3, true}).read(0, parts, b);
  const auto* x = reinterpret_cast<const double*>(a.parts[0].data());
  const auto* y = reinterpret_cast<const double*>(b.parts[0].data());
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 16; ++i) {
        const int at = (r * 2 + c) * 16 + i;
        EXPECT_DOUBLE_EQ(y[at], (2 * x[at] - (c + 2)) / (c == 0 ? 2 : 4));
      }
}

TEST(Loader, ValidationCountsEverySampleOnce) {
  const auto reader = make_synthetic_reader(small_set());
  const config::DataOptions options;
  const BatchSource source = BatchSource::validation(*reader, options, 3);
  EXPECT_EQ(source.steps(), 3);
  double total = 0;
  std::int64_t rows = 0;
  for (std::int64_t step = 0; step < source.steps(); ++step) {
    Batch batch;
    source.read(step, all_parts(3), batch);
    rows += batch.rows;
    const auto* weights = reinterpret_cast<const double*>(batch.parts[2].data());
    for (int r = 0; r < 3; ++r) {
      total += weights[r];
      EXPECT_EQ(weights[r] > 0, r < batch.rows);
    }
  }
  EXPECT_EQ(rows, 7);
  EXPECT_DOUBLE_EQ(total, 1);
}

TEST(Sources, TheConfigurationKnowsExactlyTheReadersThereAre) {
  // Each name is taken where settings are read, or refused for what else it needs; an unknown one lists them all.
  std::string listed;
  try {
    config::read_run_config(config::Table::parse("[data]\nsource = \"?\"\n", "m.toml"));
  } catch (const Error& error) {
    listed = error.what();
  }
  EXPECT_EQ(listed, fmt::format("m.toml:2: data.source, got \"?\" (string) expected one of {}",
                                fmt::join(source_names(), ", ")));
}

TEST(Bytes, AFileThatBecomesShorterIsNamed) {
  const std::string path = testing::TempDir() + "shorter.bin";
  std::ofstream(path) << "0123456789";
  const Bytes bytes = Bytes::open(path, 5), kept = Bytes::open(path, 10);
  std::filesystem::resize_file(path, 4);
  std::array<char, 6> text{};
  kept.read(4, 6, text.data());
  EXPECT_EQ(std::string(text.data(), 6), "456789");
  try {
    bytes.read(2, 6, text.data());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              path + ": got an end at byte 4 expected 10 bytes. the file has become shorter since it was opened");
  }
  std::filesystem::remove(path);
}

TEST(Targets, OfSyntheticSamplesBelongToTheirClasses) {
  Synthetic options = small_set();
  options.target = {2, 3};
  const auto reader = make_synthetic_reader(options);
  std::vector<std::int64_t> ids(20);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::int32_t> labels(20);
  std::vector<double> targets(20 * 6);
  reader->read_labels(Split::train, ids, labels.data());
  reader->read_targets(Split::train, ids, whole(options.target), DType::f64, targets.data());
  const auto of = [&](std::size_t i) { return std::vector<double>(&targets[6 * i], &targets[6 * i] + 6); };
  std::set<double> seen(targets.begin(), targets.end());
  EXPECT_EQ(seen.size(), 6 * std::set<std::int32_t>(labels.begin(), labels.end()).size());
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 1);
  for (std::size_t i = 1; i < 20; ++i) EXPECT_EQ(of(i) == of(0), labels[i] == labels[0]);
}

TEST(Targets, ArriveRowByRowAsTheSamples) {
  Synthetic options = small_set();
  options.target = {5};
  const auto reader = make_synthetic_reader(options);
  config::DataOptions scaled; // does not concern targets
  scaled.normalise.scale = 2;
  const Order order{20, 6, 3, true};
  const std::vector<Part> parts{{Content::targets, {{0, 0}, {6, 5}}, DType::f64},
                                {Content::targets, {{2, 1}, {3, 2}}, DType::f32},
                                {Content::targets, {{6, 0}, {0, 5}}, DType::f32}};
  Batch batch;
  BatchSource::training(*reader, scaled, order, 2).read(4, parts, batch);
  const auto* all = reinterpret_cast<const double*>(batch.parts[0].data());
  const auto* some = reinterpret_cast<const float*>(batch.parts[1].data());
  for (std::int64_t row = 0; row < 6; ++row) {
    const std::int64_t id = sample_at(order, 4, row);
    std::vector<double> expected(5);
    reader->read_targets(Split::train, std::span(&id, 1), whole(options.target), DType::f64, expected.data());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(all[row * 5 + i], expected[i]);
  }
  for (int row = 0; row < 3; ++row)
    for (int i = 0; i < 2; ++i) EXPECT_EQ(some[row * 2 + i], static_cast<float>(all[(row + 2) * 5 + i + 1]));
  EXPECT_TRUE(batch.parts[2].empty());
  BatchSource::validation(*reader, scaled, 6).read(1, parts, batch); // sample 6, then padding
  for (int row = 1; row < 6; ++row)
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(reinterpret_cast<const double*>(batch.parts[0].data())[row * 5 + i],
                reinterpret_cast<const double*>(batch.parts[0].data())[i]);
}

class BrokenReader : public Reader {
public:
  const Info& info() const override { return info_; }
  void read_inputs(Split, std::span<const std::int64_t>, const Box&, DType, void*) const override {
    fail("train.h5: /train/inputs, got an I/O error expected samples");
  }
  void read_labels(Split, std::span<const std::int64_t>, std::int32_t*) const override {}

private:
  Info info_{{3, 4, 4}, 20, 0};
};

TEST(Loader, ErrorsOfTheThreadSurface) {
  const BrokenReader reader;
  const config::DataOptions options;
  Loader loader(BatchSource::training(reader, options, {20, 6, 3, true}), all_parts(6), 0, 2);
  try {
    loader.next();
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "train.h5: /train/inputs, got an I/O error expected samples");
  }
}

} // namespace
