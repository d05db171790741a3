#pragma once
// LARS (arXiv 1708.03888; formulas in ops/autodiff.hpp): one pass over weight, gradient and velocity. The rate is read
// from the hyper vector, the norms of the whole tensors from the node's norms, both in device memory.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_lars_update(const Exec&, const Call&); ///< f32

namespace reference {
void run_lars_update(const Exec&, const Call&); ///< f64
} // namespace reference

} // namespace soybean::kernels
