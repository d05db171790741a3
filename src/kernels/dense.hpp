#pragma once
// Dense layers: dense, dense_grad_input, dense_grad_weight (ops/README.md). fp32 through the vendor library, fp64
// through the plain reference. Called through the table of kernels.
#include "device/dnn.hpp"
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// y[b,n] = Σ_k x[b,k] · w[n,k]. The columns of w are stored in the same physical order as those of x, so plain products
// are right whatever their spatial size. Of images b runs over the positions of all samples. 2·B·N·K flops each.
void run_dense(const Exec& exec, const Call& call);             ///< x, weight → y
void run_dense_grad_input(const Exec& exec, const Call& call);  ///< dy, weight → dx
void run_dense_grad_weight(const Exec& exec, const Call& call); ///< dy, x → dweight
std::int64_t scratch_dense(const Exec& exec, const Call& call);
std::int64_t scratch_dense_grad_input(const Exec& exec, const Call& call);
std::int64_t scratch_dense_grad_weight(const Exec& exec, const Call& call);

namespace reference { // rows of the table, f64
void run_dense(const Exec& exec, const Call& call);
void run_dense_grad_input(const Exec& exec, const Call& call);
void run_dense_grad_weight(const Exec& exec, const Call& call);
} // namespace reference

/// The products of one rank's blocks. Throw Bug when the blocks do not fit together.
device::Matmul dense_product(const Call& call);
device::Matmul dense_grad_input_product(const Call& call);
device::Matmul dense_grad_weight_product(const Call& call);

} // namespace soybean::kernels
