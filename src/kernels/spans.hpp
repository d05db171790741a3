#pragma once
// spans_for: the loop of kernels that do several passes over the channels of a row (pooling, dropout). Hides how wide a
// bundle of channels is: vectors' worth on the host, one thread's channel on a device.
#include "device/rows.hpp"

namespace soybean::kernels {

/// Most channels in one call of f, for arrays of one value per channel.
inline constexpr int span_width = device::always_on_host ? 64 : 1;

/// f(row, begin, width) for spans [begin, begin + width), width <= span_width, of the channels of every row; `work`:
/// elements touched per channel and row. Spans are independent; f's own loops over a span vectorise.
template<class F>
void spans_for(const device::Exec& exec, std::int64_t rows, std::int64_t channels, std::int64_t work, const char* label,
               F f) {
  const std::int64_t spans = (channels + span_width - 1) / span_width;
  device::item_for(
      exec, rows * spans, work * std::min<std::int64_t>(channels, span_width), label, KOKKOS_LAMBDA(std::int64_t i) {
        const std::int64_t begin = i % spans * span_width;
        const std::int64_t left = channels - begin;
        f(i / spans, begin, static_cast<int>(left < span_width ? left : span_width));
      });
}

} // namespace soybean::kernels
