#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace soybean::train {

namespace {

/// How often the rate has been multiplied by gamma.
std::int64_t times_gamma(const config::ScheduleOptions& s, const data::Order& order, std::int64_t step) {
  const std::int64_t epoch = data::epoch_of(order, step);
  const auto passed = [](const std::vector<std::int64_t>& milestones, std::int64_t now) {
    return std::upper_bound(milestones.begin(), milestones.end(), now) - milestones.begin();
  };
  if (s.name == "step") return s.step_epochs > 0 ? epoch / s.step_epochs : step / s.step_steps;
  if (s.name == "multi_step") return passed(s.milestone_epochs, epoch) + passed(s.milestone_steps, step);
  if (s.name == "exponential") return s.per_step ? step : epoch;
  return 0;
}

/// How much is left of the way from lr to min_lr, 1 to 0.
double left(const config::TrainOptions& options, const data::Order& order, std::int64_t step, std::int64_t warmup) {
  const config::ScheduleOptions& s = options.schedule;
  if (step <= warmup || (s.name != "cosine" && s.name != "polynomial")) return 1;
  const double part = static_cast<double>(step - warmup) / static_cast<double>(total_steps(options, order) - warmup);
  return s.name == "cosine" ? (1 + std::cos(std::numbers::pi * part)) / 2 : std::pow(1 - part, s.power);
}

} // namespace

std::int64_t warmup_steps(const config::ScheduleOptions& schedule, const data::Order& order) {
  return schedule.warmup_epochs > 0 ? data::steps_of_epochs(order, schedule.warmup_epochs) : schedule.warmup_steps;
}

double learning_rate(const config::TrainOptions& options, const data::Order& order, std::int64_t step) {
  const config::ScheduleOptions& s = options.schedule;
  const std::int64_t warmup = warmup_steps(s, order);
  double rate = options.optimizer.lr;
  const double part = left(options, order, step, warmup);
  if (part != 1) rate = s.min_lr + (rate - s.min_lr) * part;
  if (const std::int64_t times = times_gamma(s, order, step); times > 0)
    rate *= std::pow(s.gamma, static_cast<double>(times));
  if (step < warmup)
    rate *= s.warmup_factor + (1 - s.warmup_factor) * static_cast<double>(step) / static_cast<double>(warmup);
  return rate;
}

std::int64_t total_steps(const config::TrainOptions& options, const data::Order& order) {
  return options.steps > 0 ? options.steps : data::steps_of_epochs(order, options.epochs);
}

StepScalars step_scalars(const config::TrainOptions& options, const data::Order& order, std::int64_t step) {
  const auto t = static_cast<double>(step + 1);
  const auto& [beta1, beta2] = options.optimizer.betas;
  return {learning_rate(options, order, step), static_cast<double>(step), 1 - std::pow(beta1, t),
          std::sqrt(1 - std::pow(beta2, t))};
}

} // namespace soybean::train
