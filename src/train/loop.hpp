#pragma once
// The training loop: batches, steps, metrics, validation, checkpoints, stopping. Collective over all ranks.
#include "data/order.hpp"
#include "runtime/executor.hpp"
#include "train/job.hpp"
#include "train/metrics.hpp"

#include <cstdint>
#include <string>

namespace soybean::train {

struct LoopOptions {
  std::int64_t first_step = 0; ///< steps already done (resumed runs)
  Best best;                   ///< the best validation of those steps
  std::string run_dir;         ///< empty: nothing is written
  bool quiet = false;          ///< no progress on stdout
  std::int64_t traced = 0;     ///< steps to write a timeline of (trace.json in run_dir), from the second one on
};

struct LoopResult {
  Summary summary;
  int signal = 0; ///< the signal that stopped the run, 0 if it came to its end
};

/// Trains until the configured number of steps, until train.patience is at its end, or until any rank has received a
/// stop signal: then every rank writes its part of a checkpoint at the same step. Throws Error(failed) when the loss is
/// no longer a number.
LoopResult train(const Job& job, runtime::Executor& executor, const LoopOptions& options);

/// Mean loss and accuracy over the whole validation split, each sample once, by that program of the executor.
Validation validate(const Job& job, runtime::Executor& executor, int program = evaluate_program);

/// Whether the run has had as many validations without a better one as train.patience allows.
bool out_of_patience(const Job& job, const Best& best);

/// The order of the samples to train with.
data::Order order_of(const Job& job);
std::int64_t total_steps(const Job& job);

/// Lines of advice on settings that do what they say and are hardly meant.
std::string advice(const Job& job);

} // namespace soybean::train
