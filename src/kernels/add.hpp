#pragma once
// Sum of any number of tensors: residual joins, and the terms of a gradient. All are the same block.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// y = x₁ + x₂ + …, added from the left; y may be the memory of x₁.
void add(const Exec& exec, std::span<const TensorView> x, const TensorView& y);

void run_add(const Exec&, const Call&); ///< row of the table, f32

namespace reference {
void run_add(const Exec&, const Call&); ///< row of the table, f64
} // namespace reference

} // namespace soybean::kernels
