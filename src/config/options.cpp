#include "config/options.hpp"

#include "base/error.hpp"
#include "config/reading.hpp"
#include "config/train_options.hpp"

#include <algorithm>
#include <filesystem>

namespace soybean::config {

namespace {

/// A plan file leaves nothing to a strategy or to pins. As with one_of, the later --set holds above what came before.
void resolve_plan(const Table& table, ParallelOptions& options) {
  if (!table.has("plan")) return;
  const int plan = table.overridden("plan");
  const int strategy = table.has("strategy") ? table.overridden("strategy") : -1;
  const int pins = options.pins.empty() ? -1 : table.overridden("pins");
  if (strategy > plan || pins > plan) {
    options.plan.clear();
    return;
  }
  if (strategy == plan) table.reject("plan", "either a plan or a strategy", "remove one of them");
  if (pins == plan) table.reject("plan", "either a plan or pins", "remove one of them");
  options.strategy = "file";
  options.pins.clear();
}

ParallelOptions read_parallel(const Table& table) {
  ParallelOptions options;
  options.plan = input_path(table, "plan");
  if (table.has("plan") && options.plan.empty()) table.reject("plan", "the path of a plan file");
  options.strategy = table.word("strategy", options.strategy, {.now = {"auto", "data", "model", "owt", "kcut"}});
  const Table pins = table.table("pins");
  for (const std::string& tensor : pins.keys()) {
    if (pins.has_table(tensor))
      pins.reject(tensor, "a tiling", fmt::format("put the tensor's name in quotes: parallel.pins.\"{}.…\"", tensor));
    options.pins[tensor] = pins.text(tensor, required);
  }
  resolve_plan(table, options);
  options.pins_where = fmt::format("{}: {}", table.where("pins"), table.path("pins"));
  options.objective = table.word("objective", options.objective, {.now = {"bytes", "time"}});
  options.memory = byte_size(table, "memory", options.memory);
  options.memory_where = fmt::format("{}: {}", table.where("memory"), table.path("memory"));
  options.mesh = table.integers("mesh", options.mesh, from_one);
  options.comm = table.word("comm", options.comm, {.now = {"auto", "mpi", "mpi_library", "hierarchical", "nccl"}});
  options.mpi_device_memory = table.boolean("mpi_device_memory", options.mpi_device_memory);
  options.skip_passes = table.texts("skip_passes", options.skip_passes);
  return options;
}

/// A name stays as it is.
MachineOptions read_machine(const Table& table) {
  MachineOptions options;
  options.file = table.text("file", "");
  if (table.has("file") && options.file.empty())
    table.reject("file", "the path of a machine file, or the name of one in inputs/machines");
  if (options.file.find('/') != std::string::npos || options.file.ends_with(".toml"))
    options.file = input_path(table, "file");
  options.where = fmt::format("{}: {}", table.where("file"), table.path("file"));
  return options;
}

CheckpointOptions read_checkpoint(const Table& table) {
  CheckpointOptions options;
  options.every = table.integer("every", options.every, from_zero);
  options.keep = table.integer("keep", options.keep, from_zero);
  options.best = table.boolean("best", options.best);
  if (options.best && options.keep == 0) table.reject("best", "false with checkpoint.keep = 0", "keep at least 1");
  return options;
}

RunOptions read_run(const Table& table, const std::string& name) {
  RunOptions options;
  options.dir = table.text("dir", "runs/" + name);
  if (options.dir.empty()) table.reject("dir", "the path of a folder");
  options.threads = table.integer("threads", options.threads, {.low = 0, .high = 4096});
  options.device = table.word("device", options.device, {.now = {"auto", "cpu", "gpu"}});
  options.share_devices = table.boolean("share_devices", options.share_devices);
  options.record_steps = table.boolean("record_steps", options.record_steps);
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
    model.reject("name", "letters, digits, '.', '_', '-' and '+', not '.' first", "it also names the run's folder");
  return name;
}

RunConfig read_run_config(const Table& root) {
  root.known({"model", "data", "train", "parallel", "machine", "checkpoint", "run"});
  RunConfig config;
  config.model_name = model_name(root.table("model"));
  config.data = read_data(root.table("data"));
  config.train = read_train(root.table("train"));
  if (config.train.microbatches > 0 && config.data.batch % config.train.microbatches != 0)
    root.table("train").reject("microbatches", fmt::format("a divisor of data.batch, {}", config.data.batch));
  config.parallel = read_parallel(root.table("parallel"));
  config.machine = read_machine(root.table("machine"));
  if (config.parallel.objective == "time" && config.machine.file.empty())
    root.table("parallel")
        .reject("objective", "\"bytes\" without machine.file",
                "times are those of a machine: --machine, or [machine] file");
  config.checkpoint = read_checkpoint(root.table("checkpoint"));
  config.run = read_run(root.table("run"), config.model_name);
  const std::vector<std::int64_t> input = root.table("model").integers("input", std::vector<std::int64_t>(), from_one);
  if (!input.empty()) check_data_fits(root.table("data"), config.data, input); // without: refused where it is read
  return config;
}

} // namespace soybean::config
