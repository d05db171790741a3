#include "train/schedule.hpp"

#include "base/error.hpp"

namespace soybean::train {

double learning_rate(const config::TrainOptions& options, const data::Order& order, std::int64_t step) {
  const config::ScheduleOptions& schedule = options.schedule;
  double rate = options.optimizer.lr;
  if (schedule.name == "constant") return rate;
  ensure(schedule.name == "step", "unknown schedule " + schedule.name);
  const std::int64_t times =
      schedule.step_epochs > 0 ? data::epoch_of(order, step) / schedule.step_epochs : step / schedule.step_steps;
  for (std::int64_t i = 0; i < times; ++i) rate *= schedule.gamma;
  return rate;
}

} // namespace soybean::train
