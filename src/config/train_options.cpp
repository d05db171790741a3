// The section [train].
#include "config/train_options.hpp"

#include "base/error.hpp"
#include "config/reading.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace soybean::config {

namespace {

bool understands(const Variants& variants, std::string_view word, std::string_view key) {
  return std::any_of(variants.begin(), variants.end(), [&](const Variant& v) {
    return v.word == word && std::find(v.keys.begin(), v.keys.end(), key) != v.keys.end();
  });
}

/// Every optimizer and its own keys.
const Variants& optimizers() {
  static const Variants rows = {
      {"sgd", {"momentum", "nesterov"}},
      {"adam", {"betas", "eps", "amsgrad"}},
      {"adamw", {"betas", "eps", "amsgrad"}},
      {"rmsprop", {"alpha", "eps", "momentum", "centered"}},
      {"lars", {"momentum", "trust_coefficient", "eps"}},
      {"lamb", {"betas", "eps"}},
  };
  return rows;
}

/// Every schedule and its own keys.
const Variants& schedules() {
  static const Variants rows = {
      {"constant", {}},
      {"step", {"step_epochs", "step_steps", "gamma"}},
      {"multi_step", {"milestone_epochs", "milestone_steps", "gamma"}},
      {"exponential", {"gamma", "per_step"}},
      {"cosine", {"min_lr"}},
      {"polynomial", {"min_lr", "power"}},
  };
  return rows;
}

double fraction(const Table& table, std::string_view key, double fallback) {
  const double value = real_at_least(table, key, fallback, 0);
  if (value >= 1) table.reject(key, "less than 1");
  return value;
}

OptimizerOptions default_optimizer(const std::string& name) {
  OptimizerOptions options{.name = name};
  if (name == "adam" || name == "adamw" || name == "lamb") options.lr = 0.001;
  if (name == "adamw" || name == "lamb") options.weight_decay = 0.01;
  if (name == "lars") options.momentum = 0.9;
  if (name == "lars") options.eps = 0;
  if (name == "lamb") options.eps = 1e-6;
  return options;
}

OptimizerOptions read_optimizer(const Table& table) {
  const std::string name = table.word("name", "sgd", {.now = words_of(optimizers())});
  table.known({"lr", "weight_decay", "decay_biases", "momentum", "nesterov", "betas", "eps", "amsgrad", "alpha",
               "centered", "trust_coefficient"});
  refuse_keys_of_others(table, "name", name, optimizers());
  OptimizerOptions options = default_optimizer(name);
  const auto has = [&](std::string_view key) { return understands(optimizers(), name, key); };
  options.lr = positive(table, "lr", options.lr);
  options.weight_decay = real_at_least(table, "weight_decay", options.weight_decay, 0);
  options.decay_biases = table.boolean("decay_biases", options.decay_biases);
  if (has("momentum")) options.momentum = fraction(table, "momentum", options.momentum);
  if (has("nesterov")) options.nesterov = table.boolean("nesterov", options.nesterov);
  if (options.nesterov && options.momentum == 0)
    table.reject("nesterov", "false without momentum", "set momentum above 0");
  if (has("betas")) {
    const std::vector<double> betas = table.reals("betas", std::vector<double>{options.betas[0], options.betas[1]});
    if (betas.size() != 2 || std::any_of(betas.begin(), betas.end(), [](double b) { return b < 0 || b >= 1; }))
      table.reject("betas", "two numbers, each at least 0 and less than 1");
    options.betas = {betas[0], betas[1]};
  }
  if (has("eps")) options.eps = real_at_least(table, "eps", options.eps, 0);
  if (has("amsgrad")) options.amsgrad = table.boolean("amsgrad", options.amsgrad);
  if (has("alpha")) options.alpha = fraction(table, "alpha", options.alpha);
  if (has("centered")) options.centered = table.boolean("centered", options.centered);
  if (has("trust_coefficient")) options.trust_coefficient = positive(table, "trust_coefficient", 0.001);
  return options;
}

constexpr Limits steps_limits{.low = 1, .high = largest / 2};

std::vector<std::int64_t> milestones(const Table& table, std::string_view key, Limits limits) {
  std::vector<std::int64_t> list = table.integers(key, required, limits);
  if (list.empty() || std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) != list.end())
    table.reject(key, "ascending numbers, at least one");
  return list;
}

void read_periods(const Table& table, ScheduleOptions& options) {
  if (options.name == "step") {
    const std::string_view period = one_of(table, "step_epochs", "step_steps");
    if (period.empty()) table.reject("step_epochs", "a number of epochs, or step_steps");
    if (period == "step_epochs")
      options.step_epochs = table.integer("step_epochs", required, from_one);
    else
      options.step_steps = table.integer("step_steps", required, steps_limits);
  } else if (options.name == "multi_step") {
    const std::string_view at = one_of(table, "milestone_epochs", "milestone_steps");
    if (at.empty()) table.reject("milestone_epochs", "a list of epochs, or milestone_steps");
    if (at == "milestone_epochs")
      options.milestone_epochs = milestones(table, "milestone_epochs", from_one);
    else
      options.milestone_steps = milestones(table, "milestone_steps", steps_limits);
  }
}

void read_warmup(const Table& table, ScheduleOptions& options) {
  const std::string_view length = one_of(table, "warmup_epochs", "warmup_steps");
  if (length == "warmup_epochs") options.warmup_epochs = table.integer("warmup_epochs", required, from_zero);
  if (length == "warmup_steps")
    options.warmup_steps = table.integer("warmup_steps", required, {.low = 0, .high = largest / 2});
  options.warmup_factor = real_at_least(table, "warmup_factor", options.warmup_factor, 0);
  if (options.warmup_factor > 1) table.reject("warmup_factor", "at most 1");
}

ScheduleOptions read_schedule(const Table& table, double lr) {
  ScheduleOptions options;
  options.name = table.word("name", options.name, {.now = words_of(schedules())});
  table.known({"step_epochs", "step_steps", "milestone_epochs", "milestone_steps", "gamma", "per_step", "power",
               "min_lr", "warmup_epochs", "warmup_steps", "warmup_factor"});
  refuse_keys_of_others(table, "name", options.name, schedules());
  const auto has = [&](std::string_view key) { return understands(schedules(), options.name, key); };
  if (has("gamma")) {
    options.gamma = table.real("gamma", options.name == "exponential" ? required : std::optional(options.gamma));
    if (options.gamma <= 0) table.reject("gamma", "a number above 0");
  }
  if (has("per_step")) options.per_step = table.boolean("per_step", options.per_step);
  if (has("power")) options.power = positive(table, "power", options.power);
  if (has("min_lr")) options.min_lr = real_at_least(table, "min_lr", options.min_lr, 0);
  if (options.min_lr > lr) table.reject("min_lr", fmt::format("at most train.optimizer.lr, {}", lr));
  read_periods(table, options);
  read_warmup(table, options);
  return options;
}

} // namespace

TrainOptions read_train(const Table& table) {
  table.known({"epochs", "steps", "optimizer", "schedule", "clip_norm", "ema", "precision", "seed", "validate_every",
               "log_every", "best_by", "patience", "init_from", "microbatches", "recompute"});
  TrainOptions options;
  const std::string_view length = one_of(table, "epochs", "steps");
  if (length.empty()) table.reject("epochs", "a number of epochs, or of steps");
  if (length == "epochs")
    options.epochs = table.integer("epochs", required, from_one);
  else
    options.steps = table.integer("steps", required, {.low = 1, .high = largest / 2});
  options.optimizer = read_optimizer(table.table("optimizer"));
  options.schedule = read_schedule(table.table("schedule"), options.optimizer.lr);
  if (table.is_text("microbatches"))
    static_cast<void>(table.word("microbatches", required, {.now = {"auto"}}));
  else if (table.has("microbatches"))
    options.microbatches = table.integer("microbatches", required, from_one);
  options.recompute = table.word("recompute", options.recompute, {.now = {"auto", "none", "cheap", "segments"}});
  options.clip_norm = real_at_least(table, "clip_norm", options.clip_norm, 0);
  options.ema = fraction(table, "ema", options.ema);
  const std::string precision =
      table.word("precision", "fp32", {.now = {"fp32", "tf32", "fp64"}, .later = {"bf16", "fp16", "fp8"}});
  options.precision = precision == "fp64" ? DType::f64 : DType::f32;
  options.tf32 = precision == "tf32";
  options.seed = static_cast<std::uint64_t>(table.integer("seed", 1, {.low = 0, .high = largest}));
  options.validate_every = table.integer("validate_every", options.validate_every, from_zero);
  options.log_every = table.integer("log_every", options.log_every, from_one);
  options.best_by = table.word("best_by", options.best_by, {.now = {"loss", "accuracy"}});
  options.patience = table.integer("patience", options.patience, from_zero);
  if (options.patience > 0 && options.validate_every == 0)
    table.reject("patience", "0 with train.validate_every = 0", "let there be validations before the end");
  options.init_from = input_path(table, "init_from");
  if (table.has("init_from") && options.init_from.empty()) table.reject("init_from", "the path of a checkpoint");
  return options;
}

} // namespace soybean::config
