#pragma once
// LAMB (arXiv 1904.00962; formulas in ops/autodiff.hpp): the direction in one pass over weight, gradient and moments,
// the step in one over weight and direction. Rate, bias corrections ([2] 1 − β₁ᵗ, [3] √(1 − β₂ᵗ)) and norms are read
// from device memory.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_lamb_direction(const Exec&, const Call&); ///< f32
void run_lamb_update(const Exec&, const Call&);    ///< f32

namespace reference {
void run_lamb_direction(const Exec&, const Call&); ///< f64
void run_lamb_update(const Exec&, const Call&);    ///< f64
} // namespace reference

} // namespace soybean::kernels
