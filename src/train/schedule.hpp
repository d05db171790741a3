#pragma once
// The learning rate of a step.
#include "config/options.hpp"
#include "data/order.hpp"

#include <array>
#include <cstdint>

namespace soybean::train {

/// The rate of a step, which counts from 0; it begins in epoch e (from 0) of a run of T steps, the first W of which are
/// the warm-up:
///   constant     lr
///   step         lr · gamma^⌊e / step_epochs⌋ or lr · gamma^⌊step / step_steps⌋ (torch.optim.lr_scheduler.StepLR)
///   multi_step   lr · gamma^(number of milestones ≤ e or ≤ step) (MultiStepLR)
///   exponential  lr · gamma^e, with per_step lr · gamma^step (ExponentialLR)
///   cosine       min_lr + (lr − min_lr)·(1 + cos(πx))/2, x = (step − W)/(T − W) (CosineAnnealingLR)
///   polynomial   min_lr + (lr − min_lr)·(1 − x)^power, the same x (PolynomialLR)
/// In the warm-up x = 0, and all is multiplied by warmup_factor + (1 − warmup_factor)·step/W (LinearLR).
double learning_rate(const config::TrainOptions& options, const data::Order& order, std::int64_t step);

/// The first steps of a run in which the rate grows.
std::int64_t warmup_steps(const config::ScheduleOptions& schedule, const data::Order& order);

/// Steps of the whole run.
std::int64_t total_steps(const config::TrainOptions& options, const data::Order& order);

/// What a step's kernels read of it, in the order of the graph's `hyper` vector: learning rate, step (from 0), and for
/// moments the bias corrections 1 − β₁ᵗ and √(1 − β₂ᵗ), t = step + 1. The same bits on every rank.
using StepScalars = std::array<double, 4>;
StepScalars step_scalars(const config::TrainOptions& options, const data::Order& order, std::int64_t step);

} // namespace soybean::train
