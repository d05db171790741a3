#include "io/hdf5.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include <unistd.h>

namespace {

using namespace soybean;
using namespace soybean::io;
namespace fs = std::filesystem;

std::string error_of(const auto& work, ExitCode code = ExitCode::bad_input) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char line[256];
  while (pipe && fgets(line, sizeof line, pipe)) text += line;
  return pipe && pclose(pipe) == 0 ? text : "failed: " + text;
}

class Hdf5 : public ::testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// A file with float dataset "a/x" of shape 4x3, values 0 … 11, and some attributes.
  std::string small_file() const {
    File file = create(path("small.h5"));
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), 0.0f);
    create_dataset(file, "a/x", {4, 3}, DType::f32);
    write_box(file, "a/x", whole({4, 3}), DType::f32, values.data());
    write_attribute(file, "step", std::int64_t{1} << 40);
    write_attribute(file, "model", "weiß");
    write_attribute_of(file, "a/x", "slab_bytes", 7);
    close_synced(std::move(file));
    return path("small.h5");
  }

  fs::path folder_ = fs::temp_directory_path() / ("soybean_hdf5_" + std::to_string(getpid()));
};

TEST_F(Hdf5, RandomBoxesOfAllTypesRoundTrip) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    Shape shape;
    for (int d = static_cast<int>(random() % 5); d > 0; --d) shape.push_back(static_cast<std::int64_t>(random() % 6));
    const DType type = std::array{DType::f32, DType::f64, DType::i32}[random() % 3];
    std::vector<double> all(static_cast<std::size_t>(volume(shape)));
    for (double& v : all) v = static_cast<double>(random() % 1000);
    File file = create(path("boxes.h5"));
    create_dataset(file, "t", shape, type);
    write_box(file, "t", whole(shape), DType::f64, all.data()); // converted on writing
    close_synced(std::move(file));

    const File read = open_read(path("boxes.h5"));
    EXPECT_EQ(dataset_info(read, "t").shape, shape);
    EXPECT_EQ(dataset_info(read, "t").element_bytes, size_of(type));
    Box box = whole(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.offsets[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[d] + 1));
      box.extents[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[d] - box.offsets[d] + 1));
    }
    std::vector<double> part(static_cast<std::size_t>(volume(box)) + 1, -1);
    read_box(read, "t", box, DType::f64, part.data());
    for (std::int64_t i = 0; i < volume(box); ++i) {
      std::int64_t left = i, at = 0, stride = 1;
      for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
        at += (box.offsets[d] + left % box.extents[d]) * stride;
        left /= box.extents[d];
      }
      ASSERT_EQ(part[i], all[at]) << to_string(box) << " of " << to_string(shape);
    }
    EXPECT_EQ(part.back(), -1) << "wrote past the end";
  }
}

TEST_F(Hdf5, ConvertsBytesIntegersAndRealsOfOtherPrograms) {
  const std::string script = "import h5py, numpy as n; f = h5py.File('" + path("py.h5") +
                             "', 'w'); f['train/u8'] = n.arange(250, 256, dtype='u1'); "
                             "f['i64'] = n.array([[-3, 5]], dtype='i8'); f['be'] = n.array([1.5, -2], dtype='>f8'); "
                             "f['text'] = 'no number'; f.attrs['config'] = 'from python'; f.attrs['n'] = 3; "
                             "f.attrs['fixed'] = n.bytes_('from python')";
  if (output_of("/usr/bin/python3 -c 'import h5py'") != "") GTEST_SKIP() << "no h5py here";
  ASSERT_EQ(output_of("/usr/bin/python3 -c \"" + script + "\""), "");

  const File file = open_read(path("py.h5"));
  std::vector<float> f(6);
  read_box(file, "train/u8", whole({6}), DType::f32, f.data());
  EXPECT_EQ(f, (std::vector<float>{250, 251, 252, 253, 254, 255}));
  std::vector<std::int32_t> i(2);
  read_box(file, "i64", whole({1, 2}), DType::i32, i.data());
  EXPECT_EQ(i, (std::vector<std::int32_t>{-3, 5}));
  std::vector<double> d(2);
  read_box(file, "be", whole({2}), DType::f64, d.data());
  EXPECT_EQ(d, (std::vector<double>{1.5, -2}));
  EXPECT_EQ(dataset_info(file, "train/u8").element, ElementClass::integer);
  EXPECT_EQ(dataset_info(file, "be").element, ElementClass::real);
  EXPECT_EQ(dataset_info(file, "text").element, ElementClass::other);
  EXPECT_EQ(dataset_names(file, "train"), std::vector<std::string>{"u8"});
  EXPECT_TRUE(dataset_names(file, "nothing").empty());
  EXPECT_EQ(read_text_attribute(file, "fixed"), "from python");
  EXPECT_EQ(error_of([&] { read_text_attribute(file, "config"); }),
            path("py.h5") + ": attribute 'config', got another kind expected text of fixed length");
  EXPECT_EQ(error_of([&] { header_checksum(file, ""); }),
            path("py.h5") + ": attribute 'config', got another kind expected a number or text of fixed length");
  EXPECT_EQ(read_integer_attribute(file, "n"), 3);
  float text = 0;
  EXPECT_EQ(error_of([&] { read_box(file, "text", whole({}), DType::f32, &text); }),
            path("py.h5") + ": text, can not be read (no appropriate function for conversion path). the file is "
                            "damaged or holds no numbers there");
}

TEST_F(Hdf5, OtherProgramsReadOurFiles) {
  const std::string file = small_file();
  if (output_of("/usr/bin/python3 -c 'import h5py'") != "") GTEST_SKIP() << "no h5py here";
  EXPECT_EQ(output_of("/usr/bin/python3 -c \"import h5py; f = h5py.File('" + file +
                      "'); print(f['a/x'][2].tolist(), f.attrs['step'], f.attrs['model'].decode(), f['a/x'].dtype)\""),
            "[6.0, 7.0, 8.0] 1099511627776 weiß float32\n");
  if (output_of("h5dump --version").starts_with("failed")) GTEST_SKIP() << "no h5dump here";
  EXPECT_NE(output_of("h5dump -d a/x " + file).find("(3,0): 9, 10, 11"), std::string::npos);
}

TEST_F(Hdf5, AttributesAndWordsRoundTrip) {
  const std::string longer(100'000, 'x');
  const std::vector<std::uint64_t> words{0, 1, ~std::uint64_t{0}};
  {
    File file = create(path("a.h5"));
    write_attribute(file, "empty", "");
    write_attribute(file, "long", longer);
    write_u64(file, "sums/a", words);
    write_u64(file, "sums/none", {});
    close_synced(std::move(file));
  }
  const File file = open_read(path("a.h5"));
  EXPECT_EQ(read_text_attribute(file, "empty"), "");
  EXPECT_EQ(read_text_attribute(file, "long"), longer);
  EXPECT_EQ(read_u64(file, "sums/a"), words);
  EXPECT_TRUE(read_u64(file, "sums/none").empty());
  const File small = open_read(small_file());
  EXPECT_EQ(read_integer_attribute(small, "step"), std::int64_t{1} << 40);
  EXPECT_EQ(read_text_attribute(small, "model"), "weiß");
  EXPECT_EQ(read_integer_attribute_of(small, "a/x", "slab_bytes"), 7);
  EXPECT_TRUE(exists(small, "a/x"));
  EXPECT_TRUE(exists(small, "a"));
  EXPECT_FALSE(exists(small, "a/y"));
  EXPECT_FALSE(exists(small, "b/x"));
}

TEST_F(Hdf5, FaultsNameFileAndObject) {
  const std::string small = small_file();
  const File file = open_read(small);
  float value = 0;
  EXPECT_EQ(error_of([&] { dataset_info(file, "a/y"); }),
            small + ": a/y, got no such dataset expected one. h5dump -H shows what the file holds");
  EXPECT_NE(error_of([&] { dataset_info(file, "a"); }).find(small + ": a, got something that is no readable dataset"),
            std::string::npos);
  EXPECT_NE(error_of([&] { dataset_names(file, "a/x"); }).find(small + ": a/x, got something that is no group"),
            std::string::npos);
  EXPECT_THROW(read_box(file, "a/x", Box{{4, 0}, {1, 1}}, DType::f32, &value), Bug);
  EXPECT_EQ(error_of([&] { read_u64(file, "a/x"); }), small + ": a/x, got 4x3 expected a list of integers");
  EXPECT_EQ(error_of([&] { read_text_attribute(file, "seed"); }), small + ": attribute 'seed', got none expected one");
  EXPECT_EQ(error_of([&] { read_text_attribute(file, "step"); }),
            small + ": attribute 'step', got another kind expected text of fixed length");
  EXPECT_EQ(error_of([&] { read_integer_attribute(file, "model"); }),
            small + ": attribute 'model', got another kind expected an integer");
  EXPECT_EQ(error_of([&] { read_integer_attribute_of(file, "a/x", "none"); }),
            small + ": a/x, attribute 'none', got none expected one");
  EXPECT_EQ(error_of([&] { read_integer_attribute_of(file, "a/y", "none"); }),
            small + ": a/y, got no such object expected one");
}

TEST_F(Hdf5, DamageIsNotTakenForAbsence) {
  const std::string small = small_file();
  std::fstream bytes(small, std::ios::in | std::ios::out | std::ios::binary);
  std::string all(fs::file_size(small), '\0');
  bytes.read(all.data(), static_cast<std::streamsize>(all.size()));
  const std::size_t second = all.find("OHDR", all.find("OHDR") + 1); // of group a
  ASSERT_NE(second, std::string::npos);
  bytes.seekp(static_cast<std::streamoff>(second + 12)).put(static_cast<char>(all[second + 12] ^ 1)).flush();
  const File file = open_read(small);
  EXPECT_EQ(error_of([&] { exists(file, "a/x"); }).find(small + ": a/x, can not be looked up ("), 0u);
  EXPECT_EQ(error_of([&] { header_checksum(file, ""); }).find(small + ": a, can not be "), 0u);
}

TEST_F(Hdf5, TheHeadersChecksumKnowsNamesShapesAndAttributes) {
  const auto sum = [&](const Shape& shape, DType type, const std::string& name, std::int64_t step,
                       const std::string& model) {
    File file = create(path("sum.h5"));
    create_dataset(file, name, shape, type);
    write_attribute(file, "step", step);
    write_attribute(file, "model", model);
    write_attribute(file, "but", step + static_cast<std::int64_t>(name.size()));
    return header_checksum(file, "but");
  };
  const std::uint64_t first = sum({2, 3}, DType::f32, "a/x", 1, "m");
  EXPECT_EQ(sum({2, 3}, DType::f32, "a/x", 1, "m"), first);
  EXPECT_NE(sum({3, 2}, DType::f32, "a/x", 1, "m"), first);
  EXPECT_NE(sum({2, 3}, DType::i32, "a/x", 1, "m"), first);
  EXPECT_NE(sum({2, 3}, DType::f32, "a/y", 1, "m"), first);
  EXPECT_NE(sum({2, 3}, DType::f32, "a/x", 2, "m"), first);
  EXPECT_NE(sum({2, 3}, DType::f32, "a/x", 1, "n"), first);
}

TEST_F(Hdf5, FilesOfOldHdf5AreToldApart) {
  EXPECT_TRUE(is_checked(small_file()));
  EXPECT_TRUE(is_checked(path("missing.h5")));
  std::ofstream(path("old.h5")) << std::string("\x89HDF\r\n\x1a\n\0", 9);
  EXPECT_FALSE(is_checked(path("old.h5")));
}

TEST_F(Hdf5, UnreadableFilesAreRefusedByName) {
  const std::string missing = path("missing.h5"), text = path("text.h5"), cut = path("cut.h5");
  std::ofstream(text) << "this is no HDF5 file, although its name says so";
  fs::copy_file(small_file(), cut);
  fs::resize_file(cut, fs::file_size(cut) - 100);
  EXPECT_EQ(error_of([&] { open_read(missing); }),
            missing +
                ": can not be opened, got 'No such file or directory' expected a readable HDF5 file. check the path");
  EXPECT_EQ(error_of([&] { open_read(folder_.string()); }),
            folder_.string() + ": got a folder expected an HDF5 file. check the path");
  EXPECT_NE(error_of([&] { open_read(text); }).find(text + ": can not be read as HDF5"), std::string::npos);
  EXPECT_NE(error_of([&] { open_read(cut); }).find(cut + ": can not be read as HDF5, got 'truncated file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { create(path("no/such/folder.h5")); }, ExitCode::failed)
                .find(path("no/such/folder.h5") + ": can not be created (unable to open file"),
            std::string::npos);
}

TEST_F(Hdf5, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  fs::create_symlink("/dev/full", path("full.h5"));
  const std::string text = error_of(
      [&] {
        File file = create(path("full.h5"));
        std::vector<float> values(1 << 20);
        create_dataset(file, "x", {1 << 20}, DType::f32);
        write_box(file, "x", whole({1 << 20}), DType::f32, values.data());
        close_synced(std::move(file));
      },
      ExitCode::failed);
  EXPECT_NE(text.find(path("full.h5") + ": "), std::string::npos) << text;
  EXPECT_NE(text.find("can not be"), std::string::npos) << text;
}

TEST_F(Hdf5, TwoThreadsMayReadAtOnce) {
  const std::string name = small_file();
  const auto work = [&name](float expected) {
    for (int i = 0; i < 300; ++i) {
      const File file = open_read(name);
      float value = -1;
      read_box(file, "a/x", Box{{static_cast<std::int64_t>(expected) / 3, 0}, {1, 1}}, DType::f32, &value);
      if (value != expected) throw std::runtime_error("wrong value");
    }
  };
  std::exception_ptr failure;
  std::thread other([&] {
    try {
      work(9);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  EXPECT_NO_THROW(work(3));
  other.join();
  EXPECT_FALSE(failure);
}

} // namespace
