#pragma once
// Sums of a tensor, or of the product of two, over channels, image positions or samples, times a factor; and the
// inverse, which repeats values.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// Rows of the table, f32.
void run_reduce(const Exec&, const Call&); ///< x[, u] → factor·Σ x[·u] over the attribute `dims`, not samples
void run_reduce_batch(const Exec&, const Call&); ///< x[, u] → the same over everything but channels
void run_expand(const Exec&, const Call&);       ///< x → factor·x, repeated to the result's extents
std::int64_t scratch_reduce_batch(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_reduce(const Exec&, const Call&);
void run_reduce_batch(const Exec&, const Call&);
void run_expand(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
