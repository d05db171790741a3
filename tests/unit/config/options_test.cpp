#include "base/error.hpp"
#include "config/options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace soybean;
using config::RunConfig;
using config::Table;

constexpr const char* minimal = "[data]\nsource = \"synthetic\"\nbatch = 4\n[train]\nsteps = 5\n";

RunConfig read(const std::string& text, const std::vector<std::string>& overrides = {},
               const std::string& file = "models/m.toml") {
  Table table = Table::parse(text, file);
  for (const std::string& o : overrides) table.apply_override(o);
  const RunConfig config = config::read_run_config(table);
  table.table("model").keys();
  return config;
}

std::string error_of(const std::vector<std::string>& overrides, const std::string& text = minimal) {
  try {
    read(text, overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunConfig, DefaultsAreThoseOfTheDocumentation) {
  const RunConfig config = read(minimal);
  EXPECT_EQ(config.model_name, "m");
  EXPECT_EQ(config.data.source, "synthetic");
  EXPECT_EQ(config.data.batch, 4);
  EXPECT_TRUE(config.data.shuffle);
  EXPECT_EQ(config.data.prefetch, 2);
  EXPECT_EQ(config.train.steps, 5);
  EXPECT_EQ(config.train.epochs, 0);
  EXPECT_EQ(config.train.optimizer.name, "sgd");
  EXPECT_EQ(config.train.optimizer.momentum, 0);
  EXPECT_EQ(config.train.schedule.name, "constant");
  EXPECT_EQ(config.train.precision, DType::f32);
  EXPECT_EQ(config.train.seed, 1u);
  EXPECT_EQ(config.train.validate_every, 1);
  EXPECT_EQ(config.parallel.strategy, "auto");
  EXPECT_EQ(config.parallel.objective, "bytes");
  EXPECT_EQ(config.parallel.comm, "auto");
  EXPECT_TRUE(config.parallel.mesh.empty());
  EXPECT_EQ(config.checkpoint.every, 0);
  EXPECT_EQ(config.checkpoint.keep, 3);
  EXPECT_EQ(config.run.dir, "runs/m");
  EXPECT_EQ(config.run.threads, 0);
  EXPECT_EQ(config.run.stall_seconds, 600);
}

constexpr const char* full = R"(
[model]
name = "net"
[data]
source = "hdf5"
path = "../data/d.h5"
batch = 64
normalise = { scale = 0.0625, mean = [0.5, 0.25], std = [2, 1] }
augment = [
  { op = "flip", p = 0.25, vertical = true },
  { op = "crop", padding = [2, 3] },
  { op = "resized_crop", scale = [0.5, 0.75], ratio = [1, 2] },
  { op = "colour_jitter", brightness = 0.1, contrast = 0.2, saturation = 0.3, hue = 0.4 },
  { op = "cutout", size = 8 },
  { op = "mixup", alpha = 0.25, p = 0.5 },
  { op = "cutmix" },
]
shuffle = false
prefetch = 0
threads = 3
[train]
epochs = 3
optimizer = { name = "sgd", lr = 0.05, momentum = 0.9, weight_decay = 5e-4, nesterov = true }
schedule = { name = "step", step_epochs = 2, gamma = 0.5 }
precision = "fp64"
seed = 7
validate_every = 2
log_every = 3
[parallel]
strategy = "owt"
pins = { "fc.weight" = "split(0),replicate" }
objective = "bytes"
mesh = [2, 2]
comm = "mpi_library"
skip_passes = ["in_place"]
[checkpoint]
every = 10
keep = 1
[run]
dir = "out"
threads = 2
stall_seconds = 1.5
)";

void expect_full(const RunConfig& config) {
  EXPECT_EQ(config.model_name, "net");
  EXPECT_EQ(config.data.normalise.scale, 0.0625);
  EXPECT_EQ(config.data.normalise.mean, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(config.data.normalise.std, (std::vector<double>{2, 1}));
  const std::vector<config::AugmentStep>& steps = config.data.augment;
  ASSERT_EQ(steps.size(), 7u);
  EXPECT_EQ(steps[0].op, "flip");
  EXPECT_EQ(steps[0].p, 0.25);
  EXPECT_TRUE(steps[0].vertical);
  EXPECT_EQ(steps[1].op, "crop");
  EXPECT_EQ(steps[1].padding, (std::array<std::int64_t, 2>{2, 3}));
  EXPECT_EQ(steps[2].op, "resized_crop");
  EXPECT_EQ(steps[2].scale, (std::array<double, 2>{0.5, 0.75}));
  EXPECT_EQ(steps[2].ratio, (std::array<double, 2>{1, 2}));
  EXPECT_EQ(steps[3].op, "colour_jitter");
  EXPECT_EQ(steps[3].brightness, 0.1);
  EXPECT_EQ(steps[3].contrast, 0.2);
  EXPECT_EQ(steps[3].saturation, 0.3);
  EXPECT_EQ(steps[3].hue, 0.4);
  EXPECT_EQ(steps[4].op, "cutout");
  EXPECT_EQ(steps[4].size, 8);
  EXPECT_EQ(steps[5].op, "mixup");
  EXPECT_EQ(steps[5].alpha, 0.25);
  EXPECT_EQ(steps[5].p, 0.5);
  EXPECT_EQ(steps[6].alpha, 1);
  EXPECT_EQ(steps[6].p, 1);
  EXPECT_FALSE(config.data.shuffle);
  EXPECT_EQ(config.data.prefetch, 0);
  EXPECT_EQ(config.data.threads, 3);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.steps, 0);
  EXPECT_EQ(config.train.optimizer.lr, 0.05);
  EXPECT_EQ(config.train.optimizer.momentum, 0.9);
  EXPECT_EQ(config.train.optimizer.weight_decay, 5e-4);
  EXPECT_TRUE(config.train.optimizer.nesterov);
  EXPECT_EQ(config.train.schedule.step_epochs, 2);
  EXPECT_EQ(config.train.schedule.gamma, 0.5);
  EXPECT_EQ(config.train.precision, DType::f64);
  EXPECT_EQ(config.train.seed, 7u);
  EXPECT_EQ(config.train.validate_every, 2);
  EXPECT_EQ(config.train.log_every, 3);
  EXPECT_EQ(config.parallel.strategy, "owt");
  EXPECT_EQ(config.parallel.pins.at("fc.weight"), "split(0),replicate");
  EXPECT_EQ(config.parallel.mesh, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(config.parallel.comm, "mpi_library");
  EXPECT_EQ(config.parallel.skip_passes, (std::vector<std::string>{"in_place"}));
  EXPECT_EQ(config.checkpoint.every, 10);
  EXPECT_EQ(config.checkpoint.keep, 1);
  EXPECT_EQ(config.run.dir, "out");
  EXPECT_EQ(config.run.threads, 2);
  EXPECT_EQ(config.run.stall_seconds, 1.5);
}

TEST(RunConfig, ReadsEveryKeyAndLeavesNoneUnread) {
  const Table table = Table::parse(full, "models/m.toml");
  const RunConfig config = config::read_run_config(table);
  expect_full(config);
  EXPECT_EQ(config.data.path, "data/d.h5");
  EXPECT_EQ(config.parallel.pins_where, "models/m.toml:31: parallel.pins");
  EXPECT_NO_THROW(table.report_unread());
}

TEST(RunConfig, ResolvedTextGivesTheSameRunAgain) {
  const Table table = Table::parse(full, "/models/m.toml");
  const std::string text = config::resolved_toml(config::read_run_config(table), table);
  const Table again = Table::parse(text, "/elsewhere/config.toml");
  const RunConfig config = config::read_run_config(again);
  expect_full(config);
  EXPECT_EQ(config.data.path, "/data/d.h5");
  EXPECT_NO_THROW(again.report_unread());
  EXPECT_EQ(config::resolved_toml(config, again), text);
}

TEST(RunConfig, ResolvedTextNamesTheModelAndHoldsOverrides) {
  Table table = Table::parse(std::string("[model]\ninput = [3]\n") + minimal, "m.toml");
  table.apply_override("train.seed=12");
  table.apply_override("model.bias=false");
  const std::string text = config::resolved_toml(config::read_run_config(table), table);
  EXPECT_EQ(
      text.rfind("[model]\nname = \"m\"\ninput = [3]\nbias = false\n\n[data]\nsource = \"synthetic\"\nbatch = 4\n", 0),
      0u)
      << text;
  EXPECT_NE(text.find("\nseed = 12\n"), std::string::npos) << text;
}

TEST(RunConfig, PathsAreRelativeToTheModelFileButToTheFolderWhenOverridden) {
  const std::string text =
      "[data]\nsource = \"hdf5\"\npath = \"d.h5\"\nbatch = 1\n[train]\nsteps = 1\n[parallel]\nplan = \"p.json\"\n";
  EXPECT_EQ(read(text).data.path, "models/d.h5");
  EXPECT_EQ(read(text).parallel.plan, "models/p.json");
  EXPECT_EQ(read(text).parallel.strategy, "file");
  EXPECT_EQ(read(text, {"data.path=x/d.h5"}).data.path, "x/d.h5");
  EXPECT_EQ(read(text, {"data.path=/x/d.h5"}).data.path, "/x/d.h5");
  EXPECT_EQ(read(text, {"run.dir=here"}).run.dir, "here");
}

TEST(RunConfig, OverridesReplaceWhatExcludesThem) {
  EXPECT_EQ(read("[data]\nsource=\"synthetic\"\nbatch=1\n[train]\nepochs=3\n", {"train.steps=9"}).train.epochs, 0);
  EXPECT_EQ(read("[data]\nsource=\"synthetic\"\nbatch=1\n[train]\nepochs=3\n", {"train.steps=9"}).train.steps, 9);
  EXPECT_EQ(read(minimal, {"train.epochs=2"}).train.steps, 0);
  const std::string planned = std::string(minimal) + "[parallel]\nplan = \"p.json\"\n";
  EXPECT_EQ(read(planned, {"parallel.strategy=data"}).parallel.strategy, "data");
  EXPECT_EQ(read(planned, {"parallel.strategy=data"}).parallel.plan, "");
  const std::string phased = std::string(minimal) + "schedule = { name = \"step\", step_epochs = 2 }\n";
  EXPECT_EQ(read(phased, {"train.schedule.step_steps=9"}).train.schedule.step_steps, 9);
  EXPECT_EQ(read(phased, {"train.schedule.step_steps=9"}).train.schedule.step_epochs, 0);
}

TEST(RunConfig, OfOverridesThatExcludeEachOtherTheLaterHolds) {
  EXPECT_EQ(read(minimal, {"train.epochs=1", "train.steps=7"}).train.steps, 7);
  EXPECT_EQ(read(minimal, {"train.epochs=1", "train.steps=7"}).train.epochs, 0);
  EXPECT_EQ(read(minimal, {"train.steps=7", "train.epochs=1"}).train.steps, 0);
  EXPECT_EQ(read(minimal, {"train.steps=7", "train.epochs=1"}).train.epochs, 1);
  EXPECT_EQ(read(minimal, {"parallel.plan=p", "parallel.strategy=data"}).parallel.strategy, "data");
  EXPECT_EQ(read(minimal, {"parallel.strategy=data", "parallel.plan=p"}).parallel.strategy, "file");
  EXPECT_EQ(error_of({"train={epochs=1, steps=7}"}),
            "--set train={epochs=1, steps=7}: train.steps, got 7 (integer) expected either epochs or steps. remove one "
            "of them");
}

TEST(RunConfig, AVoidKeyCountsAsRead) {
  Table table = Table::parse(std::string(minimal) + "epochs = 3\n", "m.toml");
  table.apply_override("train.steps=2");
  config::read_run_config(table);
  EXPECT_NO_THROW(table.report_unread());
}

TEST(RunConfig, PinsAndPlansExcludeEachOther) {
  const std::string plan = "plan = \"p.json\"\n", pins = "pins = { w = \"replicate\" }\n";
  const std::string start = std::string(minimal) + "[parallel]\n";
  EXPECT_EQ(
      error_of({}, start + plan + pins),
      "models/m.toml:7: parallel.plan, got \"p.json\" (string) expected either a plan or pins. remove one of them");
  EXPECT_EQ(error_of({"parallel={plan=\"p\", pins={w=\"replicate\"}}"}).find("expected either a plan or pins") !=
                std::string::npos,
            true);
  const config::ParallelOptions pinned = read(start + plan, {"parallel.pins.w=replicate"}).parallel;
  EXPECT_EQ(pinned.plan, "");
  EXPECT_EQ(pinned.strategy, "auto");
  EXPECT_EQ(pinned.pins.size(), 1u);
  const config::ParallelOptions planned = read(start + pins, {"parallel.plan=q.json"}).parallel;
  EXPECT_EQ(planned.plan, "q.json");
  EXPECT_EQ(planned.strategy, "file");
  EXPECT_TRUE(planned.pins.empty());
  EXPECT_EQ(read(start + plan + "pins = {}\n").parallel.strategy, "file"); // as resolved configurations say
  EXPECT_EQ(read(start + "strategy = \"data\"\n" + pins).parallel.pins.size(), 1u);
}

TEST(RunConfig, KeysOfAnotherSourceOrScheduleAreRefused) {
  const std::string hdf5 = "[data]\nsource = \"hdf5\"\npath = \"d.h5\"\nbatch = 1\n[train]\nsteps = 1\n";
  const std::string only = " (integer) expected no such key with data.source = \"hdf5\". set data.source = "
                           "\"synthetic\", or leave it out";
  EXPECT_EQ(error_of({"data.path=d.h5"}),
            "--set data.path=d.h5: data.path, got \"d.h5\" (string) expected no such key with data.source = "
            "\"synthetic\". set data.source = \"hdf5\" or \"idx\" or \"cifar\" or \"npy\" or \"npz\" or "
            "\"image_folder\" or \"tokens\", or leave it out");
  EXPECT_EQ(error_of({"data.labels=coarse"}, hdf5),
            "--set data.labels=coarse: data.labels, got \"coarse\" (string) expected no such key with data.source = "
            "\"hdf5\". set data.source = \"cifar\", or leave it out");
  for (const std::string key : {"classes", "samples", "validation_samples", "noise"})
    EXPECT_EQ(error_of({fmt::format("data.{}=3", key)}, hdf5),
              fmt::format("--set data.{0}=3: data.{0}, got 3{1}", key, only));
  EXPECT_EQ(error_of({}, "[data]\nsource = \"hdf5\"\nsamples = 5\npath = \"d.h5\"\nbatch = 1\n[train]\nsteps = 1\n"),
            "models/m.toml:3: data.samples, got 5" + only);
  EXPECT_EQ(
      error_of({"train.schedule.gamma=0.5"}),
      "--set train.schedule.gamma=0.5: train.schedule.gamma, got 0.5 (number) expected no such key with "
      "train.schedule.name = \"constant\". set train.schedule.name = \"step\" or \"multi_step\" or \"exponential\", "
      "or leave it out");
}

TEST(RunConfig, AnotherSourceOnTheCommandLineMakesTheFilesKeysVoid) {
  Table table = Table::parse(
      "[data]\nsource = \"hdf5\"\npath = \"d.h5\"\nbatch = 1\n[train]\nsteps = 1\nschedule = { name = \"step\", "
      "step_steps = 2, gamma = 0.5 }\n",
      "m.toml");
  table.apply_override("data.source=synthetic");
  table.apply_override("train.schedule.name=constant");
  const RunConfig config = config::read_run_config(table);
  EXPECT_EQ(config.data.path, "");
  EXPECT_EQ(config.train.schedule.step_steps, 0);
  EXPECT_NO_THROW(table.report_unread());
}

TEST(RunConfig, MisspeltTablesAndKeysAreNamedWhereSomethingIsMissing) {
  const std::string data = "[data]\nsource = \"synthetic\"\nbatch = 4\n", train = "[train]\nsteps = 5\n";
  const auto unknown = [](int line, const std::string& key, const std::string& got, const std::string& meant) {
    return fmt::format("models/m.toml:{}: unknown key {}, got {} expected a known key. did you mean \"{}\"?", line, key,
                       got, meant);
  };
  EXPECT_EQ(error_of({}, data + "[trian]\nsteps = 5\n"), unknown(4, "trian", "{ steps = 5 } (table)", "train"));
  EXPECT_EQ(error_of({}, "[dataa]\nbatch = 4\n" + train), unknown(1, "dataa", "{ batch = 4 } (table)", "data"));
  EXPECT_EQ(error_of({}, data + "[train]\nsetps = 4\n"), unknown(5, "train.setps", "4 (integer)", "steps"));
  EXPECT_EQ(error_of({}, "[data]\nsource = \"synthetic\"\nbacth = 4\n" + train),
            unknown(3, "data.bacth", "4 (integer)", "batch"));
  EXPECT_EQ(error_of({}, "[data]\nsource = \"hdf5\"\nbatch = 1\npaht = \"x\"\n" + train),
            unknown(4, "data.paht", "\"x\" (string)", "path"));
  EXPECT_EQ(error_of({}, data + train + "schedule = { name = \"step\", step_epoch = 3 }\n"),
            unknown(6, "train.schedule.step_epoch", "3 (integer)", "step_epochs"));
}

TEST(RunConfig, NormalisationHasOneValueOrOnePerChannel) {
  const std::string text = std::string("[model]\ninput = [3, 8, 8]\n") + minimal;
  for (const std::string key : {"mean", "std"}) {
    EXPECT_EQ(error_of({fmt::format("data.normalise.{}=[1, 2]", key)}, text),
              fmt::format("--set data.normalise.{0}=[1, 2]: data.normalise.{0}, got 2 values expected 1 or 3 (one per "
                          "channel of model.input)",
                          key));
    EXPECT_EQ(error_of({fmt::format("data.normalise.{}=[1, 2, 3, 4]", key), "model.input=[1, 8, 8]"}, text),
              fmt::format("--set data.normalise.{0}=[1, 2, 3, 4]: data.normalise.{0}, got 4 values expected 1 (one per "
                          "channel of model.input)",
                          key));
    for (const char* good : {"[]", "[2]", "[1, 2, 3]"})
      EXPECT_EQ(error_of({fmt::format("data.normalise.{}={}", key, good)}, text), "no error");
  }
}

TEST(RunConfig, EverySourceOfFilesNeedsItsPath) {
  const std::vector<std::pair<std::string, std::string>> sources = {
      {"hdf5", "an HDF5 file"},
      {"idx", "a folder of IDX files"},
      {"cifar", "a folder of CIFAR's binary files"},
      {"npy", "a folder of .npy files"},
      {"npz", "a .npz file"},
      {"image_folder", "a folder with train/ and validation/"}};
  for (const auto& [source, what] : sources) {
    const std::string text = fmt::format("[data]\nsource = \"{}\"\nbatch = 1\n[train]\nsteps = 1\n", source);
    EXPECT_EQ(error_of({}, text), fmt::format("models/m.toml:1: data.path, got nothing expected the path of {}. it is "
                                              "relative to the model file",
                                              what));
    EXPECT_EQ(read(text, {"data.path=x"}).data.path, "x");
  }
  EXPECT_EQ(error_of({"data.labels=both"}, "[data]\nsource = \"cifar\"\npath = \"c\"\nbatch = 1\n[train]\nsteps = 1\n"),
            "--set data.labels=both: data.labels, got \"both\" (string) expected one of fine, coarse");
}

TEST(RunConfig, SeveralFilesAreRelativeToTheModelFile) {
  const std::string text = "[data]\nsource = \"hdf5\"\npath = [\"a.h5\", \"/b.h5\"]\nbatch = 1\n[train]\nsteps = 1\n";
  using Files = std::vector<std::string>;
  EXPECT_EQ(read(text).data.files, (Files{"models/a.h5", "/b.h5"}));
  EXPECT_EQ(read(text).data.path, "");
  EXPECT_EQ(read(text, {"data.path=[\"c.h5\"]"}).data.files, Files{"c.h5"});
  EXPECT_EQ(read(text, {"data.path=c.h5"}).data.path, "c.h5");
  EXPECT_EQ(error_of({"data.path=[]"}, text),
            "--set data.path=[]: data.path, got [] (array) expected the paths of HDF5 files");
  EXPECT_EQ(error_of({"data.path=[\"\"]"}, text),
            "--set data.path=[\"\"]: data.path, got [\"\"] (array) expected paths of files");
  EXPECT_EQ(error_of({"data.source=npz"}, text),
            "models/m.toml:3: data.path, got [\"a.h5\", \"/b.h5\"] (array) expected a string");
  const Table table = Table::parse(text, "/models/m.toml");
  const std::string resolved = config::resolved_toml(config::read_run_config(table), table);
  EXPECT_NE(resolved.find("\npath = [\"/models/a.h5\", \"/b.h5\"]\n"), std::string::npos) << resolved;
}

TEST(RunConfig, ImagesHaveTheShapeOfImages) {
  const std::string text = "[model]\ninput = [3, 8, 12]\n[data]\nsource = \"image_folder\"\npath = \"d\"\nresize = "
                           "12\nbatch = 1\n[train]\nsteps = 1\n";
  EXPECT_EQ(read(text).data.resize, 12);
  EXPECT_EQ(error_of({"data.resize=11"}, text), "--set data.resize=11: data.resize, got 11 (integer) expected at least "
                                                "12, the longer side of model.input, or 0");
  EXPECT_EQ(error_of({"model.input=[8]"}, text),
            "models/m.toml:4: data.source, got \"image_folder\" (string) expected a "
            "source of samples of shape 8, as in model.input. images are [1 or 3, "
            "height, width]");
}

TEST(RunConfig, AugmentationsAreCheckedOneByOne) {
  const std::string text = std::string("[model]\ninput = [3, 8, 8]\n") + minimal;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{op=\"flop\"}",
       ".op, got \"flop\" (string) expected one of flip, crop, resized_crop, colour_jitter, cutout, mixup, cutmix. "
       "did you mean \"flip\"?"},
      {"{op=\"mixup\", alpha=0}",
       ".alpha, got 0 (integer) expected a number above 0, at most 100. to mix nothing leave out the step"},
      {"{op=\"cutmix\", alpha=-0.5}", ".alpha, got -0.5 (number) expected a number above 0, at most 100"},
      {"{op=\"mixup\", alpha=1e6}", ".alpha, got 1000000.0 (number) expected a number above 0, at most 100"},
      {"{op=\"cutmix\", alpha=nan}", ".alpha, got nan (number) expected a finite number"},
      {"{op=\"mixup\", p=2}", ".p, got 2 (integer) expected at most 1"},
      {"{}", ".op, got nothing expected one of flip, crop, resized_crop, colour_jitter, cutout, mixup, cutmix"},
      {"{p=1}", ".op, got nothing expected one of flip, crop, resized_crop, colour_jitter, cutout, mixup, cutmix"},
      {"{op=\"flip\", padding=4}",
       ".padding, got 4 (integer) expected no such key with data.augment[0].op = \"flip\". set data.augment[0].op = "
       "\"crop\", or leave it out"},
      {"{op=\"flip\", p=1.5}", ".p, got 1.5 (number) expected at most 1"},
      {"{op=\"flip\", p=-1}", ".p, got -1 (integer) expected at least 0"},
      {"{op=\"crop\"}", ".padding, got nothing expected at least 1, as all samples have the size of model.input"},
      {"{op=\"crop\", padding=-1}", ".padding, got -1 (integer) expected at least 0"},
      {"{op=\"crop\", padding=[1, 8]}",
       ".padding, got [1, 8] (array) expected less than the image, 8x8. what is cut out would often be nothing but "
       "padding"},
      {"{op=\"resized_crop\", scale=[2, 3]}",
       ".scale, got [2, 3] (array) expected two shares of the image's area, the smaller at most 1"},
      {"{op=\"resized_crop\", scale=[0.5]}", ".scale, got [0.5] (array) expected two numbers above 0, the larger last"},
      {"{op=\"resized_crop\", scale=[0, 1]}",
       ".scale, got [0, 1] (array) expected two numbers above 0, the larger last"},
      {"{op=\"resized_crop\", ratio=[2, 1]}",
       ".ratio, got [2, 1] (array) expected two numbers above 0, the larger last"},
      {"{op=\"colour_jitter\"}",
       ".brightness, got nothing expected a number above 0 for one of brightness, contrast, saturation, hue"},
      {"{op=\"colour_jitter\", contrast=-1}", ".contrast, got -1 (integer) expected at least 0"},
      {"{op=\"colour_jitter\", hue=0.6}", ".hue, got 0.6 (number) expected at most 0.5, half of the circle"},
      {"{op=\"cutout\"}", ".size, got nothing expected an integer"},
      {"{op=\"cutout\", size=0}", ".size, got 0 (integer) expected at least 1"},
      {"{op=\"cutout\", size=9}", ".size, got 9 (integer) expected at most 8, the longer side of model.input. larger "
                                  "squares leave nothing of many "
                                  "images"},
  };
  for (const auto& [step, expected] : cases) {
    const std::string assignment = "data.augment=[" + step + "]";
    EXPECT_EQ(error_of({assignment}, text), fmt::format("--set {}: data.augment[0]{}", assignment, expected));
  }
  EXPECT_EQ(error_of({"data.augment=[{op=\"cutout\", size=1}, {op=\"flip\"}]"}, text),
            "--set data.augment=[{op=\"cutout\", size=1}, {op=\"flip\"}]: data.augment[1].op, got \"flip\" (string) "
            "expected nothing but cutout, mixup and cutmix after a cutout. its squares are cut last");
  const auto of_two = [&](const std::string& steps) {
    const std::string error = error_of({"data.augment=" + steps}, text);
    return error.substr(error.find(": data.") + 2);
  };
  EXPECT_EQ(of_two("[{op=\"mixup\", p=0.5}, {op=\"flip\"}]"),
            "data.augment[1].op, got \"flip\" (string) expected nothing but mixup and cutmix after mixup. samples are "
            "mixed last");
  EXPECT_EQ(of_two("[{op=\"cutmix\"}, {op=\"mixup\"}]"),
            "data.augment[1].op, got \"mixup\" (string) expected nothing after a cutmix with p = 1. a sample is mixed "
            "once: give the one before a p below 1, and this one gets the rest");
  EXPECT_EQ(
      error_of({"data.augment=[{op=\"flip\"}]", "model.input=[64]"}, text),
      "--set data.augment=[{op=\"flip\"}]: data.augment, got [{ op = \"flip\" }] (array) expected none with samples of "
      "shape 64, as in model.input. images are [channels, height, width]; mixup alone is for "
      "all samples");
  EXPECT_EQ(error_of({"data.augment=[{op=\"cutmix\"}]", "model.input=[64]"}, text),
            "--set data.augment=[{op=\"cutmix\"}]: data.augment, got [{ op = \"cutmix\" }] (array) expected none with "
            "samples of shape 64, as in model.input. images are [channels, height, width]; mixup alone is for all "
            "samples");
  EXPECT_EQ(error_of({"data.augment=[{op=\"mixup\"}]", "model.input=[64]"}, text), "no error");
  EXPECT_EQ(error_of({"data.augment=[{op=\"colour_jitter\", hue=0.1}]", "model.input=[2, 8, 8]"}, text),
            "--set data.augment=[{op=\"colour_jitter\", hue=0.1}]: data.augment[0].op, got \"colour_jitter\" (string) "
            "expected none that needs colours with 2 channels. images of colours have 3, grey ones 1");
  EXPECT_EQ(error_of({"data.augment=flip"}, text),
            "--set data.augment=flip: data.augment, got \"flip\" (string) expected a list of tables");
  EXPECT_EQ(error_of({"data.augment=[{op=\"crop\"}]"}, "[model]\ninput = [3, 8, 8]\n[data]\nsource = \"image_folder\"\n"
                                                       "path = \"d\"\nbatch = 1\n[train]\nsteps = 1\n"),
            "no error");
}

TEST(RunConfig, ChangesOfTheDataAreNamed) {
  const std::string before =
      "[data]\nsource = \"hdf5\"\npath = \"/a.h5\"\nbatch = 4\nnormalise = { scale = 2.0, mean = "
      "[] }\nshuffle = true\nprefetch = 2\n[train]\nseed = 1\n";
  EXPECT_TRUE(config::data_changes(before, before).empty());
  const std::string now =
      "[data]\nsource = \"hdf5\"\npath = \"/b.h5\"\nbatch = 8\naugment = []\nnormalise = { scale = 2.0, "
      "mean = [1.0], std = [] }\nshuffle = false\nprefetch = 0\n[train]\nseed = 2\n";
  EXPECT_EQ(config::data_changes(before, now), (std::vector<std::string>{"data.path was \"/a.h5\" and is \"/b.h5\"",
                                                                         "data.normalise.mean was [] and is [1.0]",
                                                                         "data.shuffle was true and is false"}));
}

TEST(RunConfig, ModelNames) {
  EXPECT_EQ(read(minimal, {}, "a/my net.toml").model_name, "my_net");
  EXPECT_EQ(read(minimal, {}, "").model_name, "model");
  EXPECT_EQ(
      error_of({"model.name=a/b"}),
      "--set model.name=a/b: model.name, got \"a/b\" (string) expected letters, digits, '.', '_', '-' and '+', not "
      "'.' first. it also names the run's folder");
}

TEST(RunConfig, MissingParts) {
  EXPECT_EQ(error_of({}, "[data]\nbatch = 1\n"), "models/m.toml:1: data.source, got nothing expected one of "
                                                 "synthetic, hdf5, idx, cifar, npy, npz, image_folder, tokens");
  EXPECT_EQ(
      error_of({}, "[data]\nsource = \"hdf5\"\nbatch = 1\n"),
      "models/m.toml:1: data.path, got nothing expected the path of an HDF5 file. it is relative to the model file");
  EXPECT_EQ(error_of({}, "[data]\nsource = \"synthetic\"\n[train]\nsteps = 1\n"),
            "models/m.toml:1: data.batch, got nothing expected an integer");
  EXPECT_EQ(error_of({}, "[data]\nsource = \"synthetic\"\nbatch = 1\n[train]\nseed = 1\n"),
            "models/m.toml:4: train.epochs, got nothing expected a number of epochs, or of steps");
  EXPECT_EQ(error_of({}, std::string(minimal) + "epochs = 1\n"),
            "models/m.toml:5: train.steps, got 5 (integer) expected either epochs or steps. remove one of them");
  EXPECT_EQ(
      error_of({}, std::string(minimal) + "[parallel]\nplan = \"p\"\nstrategy = \"auto\"\n"),
      "models/m.toml:7: parallel.plan, got \"p\" (string) expected either a plan or a strategy. remove one of them");
}

struct Bad {
  const char* assignment;
  const char* text; ///< after "--set <assignment>: "
};

TEST(RunConfig, RangesAndWords) {
  const std::vector<Bad> cases = {
      {"data.batch=0", "data.batch, got 0 (integer) expected at least 1"},
      {"data.batch=-4", "data.batch, got -4 (integer) expected at least 1"},
      {"data.batch=many", "data.batch, got \"many\" (string) expected an integer"},
      {"data.source=csv", "data.source, got \"csv\" (string) expected one of synthetic, hdf5, idx, cifar, npy, "
                          "npz, image_folder, tokens. \"csv\" is not "
                          "supported yet"},
      {"data.source=hfd5", "data.source, got \"hfd5\" (string) expected one of synthetic, hdf5, idx, cifar, npy, npz, "
                           "image_folder, tokens. did you mean "
                           "\"hdf5\"?"},
      {"data.samples=0", "data.samples, got 0 (integer) expected at least 1"},
      {"data.validation_samples=-1", "data.validation_samples, got -1 (integer) expected at least 0"},
      {"data.classes=-1", "data.classes, got -1 (integer) expected at least 0"},
      {"data.noise=-0.5", "data.noise, got -0.5 (number) expected at least 0"},
      {"data.prefetch=-1", "data.prefetch, got -1 (integer) expected at least 0"},
      {"data.threads=-1", "data.threads, got -1 (integer) expected at least 0"},
      {"data.normalise.scale=0", "data.normalise.scale, got 0 (integer) expected a number other than 0"},
      {"data.normalise.std=[1, 0]", "data.normalise.std, got [1, 0] (array) expected numbers above 0"},
      {"data.normalise.std=[-1]", "data.normalise.std, got [-1] (array) expected numbers above 0"},
      {"data.normalise.std=[nan]", "data.normalise.std[0], got nan (number) expected a finite number"},
      {"data.normalise.mean=[1, inf]", "data.normalise.mean[1], got inf (number) expected a finite number"},
      {"train.steps=0", "train.steps, got 0 (integer) expected at least 1"},
      {"train.epochs=0", "train.epochs, got 0 (integer) expected at least 1"},
      {"train.seed=-1", "train.seed, got -1 (integer) expected at least 0"},
      {"parallel.pins.fc1.weight=replicate",
       "parallel.pins.fc1, got { weight = \"replicate\" } (table) expected a tiling. put the tensor's name in quotes: "
       "parallel.pins.\"fc1.…\""},
      {"train.precision=bf16",
       "train.precision, got \"bf16\" (string) expected one of fp32, tf32, fp64. \"bf16\" is not supported yet"},
      {"train.optimizer.betas=[0.9,0.99]",
       "train.optimizer.betas, got [0.9, 0.99] (array) expected no such key with train.optimizer.name = \"sgd\". set "
       "train.optimizer.name = \"adam\" or \"adamw\" or \"lamb\", or leave it out"},
      {"train.optimizer={name=\"adam\", betas=[0.9]}",
       "train.optimizer.betas, got [0.9] (array) expected two numbers, each at least 0 and less than 1"},
      {"train.optimizer={name=\"adam\", betas=[0.9,1]}",
       "train.optimizer.betas, got [0.9, 1] (array) expected two numbers, each at least 0 and less than 1"},
      {"train.optimizer={name=\"lamb\", eps=-1}", "train.optimizer.eps, got -1 (integer) expected at least 0"},
      {"train.optimizer={name=\"rmsprop\", alpha=1}", "train.optimizer.alpha, got 1 (integer) expected less than 1"},
      {"train.optimizer={name=\"lars\", trust_coefficient=0}",
       "train.optimizer.trust_coefficient, got 0 (integer) expected a number above 0"},
      {"train.clip_norm=-1", "train.clip_norm, got -1 (integer) expected at least 0"},
      {"train.ema=1", "train.ema, got 1 (integer) expected less than 1"},
      {"train.patience=-1", "train.patience, got -1 (integer) expected at least 0"},
      {"train={steps=1, patience=2, validate_every=0}",
       "train.patience, got 2 (integer) expected 0 with train.validate_every = 0. let there be validations before the "
       "end"},
      {"train.microbatches=0", "train.microbatches, got 0 (integer) expected at least 1"},
      {"train.microbatches=few", "train.microbatches, got \"few\" (string) expected auto"},
      {"train.recompute=all", "train.recompute, got \"all\" (string) expected one of auto, none, cheap, segments"},
      {"train.best_by=speed", "train.best_by, got \"speed\" (string) expected one of loss, accuracy"},
      {"train.init_from=\"\"", "train.init_from, got \"\" (string) expected the path of a checkpoint"},
      {"checkpoint={keep=0, best=true}",
       "checkpoint.best, got true (boolean) expected false with checkpoint.keep = 0. keep at least 1"},
      {"train.optimizer.lr=0", "train.optimizer.lr, got 0 (integer) expected a number above 0"},
      {"train.optimizer.lr=nan", "train.optimizer.lr, got nan (number) expected a finite number"},
      {"train.optimizer.lr=inf", "train.optimizer.lr, got inf (number) expected a finite number"},
      {"train.optimizer.momentum=1", "train.optimizer.momentum, got 1 (integer) expected less than 1"},
      {"train.optimizer.momentum=-0.1", "train.optimizer.momentum, got -0.1 (number) expected at least 0"},
      {"train.optimizer.weight_decay=-1", "train.optimizer.weight_decay, got -1 (integer) expected at least 0"},
      {"train.optimizer.nesterov=true",
       "train.optimizer.nesterov, got true (boolean) expected false without momentum. set momentum above 0"},
      {"train.schedule={name=\"multi_step\"}",
       "train.schedule.milestone_epochs, got nothing expected a list of epochs, or milestone_steps"},
      {"train.schedule={name=\"multi_step\", milestone_steps=[3, 3]}",
       "train.schedule.milestone_steps, got [3, 3] (array) expected ascending numbers, at least one"},
      {"train.schedule={name=\"exponential\"}", "train.schedule.gamma, got nothing expected a number"},
      {"train.schedule={name=\"exponential\", gamma=0}",
       "train.schedule.gamma, got 0 (integer) expected a number above 0"},
      {"train.schedule={name=\"cosine\", min_lr=0.5}",
       "train.schedule.min_lr, got 0.5 (number) expected at most train.optimizer.lr, 0.01"},
      {"train.schedule={name=\"polynomial\", power=0}",
       "train.schedule.power, got 0 (integer) expected a number above 0"},
      {"train.schedule.warmup_factor=1.5", "train.schedule.warmup_factor, got 1.5 (number) expected at most 1"},
      {"train.schedule.name=step",
       "train.schedule.step_epochs, got nothing expected a number of epochs, or step_steps"},
      {"train.schedule={warmup_steps=5, warmup_epochs=1}", "train.schedule.warmup_steps, got 5 (integer) expected "
                                                           "either warmup_epochs or warmup_steps. remove one of them"},
      {"train.validate_every=-1", "train.validate_every, got -1 (integer) expected at least 0"},
      {"train.log_every=0", "train.log_every, got 0 (integer) expected at least 1"},
      {"parallel.strategy=dta",
       "parallel.strategy, got \"dta\" (string) expected one of auto, data, model, owt, kcut. did you mean \"data\"?"},
      {"parallel.objective=time", "parallel.objective, got \"time\" (string) expected \"bytes\" without machine.file. "
                                  "times are those of a machine: "
                                  "--machine, or [machine] file"},
      {"parallel.memory=80 XB", "parallel.memory, got \"80 XB\" (string) expected a size from 1 B to 1024 PiB. such as "
                                "\"80 GB\", \"512 MiB\" (kB to TB, KiB to TiB) or a number of bytes"},
      {"parallel.memory=0", "parallel.memory, got 0 (integer) expected a size from 1 B to 1024 PiB. such as \"80 GB\", "
                            "\"512 MiB\" (kB to TB, KiB to TiB) or a number of bytes"},
      {"parallel.memory='-1 GB'", "parallel.memory, got \"-1 GB\" (string) expected a size from 1 B to 1024 PiB. such "
                                  "as \"80 GB\", \"512 MiB\" (kB to TB, KiB to TiB) or a number of bytes"},
      {"parallel.memory='GB'", "parallel.memory, got \"GB\" (string) expected a size from 1 B to 1024 PiB. such as "
                               "\"80 GB\", \"512 MiB\" (kB to TB, KiB to TiB) or a number of bytes"},
      {"parallel.memory=true", "parallel.memory, got true (boolean) expected a number"},
      {"parallel.mesh=[2, 0]", "parallel.mesh[1], got 0 (integer) expected at least 1"},
      {"parallel.comm=ncl",
       "parallel.comm, got \"ncl\" (string) expected one of auto, mpi, mpi_library, hierarchical, nccl. did you mean "
       "\"nccl\"?"},
      {"parallel.pins.x=3", "parallel.pins.x, got 3 (integer) expected a string"},
      {"parallel.plan=''", "parallel.plan, got \"\" (string) expected the path of a plan file"},
      {"machine.file=''", "machine.file, got \"\" (string) expected the path of a machine file, or the name of one in "
                          "inputs/machines"},
      {"machine.file=3", "machine.file, got 3 (integer) expected a string"},
      {"checkpoint.every=-1", "checkpoint.every, got -1 (integer) expected at least 0"},
      {"checkpoint.keep=-1", "checkpoint.keep, got -1 (integer) expected at least 0"},
      {"run.dir=''", "run.dir, got \"\" (string) expected the path of a folder"},
      {"run.threads=-1", "run.threads, got -1 (integer) expected at least 0"},
      {"run.stall_seconds=0", "run.stall_seconds, got 0 (integer) expected a number above 0"},
  };
  for (const Bad& bad : cases)
    EXPECT_EQ(error_of({bad.assignment}), std::string("--set ") + bad.assignment + ": " + bad.text);
}

TEST(RunConfig, RangesOfSeveralKeys) {
  EXPECT_EQ(
      error_of({"train.schedule={name=\"step\", step_steps=0}"}),
      "--set train.schedule={name=\"step\", step_steps=0}: train.schedule.step_steps, got 0 (integer) expected at "
      "least 1");
  EXPECT_EQ(error_of({"train.schedule={name=\"step\", step_steps=5, step_epochs=5}"}),
            "--set train.schedule={name=\"step\", step_steps=5, step_epochs=5}: train.schedule.step_steps, got 5 "
            "(integer) expected either step_epochs or step_steps. remove one of them");
  EXPECT_EQ(error_of({"train.schedule={name=\"step\", step_steps=5, gamma=0}"}),
            "--set train.schedule={name=\"step\", step_steps=5, gamma=0}: train.schedule.gamma, got 0 (integer) "
            "expected a number above 0");
}

} // namespace
