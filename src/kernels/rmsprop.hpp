#pragma once
// RMSprop as in torch.optim (formulas in ops/autodiff.hpp): one pass over weight, gradient and states. The rate is read
// from the hyper vector in device memory.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_rmsprop_update(const Exec&, const Call&); ///< f32

namespace reference {
void run_rmsprop_update(const Exec&, const Call&); ///< f64
} // namespace reference

} // namespace soybean::kernels
