#include "train/metrics.hpp"
#include "train/progress.hpp"
#include "train/run_dir.hpp"
#include "train/schedule.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <unistd.h>
#include <utility>

namespace {

namespace fs = std::filesystem;
using namespace soybean;
using namespace soybean::train;

config::TrainOptions with_schedule(const config::ScheduleOptions& schedule) {
  config::TrainOptions options;
  options.optimizer.lr = 0.8;
  options.schedule = schedule;
  return options;
}

TEST(Schedule, ConstantStaysAndStepFalls) {
  const data::Order order{.samples = 10, .batch = 4}; // epochs begin within steps 0, 2, 5, 7
  const auto constant = with_schedule({});
  EXPECT_DOUBLE_EQ(learning_rate(constant, order, 1000), 0.8);
  const auto by_steps = with_schedule({.name = "step", .step_steps = 3, .gamma = 0.5});
  EXPECT_DOUBLE_EQ(learning_rate(by_steps, order, 2), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(by_steps, order, 3), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(by_steps, order, 6), 0.2);
  const auto by_epochs = with_schedule({.name = "step", .step_epochs = 2, .gamma = 0.5});
  EXPECT_DOUBLE_EQ(learning_rate(by_epochs, order, 4), 0.8); // row 16 belongs to epoch 1
  EXPECT_DOUBLE_EQ(learning_rate(by_epochs, order, 5), 0.4); // row 20 begins epoch 2
}

TEST(Schedule, FollowsTheFormulasOfPyTorch) {
  const data::Order order{.samples = 16, .batch = 4}; // four steps an epoch
  const auto rate = [&](config::ScheduleOptions schedule, std::int64_t step) {
    config::TrainOptions options{.steps = 20, .schedule = std::move(schedule)};
    options.optimizer.lr = 0.8;
    return learning_rate(options, order, step);
  };
  EXPECT_DOUBLE_EQ(rate({.name = "multi_step", .milestone_epochs = {2, 3}}, 7), 0.8);
  EXPECT_DOUBLE_EQ(rate({.name = "multi_step", .milestone_epochs = {2, 3}}, 8), 0.08);
  EXPECT_DOUBLE_EQ(rate({.name = "multi_step", .milestone_epochs = {2, 3}}, 12), 0.008);
  EXPECT_DOUBLE_EQ(rate({.name = "multi_step", .milestone_steps = {3}, .gamma = 0.5}, 3), 0.4);
  EXPECT_DOUBLE_EQ(rate({.name = "exponential", .gamma = 0.5}, 7), 0.4);
  EXPECT_DOUBLE_EQ(rate({.name = "exponential", .gamma = 0.5}, 8), 0.2);
  EXPECT_DOUBLE_EQ(rate({.name = "exponential", .gamma = 0.5, .per_step = true}, 3), 0.1);
  // torch.optim.lr_scheduler.CosineAnnealingLR(T_max=20, eta_min=0.1) and PolynomialLR(total_iters=20, power=2)
  EXPECT_DOUBLE_EQ(rate({.name = "cosine", .min_lr = 0.1}, 0), 0.8);
  EXPECT_DOUBLE_EQ(rate({.name = "cosine", .min_lr = 0.1}, 10), 0.45);
  EXPECT_NEAR(rate({.name = "cosine", .min_lr = 0.1}, 5), 0.6974873734152916, 1e-15);
  EXPECT_NEAR(rate({.name = "polynomial", .power = 2}, 5), 0.45, 1e-15);
  EXPECT_NEAR(rate({.name = "polynomial", .min_lr = 0.2}, 15), 0.35, 1e-15);
}

TEST(Schedule, WarmUpPrecedesOrScalesAnySchedule) {
  const data::Order order{.samples = 16, .batch = 4};
  const auto rate = [&](config::ScheduleOptions schedule, std::int64_t step) {
    config::TrainOptions options{.steps = 24, .schedule = std::move(schedule)};
    options.optimizer.lr = 0.8;
    return learning_rate(options, order, step);
  };
  const config::ScheduleOptions constant{.warmup_steps = 4, .warmup_factor = 0.25};
  EXPECT_DOUBLE_EQ(rate(constant, 0), 0.2);
  EXPECT_DOUBLE_EQ(rate(constant, 2), 0.5);
  EXPECT_DOUBLE_EQ(rate(constant, 4), 0.8);
  const config::ScheduleOptions cosine{.name = "cosine", .warmup_epochs = 1, .warmup_factor = 0.5};
  EXPECT_DOUBLE_EQ(rate(cosine, 2), 0.6);
  EXPECT_DOUBLE_EQ(rate(cosine, 4), 0.8);
  EXPECT_DOUBLE_EQ(rate(cosine, 14), 0.4); // half of what is left after the warm-up
  const config::ScheduleOptions step{
      .name = "step", .step_steps = 2, .gamma = 0.5, .warmup_steps = 4, .warmup_factor = 0.5};
  EXPECT_DOUBLE_EQ(rate(step, 2), 0.3);
  EXPECT_DOUBLE_EQ(rate(step, 5), 0.2);
}

TEST(Schedule, TheWarmUpIsCountedInSteps) {
  const data::Order order{.samples = 10, .batch = 4};
  EXPECT_EQ(warmup_steps({.warmup_steps = 7}, order), 7);
  EXPECT_EQ(warmup_steps({.warmup_epochs = 2}, order), 5);
}

TEST(Schedule, StepScalarsHoldTheBiasCorrections) {
  const data::Order order{.samples = 16, .batch = 4};
  config::TrainOptions options{.steps = 9};
  options.optimizer.betas = {0.5, 0.75};
  const StepScalars second = step_scalars(options, order, 1);
  EXPECT_EQ(second, (StepScalars{0.01, 1, 0.75, std::sqrt(0.4375)}));
}

TEST(Best, KeepsTheFirstOfTheBestAndCountsThoseAfterIt) {
  Best best;
  EXPECT_TRUE(best.take(10, {.loss = 2, .accuracy = 0.1}, "loss"));
  EXPECT_TRUE(best.take(20, {.loss = 1, .accuracy = 0.1}, "loss"));
  EXPECT_FALSE(best.take(30, {.loss = 1, .accuracy = 0.9}, "loss"));
  EXPECT_FALSE(best.take(40, {.loss = 3, .accuracy = 0.9}, "loss"));
  EXPECT_EQ(best.step, 20);
  EXPECT_EQ(best.since, 2);
  EXPECT_TRUE(best.take(50, {.loss = 3, .accuracy = 0.5}, "accuracy"));
  const Best again = best_from_json(to_json(best));
  EXPECT_EQ(again.step, 50);
  EXPECT_EQ(again.validation.loss, 3);
  EXPECT_EQ(again.validation.accuracy, 0.5);
  EXPECT_EQ(again.since, 0);
}

class Folder : public ::testing::Test {
protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("soybean-train-test-{}", getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_;
};

std::string error_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Folder, AnEarlierRunIsMovedAsideAndNothingIsLost) {
  const std::string dir = root_ / "run";
  make_run_dir(dir);
  EXPECT_EQ(move_earlier_run(dir), "");
  write_file(dir + "/metrics.jsonl", "first");
  write_file(dir + "/notes.txt", "not of a run");
  EXPECT_EQ(move_earlier_run(dir + "/"), dir + "/earlier-1");
  EXPECT_EQ(read_file(dir + "/notes.txt"), "not of a run");
  write_file(dir + "/metrics.jsonl", "second");
  make_run_dir(dir);
  EXPECT_EQ(read_file(dir + "/metrics.jsonl"), "second");
  EXPECT_EQ(move_earlier_run(dir), dir + "/earlier-2");
  EXPECT_EQ(read_file(dir + "/earlier-1/metrics.jsonl"), "first");
  EXPECT_EQ(read_file(dir + "/earlier-2/metrics.jsonl"), "second");
}

TEST_F(Folder, RefusesWhatIsNoWritableFolder) {
  const std::string file = root_ / "file";
  write_file(file, "");
  EXPECT_EQ(error_of([&] { make_run_dir(file); }),
            fmt::format("run.dir: '{}', got a file expected a folder. choose another run.dir", file));
  EXPECT_EQ(error_of([&] { make_run_dir(file + "/run"); }),
            fmt::format("run.dir: '{}/run' can not be made, got Not a directory expected a writable place. choose "
                        "another with --set run.dir=…",
                        file));
  EXPECT_EQ(
      error_of([&] { read_file(file + "2"); }),
      fmt::format("{}2: can not be read, got 'No such file or directory' expected a readable file. check the path",
                  file));
}

TEST_F(Folder, IsOneRunsAtATime) {
  const std::string dir = root_ / "run";
  make_run_dir(dir);
  {
    const RunDirLock lock(dir);
    const std::string error = error_of([&] { const RunDirLock second(dir + "/"); });
    EXPECT_EQ(
        error.find(fmt::format("run.dir: '{}/', got a folder in which a run is active (process {} on ", dir, getpid())),
        0u)
        << error;
  }
  EXPECT_EQ(error_of([&] { const RunDirLock free_again(dir); }), "no error");
}

TEST_F(Folder, MetricsOfLaterStepsAreDropped) {
  const std::string path = root_ / "metrics.jsonl";
  const std::string kept = "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":2,\"validation\":{}}\n";
  write_file(path, kept + "{\"step\":3}\n{\"st"); // cut off when the run was killed
  EXPECT_EQ(truncate_metrics(path, 2), "");
  EXPECT_EQ(read_file(path), kept);
  EXPECT_EQ(truncate_metrics(root_ / "none.jsonl", 2), ""); // no file is fine
}

TEST_F(Folder, MetricsWithOtherLinesAreKeptAside) {
  const std::string path = root_ / "run" / "metrics.jsonl", good = "{\"step\":1}\n", aside = path + ".damaged";
  make_run_dir(root_ / "run");
  std::vector<std::string> expected{aside, aside + "-2", aside + "-3"};
  for (const std::string& text : {"garbage\n" + good, good + "{\"step\":\"x\"}\n", good + "garbage"}) {
    write_file(path, text);
    EXPECT_EQ(truncate_metrics(path, 2), expected.front());
    EXPECT_EQ(read_file(path), good);
    EXPECT_EQ(read_file(expected.front()), text);
    expected.erase(expected.begin());
  }
  EXPECT_EQ(move_earlier_run(root_ / "run"), root_ / "run" / "earlier-1");
  EXPECT_FALSE(fs::exists(aside)) << "it is of the earlier run";
  EXPECT_TRUE(fs::exists(root_ / "run" / "earlier-1" / "metrics.jsonl.damaged-3"));
}

TEST(Progress, ANaNIsPrintedWithoutASign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fmt::format("{:.4f} {:.4f} {:.4f}", plain(nan), plain(-nan), plain(-0.5)), "nan nan -0.5000");
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(3.4), "0:03");
  EXPECT_EQ(duration_text(247), "4:07");
  EXPECT_EQ(duration_text(3909), "1:05:09");
  EXPECT_EQ(duration_text(-1), "0:00");
}

} // namespace
