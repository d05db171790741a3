// Tensors spread over ranks to a file and back, whatever the tilings and rank counts on both sides.
#include "io/gather.hpp"

#include "base/error.hpp"
#include "device/pack.hpp"
#include "tiling/tiling.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <csignal>

#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace soybean;
using namespace soybean::io;
using device::TensorView;

/// A rank's block of a tensor, and whether it is the one to write it.
struct Part {
  Box box;
  bool primary;
};

Part random_part(std::mt19937& random, const Shape& shape, int ranks, int rank) {
  tiling::Mesh mesh;
  for (int left = ranks, factor = 2; left > 1; left % factor == 0 ? left /= factor : ++factor)
    if (left % factor == 0) mesh.cuts.push_back(factor);
  tiling::Tiling tiling;
  bool primary = true;
  for (int cut = 0; cut < static_cast<int>(mesh.cuts.size()); ++cut) {
    const bool split = !shape.empty() && random() % 3 != 0;
    tiling.push_back(split ? tiling::split(static_cast<int>(random() % shape.size())) : tiling::replicate());
    if (!split && tiling::coordinate(mesh, rank, cut) != 0) primary = false;
  }
  return {tiling::block(tiling, shape, mesh, rank), primary};
}

double value_at(const Shape& shape, const Box& box, std::int64_t i) {
  std::int64_t left = i, at = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    at += (box.offsets[d] + left % box.extents[d]) * stride;
    left /= box.extents[d];
  }
  return static_cast<double>(at * 7919 % 100003);
}

template<class T>
std::vector<T> logical_values(const Shape& shape, const Box& box) {
  std::vector<T> values(static_cast<std::size_t>(volume(box)));
  for (std::int64_t i = 0; i < std::ssize(values); ++i) values[i] = static_cast<T>(value_at(shape, box, i));
  return values;
}

class GatherTest : public ::testing::Test {
protected:
  void SetUp() override {
    path_ = comm::broadcast_text(
        *comm_, (std::filesystem::temp_directory_path() / ("soybean_io_" + std::to_string(getpid()) + ".h5")).string());
  }
  void TearDown() override {
    comm_->barrier();
    if (root()) std::filesystem::remove(path_);
  }
  bool root() const { return comm_->rank() == 0; }

  /// `by` is this test's ranks or one rank alone.
  template<class T>
  void write(comm::Comm& by, const Shape& shape, const Part& part, std::int64_t spatial, std::int64_t limit) {
    const auto values = logical_values<T>(shape, part.box);
    std::vector<T> memory(values.size());
    const TensorView view{memory.data(), type<T>, part.box, shape, spatial};
    device::unpack(exec_, values.data(), view, part.box, device::Order::logical);
    std::optional<File> file;
    if (by.rank() == 0) file = create(path_);
    write_tensor(by, exec_, file ? &*file : nullptr, "state/w", view, part.primary, limit);
    if (file) close_synced(std::move(*file));
  }

  template<class T>
  void expect_read(comm::Comm& by, const Shape& shape, const Box& box, std::int64_t spatial) {
    std::vector<T> memory(static_cast<std::size_t>(volume(box)), T{-1}), values(memory.size());
    const TensorView view{memory.data(), type<T>, box, shape, spatial};
    std::optional<File> file;
    if (by.rank() == 0) file = open_read(path_);
    read_tensor(by, exec_, file ? &*file : nullptr, "state/w", view);
    device::pack(exec_, view, box, values.data(), device::Order::logical);
    EXPECT_EQ(values, logical_values<T>(shape, box)) << to_string(box) << " of " << to_string(shape);
  }

  template<class T>
  void round_trip(std::mt19937& random) {
    Shape shape;
    for (int d = static_cast<int>(random() % 5); d > 0; --d) shape.push_back(static_cast<std::int64_t>(random() % 8));
    const std::int64_t spatial = shape.size() == 4 ? std::max<std::int64_t>(1, shape[2] * shape[3]) : 1;
    const std::int64_t limit = 8 + static_cast<std::int64_t>(random() % 400);
    const Part out = random_part(random, shape, comm_->size(), comm_->rank());
    const Part in = random_part(random, shape, comm_->size(), comm_->rank());
    Box any = whole(shape); // a box of no tiling
    std::mt19937 own(random() + static_cast<unsigned>(comm_->rank()));
    for (std::size_t d = 0; d < shape.size() && spatial == 1; ++d) {
      any.offsets[d] = static_cast<std::int64_t>(own() % static_cast<unsigned>(shape[d] + 1));
      any.extents[d] = static_cast<std::int64_t>(own() % static_cast<unsigned>(shape[d] - any.offsets[d] + 1));
    }
    write<T>(*comm_, shape, out, 1, limit);
    expect_read<T>(*comm_, shape, in.box, 1);
    expect_read<T>(*comm_, shape, any, 1);
    const std::unique_ptr<comm::Comm> alone = comm::make_self_comm();
    if (root()) expect_read<T>(*alone, shape, whole(shape), spatial); // many → 1
    comm_->barrier();
    if (root()) write<T>(*alone, shape, {whole(shape), true}, spatial, limit);
    comm_->barrier();
    expect_read<T>(*comm_, shape, in.box, 1); // 1 → many
  }

  /// The Error that a read on all ranks ends with; on every rank the same.
  std::string read_error(const Shape& shape, const auto& element) {
    using T = std::decay_t<decltype(element)>;
    std::vector<T> memory(static_cast<std::size_t>(volume(shape)));
    std::optional<File> file;
    if (root()) file = open_read(path_);
    std::string text = "no error";
    try {
      read_tensor(*comm_, exec_, file ? &*file : nullptr, "state/w",
                  TensorView{memory.data(), type<T>, whole(shape), shape, 1});
    } catch (const Error& error) {
      EXPECT_TRUE(error.on_all_ranks());
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      text = error.what();
    }
    EXPECT_EQ(text, comm::broadcast_text(*comm_, text));
    return text;
  }

  template<class T>
  static constexpr DType type = std::is_same_v<T, float>    ? DType::f32
                                : std::is_same_v<T, double> ? DType::f64
                                                            : DType::i32;

  std::unique_ptr<comm::Comm> comm_ = comm::make_comm("mpi");
  device::Exec exec_{1};
  std::string path_;
};

TEST_F(GatherTest, AnyTilingReadsWhatAnyOtherWrote) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 6; ++trial) {
    round_trip<float>(random);
    round_trip<double>(random);
    round_trip<std::int32_t>(random);
  }
}

TEST_F(GatherTest, FullSlabsRoundTrip) {
  const Shape shape{3, 2'100'001}; // 25 MB
  std::mt19937 random(2);
  const Part part = random_part(random, shape, comm_->size(), comm_->rank());
  write<float>(*comm_, shape, part, 1, slab_bytes);
  expect_read<float>(*comm_, shape, part.box, 1);
}

TEST_F(GatherTest, ADamagedSlabIsNamed) {
  const Shape shape{40, 10};
  std::mt19937 random(3);
  write<float>(*comm_, shape, random_part(random, shape, comm_->size(), comm_->rank()), 1, 400); // 10 rows a slab
  if (root()) {
    const std::vector<float> row = logical_values<float>(shape, Box{{25, 0}, {1, 10}});
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const auto at = bytes.find(std::string(reinterpret_cast<const char*>(row.data()), 40));
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at + 5));
    file.put(static_cast<char>(bytes[at + 5] ^ 4));
  }
  EXPECT_EQ(read_error(shape, 0.0f), path_ + ": state/w, elements [20:30, 0:10], got a checksum that does not match "
                                             "expected the one written with them. the file is damaged");
}

TEST_F(GatherTest, TheOtherPrecisionIsRoundedWhereThatIsAskedFor) {
  const Shape shape{7, 5};
  std::mt19937 random(5);
  const Part part = random_part(random, shape, comm_->size(), comm_->rank());
  write<double>(*comm_, shape, part, 1, 100); // 12 elements a slab
  const auto stored = logical_values<double>(shape, part.box);
  std::vector<float> values(stored.size());
  std::optional<File> file;
  if (root()) file = open_read(path_);
  const device::Exec exec(1);
  const device::TensorView view{values.data(), DType::f32, part.box, shape, 1};
  read_tensor(*comm_, exec, file ? &*file : nullptr, "state/w", view, Stored::any_precision);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(stored[i]));
}

TEST_F(GatherTest, AnotherShapeTypeOrMissingTensorIsNamed) {
  const Shape shape{6, 2};
  std::mt19937 random(4);
  write<float>(*comm_, shape, random_part(random, shape, comm_->size(), comm_->rank()), 1, slab_bytes);
  EXPECT_EQ(read_error({2, 6}, 0.0f), path_ + ": state/w, got shape 6x2 expected 2x6");
  EXPECT_EQ(read_error(shape, 0.0), path_ + ": state/w, got real elements of 4 bytes expected fp64");
  EXPECT_EQ(read_error(shape, 0), path_ + ": state/w, got real elements of 4 bytes expected int32");
  if (root()) close_synced(create(path_));
  EXPECT_EQ(read_error(shape, 0.0f).find(path_ + ": state/w, got no such dataset"), 0u);
  if (root()) {
    File file = create(path_);
    create_dataset(file, "state/w", shape, DType::f32);
    close_synced(std::move(file));
  }
  EXPECT_EQ(read_error(shape, 0.0f), path_ + ": checksums/state/w, got no such object expected one");
}

/// While it lives, files of this process can not grow beyond `bytes`: as on a full disk.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(GatherTest, AFailedWriteIsEverybodysError) {
  const Shape shape{1 << 10, 1 << 10};
  std::mt19937 random(5);
  const Part part = random_part(random, shape, comm_->size(), comm_->rank());
  std::vector<float> memory(static_cast<std::size_t>(volume(part.box)));
  std::string text = "no error";
  std::optional<File> file;
  if (root()) file = create(path_);
  try {
    std::optional<FullDisk> full;
    if (root()) full.emplace(1'000'000);
    write_tensor(*comm_, exec_, file ? &*file : nullptr, "state/w", {memory.data(), DType::f32, part.box, shape, 1},
                 part.primary, 400'000);
  } catch (const Error& error) {
    EXPECT_TRUE(error.on_all_ranks());
    EXPECT_EQ(error.code(), ExitCode::failed);
    text = error.what();
  }
  EXPECT_EQ(text.find(path_ + ": state/w, can not be written (file write failed"), 0u) << text;
  EXPECT_EQ(text, comm::broadcast_text(*comm_, text));
}

TEST_F(GatherTest, BlocksThatDoNotCoverTheTensorAreABug) {
  std::vector<float> memory(4);
  std::optional<File> file;
  if (root()) file = create(path_);
  EXPECT_THROW(write_tensor(*comm_, exec_, file ? &*file : nullptr, "w",
                            {memory.data(), DType::f32, Box{{0}, {4}}, Shape{9}, 1}, root()),
               Bug);
}

} // namespace
