#pragma once
// Flatten and its gradient keep the physical order, so they are copies, and nothing where the memory is shared.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_flatten(const Exec&, const Call&); ///< f32; flatten and flatten_grad

namespace reference {
void run_flatten(const Exec&, const Call&); ///< f64
} // namespace reference

} // namespace soybean::kernels
