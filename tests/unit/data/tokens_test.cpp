// Files of tokens: samples and their labels, splits, types, and what is wrong with a file.
#include "base/error.hpp"
#include "data/loader.hpp"
#include "data/reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::data;

class Tokens : public ::testing::Test {
protected:
  /// A file of the numbers 0, 1, …, count − 1, each of so many bytes.
  std::string write(const std::string& name, std::int64_t count, int bytes, int extra = 0) {
    const std::string path = folder_ + "/" + name;
    std::ofstream file(path, std::ios::binary);
    for (std::int64_t i = 0; i < count; ++i)
      for (int b = 0; b < bytes; ++b) file.put(static_cast<char>(i >> (8 * b) & 0xff));
    for (int i = 0; i < extra; ++i) file.put('x');
    return path;
  }
  std::string error_of(const TokenFiles& files, std::int64_t length = 4, std::int64_t vocabulary = 1000) {
    try {
      make_tokens_reader(files, {.sample = {length}, .vocabulary = vocabulary});
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  static std::vector<std::int32_t> read(const Reader& reader, Split split, std::int64_t id, std::int64_t begin,
                                        std::int64_t count, std::int64_t shift) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(count));
    reader.read_tokens(split, std::span(&id, 1), {{begin}, {count}}, shift, out.data());
    return out;
  }

  std::string folder_ = [] {
    const auto path = std::filesystem::temp_directory_path() /
                      ("tokens_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(path);
    return path.string();
  }();
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

using List = std::vector<std::int32_t>;

TEST_F(Tokens, SamplesFollowEachOtherAndLabelsAreTheNextTokens) {
  for (const auto& [type, bytes] : {std::pair("uint8", 1), {"uint16", 2}, {"uint32", 4}}) {
    const auto reader =
        make_tokens_reader({.path = write(type, 200, bytes), .dtype = type}, {.sample = {7}, .vocabulary = 200});
    EXPECT_EQ(reader->info().train_samples, 28); // 28 · 7 + 1 <= 200
    EXPECT_EQ(reader->info().validation_samples, 0);
    EXPECT_EQ(read(*reader, Split::train, 3, 0, 7, 0), (List{21, 22, 23, 24, 25, 26, 27}));
    EXPECT_EQ(read(*reader, Split::train, 3, 5, 2, 1), (List{27, 28}));
    EXPECT_EQ(read(*reader, Split::train, 27, 6, 1, 1), (List{196}));
  }
}

TEST_F(Tokens, OfMoreThanSixteenBits) {
  const auto reader =
      make_tokens_reader({.path = write("many", 70000, 4), .dtype = "uint32"}, {.sample = {5000}, .vocabulary = 70000});
  const List last = read(*reader, Split::train, 12, 0, 5000, 1);
  EXPECT_EQ(last.front(), 60001);
  EXPECT_EQ(last.back(), 65000);
}

TEST_F(Tokens, ValidationIsTheEndOfTheFileOrAnother) {
  const auto part =
      make_tokens_reader({.path = write("a", 101, 2), .validation_fraction = 0.2}, {.sample = {10}, .vocabulary = 101});
  EXPECT_EQ(part->info().train_samples, 8); // of 81 tokens
  EXPECT_EQ(part->info().validation_samples, 1);
  EXPECT_EQ(read(*part, Split::train, 7, 9, 1, 1), (List{80}));
  EXPECT_EQ(read(*part, Split::validation, 0, 0, 2, 0), (List{81, 82}));
  const auto other = make_tokens_reader({.path = write("a", 101, 2), .validation_path = write("b", 21, 2)},
                                        {.sample = {10}, .vocabulary = 101});
  EXPECT_EQ(other->info().train_samples, 10);
  EXPECT_EQ(other->info().validation_samples, 2);
  EXPECT_EQ(read(*other, Split::validation, 1, 0, 2, 1), (List{11, 12}));
}

TEST_F(Tokens, FilesThatDoNotFitAreErrors) {
  EXPECT_EQ(error_of({.path = write("odd", 20, 2, 1)}),
            folder_ + "/odd: got 41 bytes expected a multiple of 2, as tokens are uint16 (data.dtype)");
  EXPECT_EQ(error_of({.path = write("short", 4, 2)}),
            folder_ + "/short: got 4 tokens to train with expected at least 5, one more than model.input");
  EXPECT_EQ(error_of({.path = write("empty", 0, 2)}),
            folder_ + "/empty: got 0 tokens to train with expected at least 5, one more than model.input");
  EXPECT_EQ(error_of({.path = write("little", 20, 2), .validation_fraction = 0.2}),
            folder_ + "/little: got 4 tokens to validate with expected at least 5, one more than model.input");
  EXPECT_EQ(error_of({.path = write("large", 20, 2)}, 4, 19),
            folder_ + "/large: token 19, got 19 expected 0 to 18, below model.vocabulary");
  EXPECT_EQ(error_of({.path = write("fine", 20, 2)}, 4, 20), "no error");
  EXPECT_NE(error_of({.path = folder_ + "/nothing"}).find("/nothing"), std::string::npos);
}

TEST_F(Tokens, BelongToModelsOfTokens) {
  config::DataOptions options{.source = "tokens", .path = write("t", 20, 2)};
  const auto error = [&](std::int64_t vocabulary) -> std::string {
    try {
      open_reader(options, {.sample = {4}, .classes = 30, .vocabulary = vocabulary});
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(30), "no error");
  EXPECT_EQ(error(0), "data.source: got \"tokens\" for a model of numbers expected another source. model.vocabulary "
                      "makes it one of tokens");
  options.normalise.scale = 2;
  EXPECT_EQ(error(30), "data.normalise: got one for tokens expected none. tokens are no numbers");
  options.normalise.scale = 1;
  options.augment.push_back({.op = "flip"});
  EXPECT_EQ(error(30), "data.augment: got one for tokens expected none. it changes images");
  options.source = "npy";
  EXPECT_EQ(error(30), "data.source: got \"npy\" for a model of tokens expected tokens or synthetic. others have "
                       "numbers");
}

/// Batches of parts are those of whole ones; each token is followed by its label.
TEST_F(Tokens, SyntheticOnesArePiecesOfTheSameSequences) {
  const auto reader = make_synthetic_reader({.sample = {12}, .train_samples = 40, .vocabulary = 50});
  const config::DataOptions options;
  const BatchSource source = BatchSource::training(*reader, options, {40, 6, 1, true}, 2);
  Batch batch;
  source.read(1,
              {{Content::inputs, {{0, 0}, {6, 12}}, DType::i32},
               {Content::labels, {{0, 0}, {6, 12}}, DType::i32},
               {Content::inputs, {{2, 3}, {2, 5}}, DType::i32},
               {Content::labels, {{2, 3}, {2, 5}}, DType::i32}},
              batch);
  const auto at = [&](std::size_t part, std::size_t i) {
    return reinterpret_cast<const std::int32_t*>(batch.parts[part].data())[i];
  };
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_GE(at(0, row * 12 + i), 0);
      EXPECT_LT(at(0, row * 12 + i), 50);
      if (i > 0) {
        EXPECT_EQ(at(0, row * 12 + i), at(1, row * 12 + i - 1));
      }
    }
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(at(2, row * 5 + i), at(0, (row + 2) * 12 + i + 3));
      EXPECT_EQ(at(3, row * 5 + i), at(1, (row + 2) * 12 + i + 3));
    }
}

} // namespace
