#include "config/options.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace soybean::config {

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr Limits from_zero{.low = 0};
constexpr Limits from_one{.low = 1};

/// Paths in a model file are relative to it; those from the command line to the working directory.
std::string input_path(const Table& table, std::string_view key) {
  const std::filesystem::path path = table.text(key, "");
  if (path.empty() || path.is_absolute() || table.overridden(key)) return path.string();
  return (std::filesystem::path(table.file()).parent_path() / path).lexically_normal().string();
}

double real_at_least(const Table& table, std::string_view key, double fallback, double low) {
  const double value = table.real(key, fallback);
  if (value < low) table.reject(key, fmt::format("at least {}", low));
  return value;
}

double positive(const Table& table, std::string_view key, double fallback) {
  const double value = table.real(key, fallback);
  if (value <= 0) table.reject(key, "a number above 0");
  return value;
}

NormaliseOptions read_normalise(const Table& table) {
  NormaliseOptions options;
  options.scale = table.real("scale", options.scale);
  if (options.scale == 0) table.reject("scale", "a number other than 0");
  options.mean = table.reals("mean", options.mean);
  options.std = table.reals("std", options.std);
  if (std::any_of(options.std.begin(), options.std.end(), [](double s) { return s <= 0; }))
    table.reject("std", "numbers above 0");
  if (options.mean.size() > 1 && options.std.size() > 1 && options.mean.size() != options.std.size())
    table.reject("std", fmt::format("as many numbers as mean has ({})", options.mean.size()));
  return options;
}

DataOptions read_data(const Table& table) {
  DataOptions options;
  options.source = table.word(
      "source", required,
      {.now = {"synthetic", "hdf5"}, .later = {"idx", "cifar", "image_folder", "tokens", "csv", "npy", "webdataset"}});
  options.path = input_path(table, "path");
  if (options.source == "hdf5" && options.path.empty())
    table.reject("path", "the path of an HDF5 file", "It is relative to the model file.");
  options.batch = table.integer("batch", required, from_one);
  options.classes = table.integer("classes", options.classes, from_zero);
  options.samples = table.integer("samples", options.samples, {.low = 1, .high = largest / 2});
  options.validation_samples =
      table.integer("validation_samples", options.validation_samples, {.low = 0, .high = largest / 2});
  options.noise = real_at_least(table, "noise", options.noise, 0);
  options.normalise = read_normalise(table.table("normalise"));
  options.shuffle = table.boolean("shuffle", options.shuffle);
  options.prefetch = table.integer("prefetch", options.prefetch, {.low = 0, .high = 1024});
  return options;
}

OptimizerOptions read_optimizer(const Table& table) {
  OptimizerOptions options;
  options.name =
      table.word("name", options.name, {.now = {"sgd"}, .later = {"adam", "adamw", "lars", "lamb", "rmsprop"}});
  options.lr = positive(table, "lr", options.lr);
  options.momentum = real_at_least(table, "momentum", options.momentum, 0);
  if (options.momentum >= 1) table.reject("momentum", "less than 1");
  options.weight_decay = real_at_least(table, "weight_decay", options.weight_decay, 0);
  options.nesterov = table.boolean("nesterov", options.nesterov);
  if (options.nesterov && options.momentum == 0)
    table.reject("nesterov", "false without momentum", "Set momentum above 0.");
  return options;
}

ScheduleOptions read_schedule(const Table& table) {
  ScheduleOptions options;
  options.name = table.word("name", options.name,
                            {.now = {"constant", "step"}, .later = {"cosine", "linear", "multistep", "poly"}});
  table.not_yet("warmup_steps");
  if (options.name != "step") return options;
  options.gamma = positive(table, "gamma", options.gamma);
  if (table.has("step_epochs") == table.has("step_steps"))
    table.reject(table.has("step_epochs") ? "step_epochs" : "name", "exactly one of step_epochs and step_steps");
  if (table.has("step_epochs"))
    options.step_epochs = table.integer("step_epochs", required, from_one);
  else
    options.step_steps = table.integer("step_steps", required, {.low = 1, .high = largest / 2});
  return options;
}

TrainOptions read_train(const Table& table) {
  TrainOptions options;
  const bool both = table.has("epochs") && table.has("steps");
  if (!table.has("epochs") && !table.has("steps")) table.reject("epochs", "a number of epochs, or of steps");
  if (both && table.overridden("epochs") == table.overridden("steps"))
    table.reject("steps", "either epochs or steps", "Remove one of them.");
  if (table.has("epochs")) options.epochs = table.integer("epochs", required, from_one);
  if (table.has("steps")) options.steps = table.integer("steps", required, {.low = 1, .high = largest / 2});
  if (both) (table.overridden("steps") ? options.epochs : options.steps) = 0;
  options.optimizer = read_optimizer(table.table("optimizer"));
  options.schedule = read_schedule(table.table("schedule"));
  const std::string precision =
      table.word("precision", "fp32", {.now = {"fp32", "fp64"}, .later = {"tf32", "bf16", "fp16", "fp8"}});
  options.precision = precision == "fp64" ? DType::f64 : DType::f32;
  options.seed = static_cast<std::uint64_t>(table.integer("seed", 1, {.low = 0, .high = largest}));
  options.validate_every = table.integer("validate_every", options.validate_every, from_zero);
  options.log_every = table.integer("log_every", options.log_every, from_one);
  return options;
}

ParallelOptions read_parallel(const Table& table) {
  ParallelOptions options;
  options.plan = input_path(table, "plan");
  if (table.has("plan") && options.plan.empty()) table.reject("plan", "the path of a plan file");
  const bool both = table.has("plan") && table.has("strategy");
  if (both && table.overridden("plan") == table.overridden("strategy"))
    table.reject("plan", "either a plan or a strategy", "Remove one of them.");
  options.strategy = table.word("strategy", options.strategy, {.now = {"auto", "data", "model", "owt", "kcut"}});
  if (both && table.overridden("strategy")) options.plan.clear();
  if (!options.plan.empty()) options.strategy = "file";
  const Table pins = table.table("pins");
  for (const std::string& tensor : pins.keys()) options.pins[tensor] = pins.text(tensor, required);
  options.pins_where = fmt::format("{}: {}", table.where("pins"), table.path("pins"));
  options.objective = table.word("objective", options.objective, {.now = {"bytes"}, .later = {"time"}});
  table.not_yet("memory");
  options.mesh = table.integers("mesh", options.mesh, from_one);
  options.comm = table.word("comm", options.comm, {.now = {"auto", "mpi", "mpi_library", "hierarchical", "nccl"}});
  options.skip_passes = table.texts("skip_passes", options.skip_passes);
  return options;
}

CheckpointOptions read_checkpoint(const Table& table) {
  CheckpointOptions options;
  options.every = table.integer("every", options.every, from_zero);
  options.keep = table.integer("keep", options.keep, from_zero);
  return options;
}

RunOptions read_run(const Table& table, const std::string& name) {
  RunOptions options;
  options.dir = table.text("dir", "runs/" + name);
  if (options.dir.empty()) table.reject("dir", "the path of a folder");
  options.threads = table.integer("threads", options.threads, {.low = 0, .high = 4096});
  options.device = table.word("device", options.device, {.now = {"auto", "cpu", "gpu"}});
  options.share_devices = table.boolean("share_devices", options.share_devices);
  options.stall_seconds = positive(table, "stall_seconds", options.stall_seconds);
  return options;
}

} // namespace

std::string model_name(const Table& model) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
  };
  if (!model.has("name")) {
    std::string stem = std::filesystem::path(model.file()).stem().string();
    std::replace_if(
        stem.begin(), stem.end(), [&](char c) { return !is_good(c); }, '_');
    return stem.empty() || stem.front() == '.' ? "model" + stem : stem;
  }
  const std::string name = model.text("name", required);
  if (name.empty() || name.front() == '.' || !std::all_of(name.begin(), name.end(), is_good))
    model.reject("name", "letters, digits, '.', '_', '-' and '+', not '.' first", "It also names the run's folder.");
  return name;
}

RunConfig read_run_config(const Table& root) {
  RunConfig config;
  config.model_name = model_name(root.table("model"));
  config.data = read_data(root.table("data"));
  config.train = read_train(root.table("train"));
  config.parallel = read_parallel(root.table("parallel"));
  root.table("machine").not_yet("file");
  config.checkpoint = read_checkpoint(root.table("checkpoint"));
  config.run = read_run(root.table("run"), config.model_name);
  return config;
}

} // namespace soybean::config
