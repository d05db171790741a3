// Checkpoints under damage, and which files of a folder they are. One rank.
#include "train/checkpoint.hpp"
#include "train/checkpoint_files.hpp"
#include "train/run_dir.hpp"

#include "base/error.hpp"
#include "io/hdf5.hpp"
#include "runtime/initialise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace soybean;
using namespace soybean::train;

constexpr const char* tiny_model = R"(
[model]
name = "tiny"
input = [2, 4, 4]
layers = [
  { op = "conv2d", channels = 3, kernel = 3, activation = "relu" },
  { op = "flatten" },
  { op = "dense", units = UNITS },
]
loss = "softmax_cross_entropy"
[data]
source = "synthetic"
samples = 20
batch = 4
[train]
steps = 30
optimizer = { name = "sgd", lr = 0.1, momentum = 0.9 }
)";

std::string error_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// A model on one rank that can write and read checkpoints.
struct Model {
  Model(const fs::path& folder, const std::string& units, std::vector<std::string> overrides = {}) {
    const fs::path path = folder / "tiny.toml";
    std::string text = tiny_model;
    text.replace(text.find("UNITS"), 5, units);
    write_file(path, text);
    job = std::make_unique<Job>(make_job({path, std::move(overrides)}, *comm, {1}));
    executor = std::make_unique<runtime::Executor>(job->graph, job->programs,
                                                   runtime::Context{exec, *comm, job->plan.mesh, 0});
    runtime::initialise_parameters(job->graph, *executor, 1);
  }
  std::string save(const fs::path& run, std::int64_t step) { return write_checkpoint(*job, *executor, run, step); }
  std::int64_t load(const std::string& path) { return read_checkpoint(*job, *executor, path).step; }

  /// All that a checkpoint restores, as bytes.
  std::string state() const {
    std::string bytes;
    for (const runtime::Block& block : executor->persistent())
      bytes.append(block.view.as<char>(), static_cast<std::size_t>(block.view.size() * size_of(block.view.dtype)));
    return bytes;
  }
  void forget() {
    for (const runtime::Block& block : executor->persistent())
      std::memset(block.view.as<char>(), 0x55, static_cast<std::size_t>(block.view.size() * size_of(block.view.dtype)));
  }

  std::unique_ptr<comm::Comm> comm = comm::make_self_comm();
  device::Exec exec{1};
  std::unique_ptr<Job> job;
  std::unique_ptr<runtime::Executor> executor;
};

class Checkpoint : public ::testing::Test {
protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("soybean-checkpoint-test-{}", getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
    run_ = root_ / "run";
    folder_ = run_ / "checkpoints";
  }
  void TearDown() override { fs::remove_all(root_); }
  void touch(const fs::path& path, const std::string& text = "x") {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::vector<std::string> names(const fs::path& folder) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path root_, run_, folder_;
};

TEST_F(Checkpoint, DamageIsFoundOrDoesNoHarm) {
  Model model(root_, "5");
  model.save(run_, 6);
  const std::string path = model.save(run_, 7), right = model.state(), good = read_file(path);
  model.forget();
  ASSERT_EQ(model.load(path), 7);
  ASSERT_EQ(model.state(), right);
  int found = 0, harmless = 0;
  const auto try_one = [&](const std::string& what) {
    model.forget();
    std::int64_t step = -1;
    const std::string error = error_of([&] { step = model.load(path); }), where = what + ": " + error;
    if (error == "no error") {
      ++harmless;
      EXPECT_TRUE(step == 7 && model.state() == right) << where;
      return;
    }
    ++found;
    EXPECT_EQ(error.find(path), 0u) << where;
    EXPECT_EQ(error.find("as configured"), std::string::npos) << where;
    EXPECT_EQ(error.find("another model"), std::string::npos) << where;
    EXPECT_TRUE(error.find("step-00000006.h5") != std::string::npos ||
                error.find("format version") != std::string::npos)
        << where;
  };
  const int file = open(path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  const auto replace = [&](std::size_t at, const std::string& bytes, const std::string& what) {
    ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)), static_cast<ssize_t>(bytes.size()));
    try_one(fmt::format("{} at byte {}", what, at));
    ASSERT_EQ(pwrite(file, good.data() + at, bytes.size(), static_cast<off_t>(at)), static_cast<ssize_t>(bytes.size()));
  };
  std::mt19937 random(1);
  const auto flip = [&](std::size_t at) {
    const auto bit = random() % 8;
    replace(at, std::string(1, static_cast<char>(good[at] ^ (1 << bit))), fmt::format("bit {} flipped", bit));
  };
  for (std::size_t at = 0; at < 4096; at += 1 + random() % 3) flip(at);
  for (int i = 0; i < 500; ++i) flip(random() % good.size());
  for (std::size_t at = 0; at + 64 <= good.size(); at += 64) replace(at, std::string(64, '\0'), "zeros");
  close(file);
  EXPECT_GT(found, 1000);
  EXPECT_GT(harmless, 0); // gaps between the structures
  for (std::size_t size = 0; size < good.size(); size += 1 + random() % 200) {
    fs::resize_file(path, 0);
    std::ofstream(path, std::ios::binary).write(good.data(), static_cast<std::streamsize>(size));
    const int before = found;
    try_one(fmt::format("cut at byte {}", size));
    EXPECT_EQ(found, before + 1) << size;
  }
}

TEST_F(Checkpoint, OfAnotherFormatOrChangedOnesAreRefused) {
  Model model(root_, "5");
  const std::string path = model.save(run_, 7), other = root_ / "other.h5";
  const auto rewritten = [&](std::int64_t format) {
    io::File file = io::create(other);
    io::write_attribute(file, "format", format);
    io::write_attribute(file, "header_checksum", "0000000000000000");
    io::close_synced(std::move(file));
    return error_of([&] { model.load(other); });
  };
  EXPECT_EQ(rewritten(3),
            other + ": format version, got 3 expected 2. it was written by another version of soybean_train");
  EXPECT_EQ(rewritten(2), other + ": its header, got a checksum that does not match expected the one written with it. "
                                  "the file is damaged");
  io::close_synced(io::create(other));
  EXPECT_EQ(error_of([&] { model.load(other); }),
            other + ": got an HDF5 file that is no checkpoint expected one written by soybean_train. check the path");
  std::fstream(path, std::ios::in | std::ios::out).seekp(8).put('\0'); // as files before HDF5 1.8 have it
  EXPECT_EQ(error_of([&] { model.load(path); }),
            path +
                ": got an HDF5 file that is no checkpoint, or one of another format version, expected a checkpoint of "
                "format version 2. it was written by another program or by an older soybean_train, or is damaged");
}

TEST_F(Checkpoint, AllThatDoesNotFitIsNamedAtOnce) {
  const std::string path = Model(root_, "5").save(run_, 7);
  Model other(root_, "5", {"train.precision=\"fp64\"", "train.seed=9", "data.batch=5", "data.samples=21"});
  EXPECT_EQ(error_of([&] { other.load(path); }),
            path + ": got a checkpoint with precision fp32 expected fp64, seed 1 expected 9, batch 4 expected 5, "
                   "training samples 20 expected 21 as configured. set train.precision, train.seed, data.batch, "
                   "data.path or data.samples to the checkpoint's");
  Model larger(root_, "6", {"model.name=\"large\"", "train.seed=9", "train.optimizer.momentum=0"});
  EXPECT_EQ(error_of([&] { check_checkpoint(*larger.job, *larger.comm, path); }),
            path + ": got a checkpoint of another model or optimizer expected one of this: model 'tiny' expected "
                   "'large', parameters/dense_1.weight 5x12 expected 6x12, parameters/dense_1.bias 5 expected 6, "
                   "state/conv2d_1.bias.momentum expected no such tensor, 3 more tensors, seed 1 expected 9. give "
                   "--resume a checkpoint of this model, or choose another run.dir to begin anew");
  Model plain(root_, "5", {"train.optimizer.momentum=0"});
  const std::string error = error_of([&] { check_checkpoint(*plain.job, *plain.comm, path); });
  EXPECT_NE(
      error.find("expected no such tensor, 1 more tensor. the layers are the same: train.optimizer, train.ema and "
                 "what is frozen must stay as they were in a run that goes on; another run.dir with "
                 "train.init_from takes its weights"),
      std::string::npos)
      << error;
}

TEST_F(Checkpoint, ItsRoomIsKnownBefore) {
  for (const char* units : {"1", "5", "3000",
                            "9 }, { repeat = 30, layers = [ { op = \"dense\", units = 12 } ] }, { op = "
                            "\"dense\", units = 300"}) {
    Model model(root_, units);
    const auto bytes = static_cast<std::int64_t>(fs::file_size(model.save(run_, 1)));
    const std::int64_t planned = checkpoint_bytes(*model.job);
    EXPECT_GE(planned, bytes) << units;
    EXPECT_LE(planned, bytes + bytes / 10 + 8000) << units;
  }
}

TEST_F(Checkpoint, TheOneBeforeHasFewerSteps) {
  for (const char* name : {"step-00000004.h5", "step-00000012.h5", "step-00000008.h5", "step-00000002-good.h5"})
    touch(folder_ / name);
  EXPECT_EQ(one_before(folder_ / "step-00000010.h5"), folder_ / "step-00000008.h5"); // pruned
  EXPECT_EQ(one_before(folder_ / "step-00000008.h5"), folder_ / "step-00000004.h5");
  EXPECT_EQ(one_before(folder_ / "step-00000002.h5"), "");
  EXPECT_EQ(one_before(folder_ / "mine.h5"), "");
  fs::create_symlink("step-00000008.h5", folder_ / "latest.h5");
  EXPECT_EQ(one_before(folder_ / "latest.h5"), folder_ / "step-00000004.h5");
}

TEST_F(Checkpoint, OnlyItsOwnNamesAreOnes) {
  EXPECT_EQ(step_of(checkpoint_name(120)), 120);
  EXPECT_EQ(step_of("step-123456789012.h5"), 123456789012);
  for (const char* name : {"step-abc.h5", "step-.h5", "step-00000010-best.h5", "step-00000010.h5.tmp", "step--1.h5",
                           "step-99999999999999999999.h5", "my-step-00000010.h5", "step-00000010.hdf5"})
    EXPECT_EQ(step_of(name), std::nullopt) << name;

  const std::vector<std::string> users = {"step-00000001-best.h5", "step-999999999-old.h5", "step-abc.h5"};
  for (const std::string& name : users) touch(folder_ / name);
  fs::create_directories(folder_ / "step-00000000.h5"); // a folder is no checkpoint
  EXPECT_EQ(latest_in(run_), "");
  Model model(root_, "5", {"checkpoint.keep=2"});
  for (const std::int64_t step : {7, 99'999'999, 100'000'001, 100'000'002}) model.save(run_, step);
  EXPECT_EQ(names(folder_),
            (std::vector<std::string>{"latest.h5", "step-00000000.h5", "step-00000001-best.h5", "step-100000001.h5",
                                      "step-100000002.h5", "step-999999999-old.h5", "step-abc.h5"}));
  fs::remove(folder_ / "latest.h5");
  EXPECT_EQ(latest_in(run_), folder_ / "step-100000002.h5");
}

TEST_F(Checkpoint, WhatKilledRunsLeftIsRemoved) {
  EXPECT_TRUE(remove_unfinished(run_).empty());
  for (const char* name :
       {"step-00000012.h5.tmp", "step-00000008.h5.tmp", "step-00000008.h5", "step-1-mine.h5.tmp", "notes.tmp"})
    touch(folder_ / name);
  EXPECT_EQ(remove_unfinished(run_), (std::vector<std::string>{"step-00000008.h5.tmp", "step-00000012.h5.tmp"}));
  EXPECT_EQ(names(folder_), (std::vector<std::string>{"notes.tmp", "step-00000008.h5", "step-1-mine.h5.tmp"}));
}

TEST_F(Checkpoint, ANewRunBeginsWithTheOneItGoesOnFrom) {
  const fs::path elsewhere = root_ / "best.h5";
  touch(elsewhere, "weights");
  EXPECT_EQ(begin_in(run_, elsewhere.string(), 40), "");
  EXPECT_EQ(latest_in(run_), folder_ / "step-00000040.h5");
  EXPECT_TRUE(fs::equivalent(elsewhere, folder_ / "step-00000040.h5")) << "takes no room";

  // From its own folder, from which it is moved; and again.
  const std::string own = folder_ / "latest.h5";
  EXPECT_EQ(begin_in(run_, own, 40), (run_ / "earlier-1").string());
  EXPECT_EQ(begin_in(run_, own, 40), (run_ / "earlier-2").string());
  EXPECT_EQ(names(folder_), (std::vector<std::string>{"latest.h5", "step-00000040.h5"}));
  EXPECT_EQ(read_file(run_ / "earlier-1" / "checkpoints" / "latest.h5"), "weights");
  EXPECT_EQ(begin_in(run_, run_ / "earlier-1" / "checkpoints" / "step-00000040.h5", 40), (run_ / "earlier-3").string());
  EXPECT_EQ(read_file(own), "weights");
  EXPECT_EQ(begin_in(run_, std::nullopt, 0), (run_ / "earlier-4").string());
  EXPECT_EQ(latest_in(run_), "");
  EXPECT_NE(error_of([&] { begin_in(run_, "none.h5", 40); }).find("none.h5: can not be found, got 'No such file"),
            std::string::npos);
}

TEST_F(Checkpoint, AFileSystemWithoutHardLinksGetsACopy) {
  const fs::path source = fs::path("/dev/shm") / fmt::format("soybean-checkpoint-test-{}.h5", getpid());
  std::ofstream(source) << "weights";
  struct stat there {
  }, here{};
  if (stat(source.c_str(), &there) != 0 || stat(root_.c_str(), &here) != 0 || there.st_dev == here.st_dev) {
    fs::remove(source);
    GTEST_SKIP() << "no second file system";
  }
  adopt(source, 40, run_);
  EXPECT_EQ(read_file(folder_ / "latest.h5"), "weights");
  EXPECT_EQ(names(folder_), (std::vector<std::string>{"latest.h5", "step-00000040.h5"}));
  fs::remove(source);
}

TEST_F(Checkpoint, OnesThatWereMovedAreFoundAgain) {
  const fs::path path = folder_ / "step-00000004.h5";
  for (const char* earlier : {"earlier-2", "earlier-10", "earlier-x"})
    touch(run_ / earlier / "checkpoints" / "step-00000004.h5");
  EXPECT_EQ(moved_to(path), run_ / "earlier-10" / "checkpoints" / "step-00000004.h5");
  EXPECT_EQ(moved_to(folder_ / "step-00000005.h5"), "");
  Model model(root_, "5");
  EXPECT_EQ(error_of([&] { model.load(path); }),
            fmt::format("{0}: can not be opened, got 'No such file or directory' expected a readable HDF5 file. check "
                        "the path. it was moved to {1}: --resume={1} goes on from it, --resume from the latest one",
                        path.string(), (run_ / "earlier-10" / "checkpoints" / "step-00000004.h5").string()));
  touch(path);
  EXPECT_EQ(moved_to(path), "") << "it is there";
}

TEST_F(Checkpoint, LinkedFoldersStayWhereTheyAre) {
  const fs::path large = root_ / "large";
  touch(large / "step-00000004.h5", "first");
  touch(large / "notes.txt");
  fs::create_symlink("step-00000004.h5", large / "latest.h5");
  fs::create_directories(run_);
  fs::create_symlink("../large", folder_); // relative to the folder it is in
  touch(root_ / "log.jsonl", "{}");
  fs::create_symlink("../log.jsonl", run_ / "metrics.jsonl");

  EXPECT_EQ(begin_in(run_, (folder_ / "step-00000004.h5").string(), 4), (run_ / "earlier-1").string());
  EXPECT_TRUE(fs::is_symlink(folder_));
  EXPECT_EQ(names(large), (std::vector<std::string>{"earlier-1", "latest.h5", "notes.txt", "step-00000004.h5"}));
  EXPECT_EQ(read_file(run_ / "earlier-1" / "checkpoints" / "latest.h5"), "first");
  EXPECT_EQ(read_file(run_ / "earlier-1" / "metrics.jsonl"), "{}");
  EXPECT_FALSE(fs::exists(run_ / "metrics.jsonl"));
  EXPECT_EQ(begin_in(run_, std::nullopt, 0), (run_ / "earlier-2").string());
  EXPECT_EQ(read_file(run_ / "earlier-2" / "checkpoints" / "latest.h5"), "first");
  EXPECT_EQ(names(large), (std::vector<std::string>{"earlier-1", "earlier-2", "notes.txt"}));

  fs::remove_all(large);
  EXPECT_EQ(error_of([&] { make_run_dir(run_); }),
            fmt::format("run.dir: '{}', got a link that leads to no folder ('../large') expected one for the "
                        "checkpoints. make that folder, or remove the link",
                        folder_.string()));
}

} // namespace
