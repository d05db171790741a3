#pragma once
// Functions of two operands, of which either may be repeated (repeat.hpp), and the share of a maximum's gradient.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// Rows of the table, f32.
void run_mul(const Exec&, const Call&);
void run_add_repeated(const Exec&, const Call&);
void run_sub(const Exec&, const Call&);
void run_div(const Exec&, const Call&);
void run_maximum(const Exec&, const Call&);
void run_minimum(const Exec&, const Call&);
void run_greater_grad(const Exec&, const Call&); ///< dy, p, q → dy where p > q, dy/2 where they are equal, else 0

namespace reference { // rows of the table, f64
void run_mul(const Exec&, const Call&);
void run_add_repeated(const Exec&, const Call&);
void run_sub(const Exec&, const Call&);
void run_div(const Exec&, const Call&);
void run_maximum(const Exec&, const Call&);
void run_minimum(const Exec&, const Call&);
void run_greater_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
