#pragma once
// Mean squared error and binary cross-entropy (of logits) of a block: sums over elements, each row by its weight and
// over the elements of a whole sample; their gradients; the sum of several losses. x of n elements: 8n bytes and 3n
// flops for mse, 6n flops, n exponentials and n logarithms for binary_cross_entropy; gradients 12n bytes.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// f32. Operands: x, target (like x, or labels), weights. Rows of weight 0 count nowhere, whatever they hold.
void run_mse(const Exec&, const Call&);                  ///< → loss
void run_binary_cross_entropy(const Exec&, const Call&); ///< → loss, the share of elements on the right side of 0
std::int64_t scratch_pointwise_loss(const Exec&, const Call&);
void run_mse_grad(const Exec&, const Call&);                  ///< → dx
void run_binary_cross_entropy_grad(const Exec&, const Call&); ///< → dx
void run_total_loss(const Exec&, const Call&);                ///< losses → Σ factorᵢ·lossᵢ

namespace reference { // f64
void run_mse(const Exec&, const Call&);
void run_binary_cross_entropy(const Exec&, const Call&);
void run_mse_grad(const Exec&, const Call&);
void run_binary_cross_entropy_grad(const Exec&, const Call&);
void run_total_loss(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
