#pragma once
// Elementwise product of two tensors (gates). All operands are the same block; the result may be the memory of one.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void mul(const Exec& exec, const TensorView& x1, const TensorView& x2, const TensorView& y); ///< y = x₁·x₂

void run_mul(const Exec&, const Call&); ///< row of the table, f32

namespace reference {
void run_mul(const Exec&, const Call&); ///< row of the table, f64
} // namespace reference

} // namespace soybean::kernels
