#pragma once
// Sums of squares over blocks, their sums, and the factor of torch.nn.utils.clip_grad_norm_:
// min(1, most / (√total + 1e-6)). Sums are in double, in an order that depends on the sizes alone.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_sum_of_squares(const Exec&, const Call&); ///< of f32
std::int64_t scratch_sum_of_squares(const Exec&, const Call&);
void run_sum_of_sums(const Exec&, const Call&); ///< of f64 scalars
void run_clip_factor(const Exec&, const Call&); ///< the norm in f32

namespace reference {
void run_sum_of_squares(const Exec&, const Call&); ///< of f64
void run_sum_of_sums(const Exec&, const Call&);
void run_clip_factor(const Exec&, const Call&); ///< the norm in f64
} // namespace reference

} // namespace soybean::kernels
