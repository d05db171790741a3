#pragma once
// Adam and AdamW as in torch.optim (formulas in ops/autodiff.hpp): one pass over weight, gradient and moments. Rate and
// bias corrections are read from the hyper vector in device memory: [0] lr, [2] 1 − β₁ᵗ, [3] √(1 − β₂ᵗ).
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_adam_update(const Exec&, const Call&); ///< f32

namespace reference {
void run_adam_update(const Exec&, const Call&); ///< f64
} // namespace reference

} // namespace soybean::kernels
