#pragma once
// Zeros around images and the gradient, which cuts them off (ops/README.md). 4 bytes per element of x and of y.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_pad(const Exec&, const Call&);      ///< x → y, f32
void run_pad_grad(const Exec&, const Call&); ///< dy → dx, f32

namespace reference { // f64
void run_pad(const Exec&, const Call&);
void run_pad_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
