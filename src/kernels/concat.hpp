#pragma once
// Concat along dim 1, slices of dim 1 and their gradient (ops/README.md). Blocks hold all channels of some samples.
// Copies: 8 bytes per element of the result; slice_grad also clears what it does not copy.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// f32
void run_concat(const Exec&, const Call&);     ///< x₁ … xₙ → y
void run_slice(const Exec&, const Call&);      ///< x → y, channels [begin, begin + size)
void run_slice_grad(const Exec&, const Call&); ///< dy → dx, zero outside

namespace reference { // f64
void run_concat(const Exec&, const Call&);
void run_slice(const Exec&, const Call&);
void run_slice_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
