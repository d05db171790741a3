#pragma once
// Adding a bias per channel, and its gradient. Blocks are channels-innermost (layout.hpp: channel_rows).
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// y[b, c, …] = x[b, c, …] + bias[c]; y may be x.
void bias(const Exec& exec, const TensorView& x, const TensorView& bias, const TensorView& y);
/// The same, and relu of it.
void bias_relu(const Exec& exec, const TensorView& x, const TensorView& bias, const TensorView& y);
/// dbias[c] = Σ dy[b, c, …] over everything but c. scratch: bias_grad_scratch(exec, dy) bytes.
void bias_grad(const Exec& exec, const TensorView& dy, const TensorView& dbias, void* scratch);
std::int64_t bias_grad_scratch(const Exec& exec, const TensorView& dy);

// Rows of the table, f32.
void run_bias(const Exec&, const Call&);
void run_bias_grad(const Exec&, const Call&);
std::int64_t scratch_bias_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_bias(const Exec&, const Call&);
void run_bias_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
