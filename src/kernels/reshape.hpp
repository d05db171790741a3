#pragma once
// Reshape and permute (ops/README.md): the elements of each sample in the order of another shape. 8 bytes per element.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_reshape(const Exec&, const Call&); ///< f32
void run_permute(const Exec&, const Call&); ///< f32

namespace reference { // f64
void run_reshape(const Exec&, const Call&);
void run_permute(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
