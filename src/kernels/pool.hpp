#pragma once
// Pooling of images [B, C, H, W] stored NHWC. Blocks hold some samples and channels, and some rows and columns.
// PyTorch's rules: max_pool pads with −∞, a NaN wins, else the first maximum in row-major order; avg_pool pads with
// zeros and divides by the part of the kernel that lies in the padded image (count_include_pad), or in the image.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// Heights and widths of a pooling window, and of the blocks of images it runs over. Window i of y's block begins at
/// position i·stride − padding of x's block.
struct Pool {
  std::int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  std::int64_t padding[2] = {0, 0}, end_padding[2] = {0, 0}; ///< before (top, left) the block, after the image
  bool count_padding = true;                                 ///< avg_pool
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1};
  std::int64_t before[2] = {0, 0}, after[2] = {0, 0}; ///< what the image has before and after x's block
  std::int64_t samples = 0, channels = 0;
};
/// Rows and columns that a gradient is wanted of, counted from x's block; no window reaches those that lie outside of
/// it.
struct PoolPart {
  std::int64_t begin[2] = {0, 0}, extent[2] = {0, 0};
};
/// From the node's attributes and the blocks of the larger image x (or dx) and the smaller y (or dy). Throws Bug
/// unless they belong together and no window lies in the padding alone. x must have all that the windows of y reach, or
/// y all windows that reach into dx.
Pool make_pool(const graph::Node& node, const TensorView& x, const TensorView& y);
/// The same for global average pooling: one window, the image; a block of it gives its share of the average.
Pool make_global_pool(const TensorView& x, const TensorView& y);

// f32; pointers to blocks of pool.samples × in or out positions × pool.channels.
void max_pool(const Exec& exec, const Pool& pool, const float* x, float* y);
void max_pool_grad(const Exec& exec, const Pool& pool, const float* dy, const float* x, float* dx);
/// dx of that part alone.
void max_pool_grad(const Exec& exec, const Pool& pool, const PoolPart& part, const float* dy, const float* x,
                   float* dx);
/// Where dx lies in x.
PoolPart part_of(const TensorView& x, const TensorView& dx);
void avg_pool(const Exec& exec, const Pool& pool, const float* x, float* y);
void avg_pool_grad(const Exec& exec, const Pool& pool, const float* dy, float* dx);

// Rows of the table, f32.
void run_max_pool(const Exec&, const Call&);
void run_max_pool_grad(const Exec&, const Call&);
void run_avg_pool(const Exec&, const Call&);
void run_avg_pool_grad(const Exec&, const Call&);
void run_global_avg_pool(const Exec&, const Call&);
void run_global_avg_pool_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_max_pool(const Exec&, const Call&);
void run_max_pool_grad(const Exec&, const Call&);
void run_avg_pool(const Exec&, const Call&);
void run_avg_pool_grad(const Exec&, const Call&);
void run_global_avg_pool(const Exec&, const Call&);
void run_global_avg_pool_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
