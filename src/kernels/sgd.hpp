#pragma once
// Stochastic gradient descent as in torch.optim.SGD (formulas.hpp: Sgd). The learning rate is read from the hyper
// vector in device memory, never baked in.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_sgd_update(const Exec&, const Call&); ///< f32

namespace reference {
void run_sgd_update(const Exec&, const Call&); ///< f64
} // namespace reference

} // namespace soybean::kernels
