#pragma once
// Functions of one operand with constants, which are attributes of the node, and their gradients. Every operand is the
// same block in the same physical order; results may be the memory of an operand.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// Rows of the table, f32.
void run_scale(const Exec&, const Call&);
void run_shift(const Exec&, const Call&);
void run_pow(const Exec&, const Call&);
void run_pow_grad(const Exec&, const Call&);
void run_sqrt(const Exec&, const Call&);
void run_sqrt_grad(const Exec&, const Call&);
void run_exp(const Exec&, const Call&);
void run_log(const Exec&, const Call&);
void run_abs(const Exec&, const Call&);
void run_abs_grad(const Exec&, const Call&);
void run_clamp(const Exec&, const Call&);
void run_clamp_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_scale(const Exec&, const Call&);
void run_shift(const Exec&, const Call&);
void run_pow(const Exec&, const Call&);
void run_pow_grad(const Exec&, const Call&);
void run_sqrt(const Exec&, const Call&);
void run_sqrt_grad(const Exec&, const Call&);
void run_exp(const Exec&, const Call&);
void run_log(const Exec&, const Call&);
void run_abs(const Exec&, const Call&);
void run_abs_grad(const Exec&, const Call&);
void run_clamp(const Exec&, const Call&);
void run_clamp_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
