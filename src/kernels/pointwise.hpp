#pragma once
// Activations and their gradients. Every operand is the same block in the same physical order; results may be the
// memory of an operand. Called through kernels/table.cpp.
#include "kernels/kernel.hpp"

#include <cstdint>

namespace soybean::kernels {

// f32: x, y, dy, dx are blocks of one shape.
void relu(const Exec& exec, const TensorView& x, const TensorView& y);
void relu6(const Exec& exec, const TensorView& x, const TensorView& y);
void tanh(const Exec& exec, const TensorView& x, const TensorView& y);
void sigmoid(const Exec& exec, const TensorView& x, const TensorView& y);
void leaky_relu(const Exec& exec, float slope, const TensorView& x, const TensorView& y);
void elu(const Exec& exec, float alpha, const TensorView& x, const TensorView& y);
enum class Gelu : std::uint8_t { exact, tanh };
void gelu(const Exec& exec, Gelu kind, const TensorView& x, const TensorView& y);
void silu(const Exec& exec, const TensorView& x, const TensorView& y);
void hard_swish(const Exec& exec, const TensorView& x, const TensorView& y);
/// Gradients of the above from their results y.
void relu_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx);
void relu6_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx);
void tanh_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx);
void sigmoid_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx);
void leaky_relu_grad(const Exec& exec, float slope, const TensorView& dy, const TensorView& y, const TensorView& dx);
void elu_grad(const Exec& exec, float alpha, const TensorView& dy, const TensorView& y, const TensorView& dx);
/// Gradients from their operands x.
void gelu_grad(const Exec& exec, Gelu kind, const TensorView& dy, const TensorView& x, const TensorView& dx);
void silu_grad(const Exec& exec, const TensorView& dy, const TensorView& x, const TensorView& dx);
void hard_swish_grad(const Exec& exec, const TensorView& dy, const TensorView& x, const TensorView& dx);

Gelu gelu_kind(const graph::Node& node); ///< its attribute `approximate`

// Rows of the table, f32.
void run_relu(const Exec&, const Call&);
void run_relu6(const Exec&, const Call&);
void run_tanh(const Exec&, const Call&);
void run_sigmoid(const Exec&, const Call&);
void run_relu_grad(const Exec&, const Call&);
void run_relu6_grad(const Exec&, const Call&);
void run_tanh_grad(const Exec&, const Call&);
void run_sigmoid_grad(const Exec&, const Call&);
void run_leaky_relu(const Exec&, const Call&);
void run_leaky_relu_grad(const Exec&, const Call&);
void run_elu(const Exec&, const Call&);
void run_elu_grad(const Exec&, const Call&);
void run_gelu(const Exec&, const Call&);
void run_gelu_grad(const Exec&, const Call&);
void run_silu(const Exec&, const Call&);
void run_silu_grad(const Exec&, const Call&);
void run_hard_swish(const Exec&, const Call&);
void run_hard_swish_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_relu(const Exec&, const Call&);
void run_relu6(const Exec&, const Call&);
void run_tanh(const Exec&, const Call&);
void run_sigmoid(const Exec&, const Call&);
void run_relu_grad(const Exec&, const Call&);
void run_relu6_grad(const Exec&, const Call&);
void run_tanh_grad(const Exec&, const Call&);
void run_sigmoid_grad(const Exec&, const Call&);
void run_leaky_relu(const Exec&, const Call&);
void run_leaky_relu_grad(const Exec&, const Call&);
void run_elu(const Exec&, const Call&);
void run_elu_grad(const Exec&, const Call&);
void run_gelu(const Exec&, const Call&);
void run_gelu_grad(const Exec&, const Call&);
void run_silu(const Exec&, const Call&);
void run_silu_grad(const Exec&, const Call&);
void run_hard_swish(const Exec&, const Call&);
void run_hard_swish_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
