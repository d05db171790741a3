#pragma once
// Images of another size, NHWC, by the nearest pixel or bilinear weights as torch.nn.Upsample, and the gradient.
// x of X and y of Y elements: 4(X + Y) bytes, 8Y flops when bilinear.
#include "device/function.hpp"
#include "kernels/kernel.hpp"

namespace soybean::kernels {

struct Upsample {
  std::int64_t samples = 0, channels = 0;
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1}; ///< height, width
  bool bilinear = false, align_corners = false;
};
/// From the node's attributes and the blocks of x (or dx) and y (or dy). Throws Bug unless they belong together.
Upsample make_upsample(const graph::Node& node, const TensorView& x, const TensorView& y);

/// What pixel `o` of y is along an axis: (1 − weight)·x[first] + weight·x[second].
struct Taps {
  std::int64_t first, second;
  double weight;
};
SOYBEAN_FUNCTION Taps taps(const Upsample& u, int axis, std::int64_t o) {
  const std::int64_t in = u.in[axis], out = u.out[axis];
  if (!u.bilinear) return {o * in / out, o * in / out, 0};
  double place = 0;
  if (u.align_corners)
    place = out > 1 ? static_cast<double>(o * (in - 1)) / static_cast<double>(out - 1) : 0;
  else
    place = static_cast<double>((2 * o + 1) * in - out) / static_cast<double>(2 * out);
  if (place < 0) place = 0;
  auto first = static_cast<std::int64_t>(place);
  if (first > in - 1) first = in - 1;
  const std::int64_t second = first < in - 1 ? first + 1 : first;
  return {first, second, second > first ? place - static_cast<double>(first) : 0};
}

void run_upsample(const Exec&, const Call&);      ///< f32
void run_upsample_grad(const Exec&, const Call&); ///< f32

namespace reference { // f64
void run_upsample(const Exec&, const Call&);
void run_upsample_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
