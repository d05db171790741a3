#include "kernels/frame.hpp"

#include "device/rows.hpp"

namespace soybean::kernels {

void copy_frame(const device::Exec& exec, const Frame& f, const float* from, float* to) {
  if (f.samples * f.channels * f.to_h * f.to_w == 0) return;
  const bool none = f.from_h * f.from_w == 0; // then nothing of `from` may be read
  device::rows_for(
      exec, f.samples * f.to_h * f.to_w, f.channels, "soybean::copy_frame",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t channel) {
        const std::int64_t w = row % f.to_w - f.left, image_row = row / f.to_w;
        const std::int64_t h = image_row % f.to_h - f.top, b = image_row / f.to_h;
        const bool inside = !none && h >= 0 && h < f.from_h && w >= 0 && w < f.from_w;
        const std::int64_t at = inside ? ((b * f.from_h + h) * f.from_w + w) * f.channels : 0;
        to[row * f.channels + channel] = inside ? from[at + channel] : 0.0f;
      });
}

} // namespace soybean::kernels
