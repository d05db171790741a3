// The resolved configuration: every value explicit, as a model file.
#include "base/error.hpp"
#include "config/options.hpp"
#include "config/value.hpp"

#include <filesystem>
#include <utility>

namespace soybean::config {

namespace {

Value value_of(std::int64_t number) {
  Value value;
  value.kind = Kind::integer;
  value.integer = number;
  return value;
}

Value value_of(double number) {
  Value value;
  value.kind = Kind::real;
  value.real = number;
  return value;
}

Value value_of(bool yes) {
  Value value;
  value.kind = Kind::boolean;
  value.boolean = yes;
  return value;
}

Value value_of(std::string text) {
  Value value;
  value.kind = Kind::text;
  value.text = std::move(text);
  return value;
}

template<class T>
Value value_of(const std::vector<T>& list) {
  Value value;
  value.kind = Kind::array;
  for (const T& item : list) value.items.push_back(value_of(item));
  return value;
}

/// Collects the entries of a table in order.
struct Section {
  Value value;
  template<class T>
  Section& add(std::string key, const T& item) {
    value.entries.push_back({std::move(key), value_of(item)});
    return *this;
  }
  Section& add(std::string key, Section item) {
    value.entries.push_back({std::move(key), std::move(item.value)});
    return *this;
  }
};

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

Value augment_steps(const std::vector<AugmentStep>& steps) {
  Value list;
  list.kind = Kind::array;
  for (const AugmentStep& step : steps) {
    Section section;
    section.add("op", step.op);
    if (step.op == "flip") section.add("p", step.p).add("vertical", step.vertical);
    if (step.op == "crop") section.add("padding", std::vector(step.padding.begin(), step.padding.end()));
    if (step.op == "resized_crop")
      section.add("scale", std::vector(step.scale.begin(), step.scale.end()))
          .add("ratio", std::vector(step.ratio.begin(), step.ratio.end()));
    if (step.op == "colour_jitter")
      section.add("brightness", step.brightness)
          .add("contrast", step.contrast)
          .add("saturation", step.saturation)
          .add("hue", step.hue);
    if (step.op == "cutout") section.add("size", step.size);
    if (mixes(step)) section.add("alpha", step.alpha).add("p", step.p);
    list.items.push_back(std::move(section.value));
  }
  return list;
}

Section data_section(const DataOptions& data) {
  Section section;
  section.add("source", data.source);
  if (!data.path.empty()) section.add("path", absolute(data.path));
  if (!data.files.empty()) {
    std::vector<std::string> files;
    files.reserve(data.files.size());
    for (const std::string& file : data.files) files.push_back(absolute(file));
    section.add("path", files);
  }
  if (data.source == "image_folder") section.add("resize", data.resize);
  if (data.source == "tokens") {
    section.add("dtype", data.dtype);
    if (data.validation_path.empty())
      section.add("validation_fraction", data.validation_fraction);
    else
      section.add("validation_path", absolute(data.validation_path));
  }
  if (data.source == "cifar") section.add("labels", data.labels);
  section.add("batch", data.batch);
  if (data.source == "synthetic") {
    section.add("classes", data.classes).add("samples", data.samples);
    section.add("validation_samples", data.validation_samples).add("noise", data.noise);
  }
  section.add(
      "normalise",
      Section().add("scale", data.normalise.scale).add("mean", data.normalise.mean).add("std", data.normalise.std));
  section.value.entries.push_back({"augment", augment_steps(data.augment)});
  return section.add("shuffle", data.shuffle).add("prefetch", data.prefetch).add("threads", data.threads);
}

Section optimizer_section(const OptimizerOptions& o) {
  Section section;
  section.add("name", o.name).add("lr", o.lr).add("weight_decay", o.weight_decay).add("decay_biases", o.decay_biases);
  if (o.name == "sgd" || o.name == "rmsprop" || o.name == "lars") section.add("momentum", o.momentum);
  if (o.name == "sgd") section.add("nesterov", o.nesterov);
  if (o.name == "rmsprop") section.add("alpha", o.alpha).add("centered", o.centered);
  if (o.name == "lars") section.add("trust_coefficient", o.trust_coefficient);
  const bool adam = o.name == "adam" || o.name == "adamw";
  if (adam || o.name == "lamb") section.add("betas", std::vector<double>(o.betas.begin(), o.betas.end()));
  if (o.name != "sgd") section.add("eps", o.eps);
  if (adam) section.add("amsgrad", o.amsgrad);
  return section;
}

Section schedule_section(const ScheduleOptions& s) {
  Section section;
  section.add("name", s.name);
  if (s.step_epochs) section.add("step_epochs", s.step_epochs);
  if (s.step_steps) section.add("step_steps", s.step_steps);
  if (!s.milestone_epochs.empty()) section.add("milestone_epochs", s.milestone_epochs);
  if (!s.milestone_steps.empty()) section.add("milestone_steps", s.milestone_steps);
  if (s.name == "step" || s.name == "multi_step" || s.name == "exponential") section.add("gamma", s.gamma);
  if (s.name == "exponential") section.add("per_step", s.per_step);
  if (s.name == "polynomial") section.add("power", s.power);
  if (s.name == "cosine" || s.name == "polynomial") section.add("min_lr", s.min_lr);
  if (s.warmup_epochs)
    section.add("warmup_epochs", s.warmup_epochs);
  else
    section.add("warmup_steps", s.warmup_steps);
  return section.add("warmup_factor", s.warmup_factor);
}

Section train_section(const TrainOptions& train) {
  Section section;
  if (train.epochs) section.add("epochs", train.epochs);
  if (train.steps) section.add("steps", train.steps);
  section.add("optimizer", optimizer_section(train.optimizer));
  section.add("schedule", schedule_section(train.schedule));
  if (train.microbatches > 0)
    section.add("microbatches", train.microbatches);
  else
    section.add("microbatches", std::string("auto"));
  section.add("recompute", train.recompute);
  section.add("clip_norm", train.clip_norm).add("ema", train.ema);
  section.add("precision", train.tf32 ? std::string("tf32") : std::string(to_string(train.precision)));
  section.add("seed", static_cast<std::int64_t>(train.seed));
  section.add("validate_every", train.validate_every).add("log_every", train.log_every);
  section.add("best_by", train.best_by).add("patience", train.patience);
  if (!train.init_from.empty()) section.add("init_from", absolute(train.init_from));
  return section;
}

Section parallel_section(const ParallelOptions& parallel) {
  Section section, pins;
  if (parallel.plan.empty())
    section.add("strategy", parallel.strategy);
  else
    section.add("plan", absolute(parallel.plan));
  for (const auto& [tensor, tiling] : parallel.pins) pins.add(tensor, tiling);
  section.add("pins", std::move(pins)).add("objective", parallel.objective).add("mesh", parallel.mesh);
  if (parallel.memory > 0) section.add("memory", fmt::format("{} B", parallel.memory));
  return section.add("comm", parallel.comm)
      .add("mpi_device_memory", parallel.mpi_device_memory)
      .add("skip_passes", parallel.skip_passes);
}

Section machine_section(const MachineOptions& machine) {
  const bool path = machine.file.find('/') != std::string::npos || machine.file.ends_with(".toml");
  return Section().add("file", path ? absolute(machine.file) : machine.file);
}

} // namespace

std::string resolved_toml(const RunConfig& config, const Table& root) {
  Section all;
  all.add("data", data_section(config.data));
  all.add("train", train_section(config.train));
  all.add("parallel", parallel_section(config.parallel));
  if (!config.machine.file.empty()) all.add("machine", machine_section(config.machine));
  all.add("checkpoint", Section()
                            .add("every", config.checkpoint.every)
                            .add("keep", config.checkpoint.keep)
                            .add("best", config.checkpoint.best));
  all.add("run", Section()
                     .add("dir", config.run.dir)
                     .add("threads", config.run.threads)
                     .add("device", config.run.device)
                     .add("share_devices", config.run.share_devices)
                     .add("record_steps", config.run.record_steps)
                     .add("stall_seconds", config.run.stall_seconds));
  const Table model = root.table("model");
  const std::string name = model.has("name") ? "" : fmt::format("name = {}\n", quote(config.model_name));
  std::string text = model.to_toml();
  text.insert(text.find('\n') + 1, name);
  return text + "\n" + to_toml_sections(all.value, "");
}

} // namespace soybean::config
