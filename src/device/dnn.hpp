#pragma once
// The contract a vendor library fulfils: convolutions and matrix products of floats, as exec.math() says, and those
// poolings and softmaxes that it computes as we define them. One source per vendor implements it (host/dnn_onednn.cpp,
// cuda/dnn.cpp); only src/kernels calls it. Hides primitives, their cache and the library's weight layouts.
// Batch norm is not here: its sums are added up over ranks before the rest of it, which no library's single call
// allows.
#include "device/exec.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace soybean::device {

/// Owns the vendor library's handles and every primitive made so far. One per Exec.
class DnnContext {
public:
  explicit DnnContext(const Exec& exec);
  ~DnnContext();
  struct Impl;
  Impl& impl() noexcept { return *impl_; }

private:
  std::unique_ptr<Impl> impl_;
};

/// A convolution of blocks: activations [batch][height][width][channels] (NHWC), weights plain
/// [out_channels][in_channels / groups][kernel_h][kernel_w] (OIHW), all dense. Any extent but kernel, stride, dilation
/// and groups may be 0.
struct Conv {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t groups = 1; ///< divides both channel counts
  std::int64_t height = 0, width = 0;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1; ///< 1: neighbouring pixels
  /// Of a block of an image: how much more padding there is behind it than before it (negative: less, or rows left
  /// out).
  std::int64_t uneven_h = 0, uneven_w = 0;
  bool bias = false; ///< forward: the bias of its channel is added to every output; then the sums must not be empty
  auto operator<=>(const Conv&) const = default;

  std::int64_t reach_h() const { return dilation_h * (kernel_h - 1) + 1; } ///< rows from a window's first to its last
  std::int64_t reach_w() const { return dilation_w * (kernel_w - 1) + 1; }
  std::int64_t out_height() const { return (height + 2 * padding_h + uneven_h - reach_h()) / stride_h + 1; }
  std::int64_t out_width() const { return (width + 2 * padding_w + uneven_w - reach_w()) / stride_w + 1; }
  /// Every sum is empty: results are zero, and there is nothing to ask a library for.
  bool nothing_to_sum() const {
    return batch == 0 || in_channels == 0 || out_channels == 0 || height <= 0 || width <= 0 || out_height() <= 0 ||
           out_width() <= 0;
  }
  std::int64_t input_size() const { return batch * height * width * in_channels; }
  std::int64_t output_size() const { return batch * out_height() * out_width() * out_channels; }
  std::int64_t weight_size() const { return out_channels * (in_channels / groups) * kernel_h * kernel_w; }
};

enum class ConvPass : std::uint8_t { forward, backward_data, backward_weights };

/// Whether the passes take the convolution's padding as it is. Where not, the caller writes it out. Negative padding,
/// as where rows of a gradient lie before all windows, none takes.
bool conv_takes_padding(const Conv& conv);

/// Scratch bytes of one call; makes the primitive if it is not there yet, so that the calls allocate nothing.
std::int64_t conv_scratch_bytes(const Exec& exec, const Conv& conv, ConvPass pass);
/// The library's name of the implementation, for tests and reports; "none" when there is nothing to compute.
std::string conv_implementation(const Exec& exec, const Conv& conv, ConvPass pass);

/// Whether conv_forward should be asked to add a bias, or the caller does it by itself; `goes_over`: it goes over the
/// result afterwards in any case.
bool conv_takes_bias(const Exec& exec, const Conv& conv, bool goes_over);
/// y = x * w (+ bias [out_channels]). Scratch: 64-byte aligned. An output whose sum is empty becomes zero.
void conv_forward(const Exec& exec, const Conv& conv, const float* x, const float* w, float* y, void* scratch,
                  const float* bias = nullptr);
/// dx = dy *ᵀ w
void conv_backward_data(const Exec& exec, const Conv& conv, const float* dy, const float* w, float* dx, void* scratch);
/// dw = Σ over batch and positions of dy · x
void conv_backward_weights(const Exec& exec, const Conv& conv, const float* dy, const float* x, float* dw,
                           void* scratch);

/// c [m, n] = op(a) op(b), all row-major and dense; op(a) is [m, k], op(b) [k, n]. `a_transposed`: a is stored [k, m];
/// `b_transposed`: b is stored [n, k]. Operands begin at multiples of 16 bytes.
struct Matmul {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  bool bias = false; ///< that of its column is added to every element; then k must not be 0
  auto operator<=>(const Matmul&) const = default;
};

std::int64_t matmul_scratch_bytes(const Exec& exec, const Matmul& shape);
/// `bias`: [n], if the shape says so.
void matmul(const Exec& exec, const Matmul& shape, const float* a, const float* b, float* c, void* scratch,
            const float* bias = nullptr);

/// c [m, n] = factor·op(a) op(b), or with `adds` c += that; row-major, rows so many elements apart.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false; ///< as in Matmul
  std::int64_t a_row = 0, b_row = 0, c_row = 0;    ///< of a, b and c as they are stored
  float factor = 1;
  bool adds = false;
};
/// Whether kernels may take products into their own loops: where those run on the host's threads.
bool offers_thread_products(const Exec& exec);
/// On the calling thread, which may be one of many; m, n and k are above 0.
void thread_product(const Product& shape, const float* a, const float* b, float* c);

enum class PoolKind : std::uint8_t {
  max,             ///< a NaN wins
  average,         ///< of the window; the padding counts as zeros
  average_in_image ///< of the window's part in the image
};

/// Pooling of NHWC images; no window reaches beyond the padding, which is equal on opposite sides. Gradients are not
/// here: of equal maxima libraries do not promise the first one to get it, and an average's needs nothing but dy.
struct Pool {
  PoolKind kind = PoolKind::max;
  std::int64_t batch = 0, channels = 0;
  std::int64_t height = 0, width = 0;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0; ///< less than the kernel
  auto operator<=>(const Pool&) const = default;

  std::int64_t out_height() const { return (height + 2 * padding_h - kernel_h) / stride_h + 1; }
  std::int64_t out_width() const { return (width + 2 * padding_w - kernel_w) / stride_w + 1; }
  std::int64_t input_size() const { return batch * height * width * channels; }
  std::int64_t output_size() const { return batch * out_height() * out_width() * channels; }
};
/// False, and nothing is done, where the library does not offer it or is no faster: a kernel of ours has to.
bool pool(const Exec& exec, const Pool& shape, const float* x, float* y);

/// Softmax, or its logarithm, of every row.
struct Softmax {
  std::int64_t rows = 0, width = 0;
  bool logarithm = false;
  auto operator<=>(const Softmax&) const = default;
};
/// x → y, which may be x; false as for pool.
bool softmax(const Exec& exec, const Softmax& shape, const float* x, float* y);
/// dy, y → dx, which may be dy; false as for pool.
bool softmax_gradient(const Exec& exec, const Softmax& shape, const float* dy, const float* y, float* dx);

} // namespace soybean::device
