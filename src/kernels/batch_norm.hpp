#pragma once
// The nodes batch normalisation is made of. Blocks are channels-innermost (layout.hpp: channel_rows); statistics are
// vectors of the block's channels, N the values per channel of the whole tensor, r = 1/√(variance + eps).
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// Values per channel of the whole tensor x is a block of.
std::int64_t values_per_channel(const TensorView& x);

// Rows of the table, f32.
void run_channel_mean(const Exec&, const Call&);     ///< x → Σ x/N
void run_channel_variance(const Exec&, const Call&); ///< x, mean → Σ (x − mean)²/N
void run_batch_norm(const Exec&, const Call&); ///< x, mean, variance[, weight, bias] → (x − mean)·r·weight + bias
void run_batch_norm_sums(const Exec&, const Call&); ///< dy, x, mean, variance → Σ dy, Σ dy·(x − mean)·r
/// dy, x, mean, variance, Σ dy, Σ dy·x̂[, weight] → weight·r·(dy − Σdy/N − x̂·Σ(dy·x̂)/N), x̂ = (x − mean)·r
void run_batch_norm_grad(const Exec&, const Call&);
void run_running_average(const Exec&, const Call&); ///< old, value → (1 − momentum)·old + momentum·factor·value
std::int64_t scratch_channel_mean(const Exec&, const Call&); ///< of the variance, too
std::int64_t scratch_batch_norm(const Exec&, const Call&);
std::int64_t scratch_batch_norm_sums(const Exec&, const Call&);
std::int64_t scratch_batch_norm_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_channel_mean(const Exec&, const Call&);
void run_channel_variance(const Exec&, const Call&);
void run_batch_norm(const Exec&, const Call&);
void run_batch_norm_sums(const Exec&, const Call&);
void run_batch_norm_grad(const Exec&, const Call&);
void run_running_average(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
