#pragma once
// The learning rate of a step.
#include "config/options.hpp"
#include "data/order.hpp"

#include <cstdint>

namespace soybean::train {

/// constant: lr. step: lr · gamma^⌊e / step_epochs⌋ for the epoch e (from 0) that the step begins in, or
/// lr · gamma^⌊step / step_steps⌋ (torch.optim.lr_scheduler.StepLR). `step` counts from 0.
double learning_rate(const config::TrainOptions& options, const data::Order& order, std::int64_t step);

} // namespace soybean::train
