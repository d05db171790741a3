#pragma once
// Convolution: conv2d, conv2d_grad_input, conv2d_grad_weight (ops/README.md). fp32 through the vendor library, fp64
// through the plain reference (conv2d_reference.hpp). Called through the table of kernels, also for conv_transpose2d:
// its forward is conv2d_grad_input, its gradient by the input conv2d, that by the weight conv2d_grad_weight.
#include "device/dnn.hpp"
#include "kernels/kernel.hpp"

namespace soybean::kernels {

// y[b,o,i,j] = Σ_crs x[b, c, i·stride − padding + r·dilation, j·stride − padding + s·dilation] · w[o,c,r,s], c within
// o's group; the gradients are its transposes. 2·|y|·(C/groups)·R·S flops each.
void run_conv2d(const Exec& exec, const Call& call);             ///< x, weight → y
void run_conv2d_grad_input(const Exec& exec, const Call& call);  ///< dy, weight → dx
void run_conv2d_grad_weight(const Exec& exec, const Call& call); ///< dy, x → dweight
std::int64_t scratch_conv2d(const Exec& exec, const Call& call);
std::int64_t scratch_conv2d_grad_input(const Exec& exec, const Call& call);
std::int64_t scratch_conv2d_grad_weight(const Exec& exec, const Call& call);

namespace reference { // rows of the table, f64
void run_conv2d(const Exec& exec, const Call& call);
void run_conv2d_grad_input(const Exec& exec, const Call& call);
void run_conv2d_grad_weight(const Exec& exec, const Call& call);
std::int64_t scratch_conv2d(const Exec& exec, const Call& call);
std::int64_t scratch_conv2d_grad_input(const Exec& exec, const Call& call);
std::int64_t scratch_conv2d_grad_weight(const Exec& exec, const Call& call);
} // namespace reference

/// The convolution a call of each row makes of one rank's blocks: extents from the blocks, padding from where they lie
/// in the images (blocks of rows or columns: of x those that y's windows reach), the rest from the node. With groups >
/// 1 the blocks hold whole groups. Throws Bug when the blocks do not fit together or are not stored as the contract
/// says (x, y NHWC, weight plain).
device::Conv forward_conv(const Call& call);
device::Conv grad_input_conv(const Call& call);
device::Conv grad_weight_conv(const Call& call);

} // namespace soybean::kernels
