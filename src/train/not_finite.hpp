#pragma once
// What is said when a loss is no finite number: the sample that brought it about, where there is one. Looks only then,
// so that no step pays for it. Called by the loop and by evaluation.
#include "train/job.hpp"

#include <cstdint>
#include <string>

namespace soybean::train {

/// "file[7], got nan expected finite numbers of fp32": a sample of the last steps, of which `done` are done, or of the
/// epoch before them, with values that are not finite in the run's precision; "" if there is none. Rank 0.
std::string bad_training_sample(const Job& job, std::int64_t done);

/// Throws Error(failed) about the loss of the step that made `done` of them, naming such a sample. Collective; the same
/// on every rank.
[[noreturn]] void fail_for_loss(const Job& job, comm::Comm& comm, std::int64_t done, double loss);

/// The same about a validation; `where`: "step 100", or the checkpoint.
[[noreturn]] void fail_for_validation(const Job& job, comm::Comm& comm, const std::string& where, double loss);

} // namespace soybean::train
