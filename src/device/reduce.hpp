#pragma once
// Sums for kernels, added in an order that depends on the sizes and on whether there is an accelerator alone, never on
// the number of threads: fixed chunks, partial sums in double, chunks added in order. No Kokkos reducers (3.4 wants
// volatile joins), so every version gives the same bits.
#include "device/rows.hpp"

#include <cmath>
#include <cstdint>

namespace soybean::device {

namespace detail {
constexpr std::int64_t max_chunks = 64;
constexpr std::int64_t min_chunk = 128;
constexpr std::int64_t max_device_chunks = 4096;
} // namespace detail

/// How many chunks n terms are summed in: enough for the host's threads; on an accelerator about as many as each has
/// terms, so that both of the two passes have much to do at a time.
inline std::int64_t sum_chunks(const Exec& exec, std::int64_t n) {
  if (exec.on_device())
    return std::clamp<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))), 1, detail::max_device_chunks);
  return std::max<std::int64_t>(1, std::min(detail::max_chunks, n / detail::min_chunk));
}

/// Scratch bytes channel_sums needs.
inline std::int64_t channel_sums_scratch(const Exec& exec, std::int64_t rows, std::int64_t channels) {
  return sum_chunks(exec, rows) * channels * static_cast<std::int64_t>(sizeof(double));
}

/// store(channel, Σ over rows of term(row, channel)) for every channel; no rows: store(channel, 0). term returns a
/// number that becomes double; scratch: channel_sums_scratch(…) bytes where kernels run.
template<class Term, class Store>
void channel_sums(const Exec& exec, std::int64_t rows, std::int64_t channels, void* scratch, const char* label,
                  Term term, Store store) {
  if (channels <= 0) return;
  const std::int64_t chunks = sum_chunks(exec, rows);
  auto* partial = static_cast<double*>(scratch);
  // On the host a thread takes a chunk, rows outermost, so that memory is read in order; on a device one channel of it.
  const auto whole_chunk = KOKKOS_LAMBDA(std::int64_t chunk) {
    double* sums = partial + chunk * channels;
    const std::int64_t begin = rows * chunk / chunks, end = rows * (chunk + 1) / chunks;
    for (std::int64_t c = 0; c < channels; ++c) sums[c] = 0;
    for (std::int64_t row = begin; row < end; ++row) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(term(row, c));
    }
  };
  const auto one_channel = KOKKOS_LAMBDA(std::int64_t chunk, std::int64_t c) {
    double sum = 0;
    const std::int64_t end = rows * (chunk + 1) / chunks;
    for (std::int64_t row = rows * chunk / chunks; row < end; ++row) sum += static_cast<double>(term(row, c));
    partial[chunk * channels + c] = sum;
  };
  if (on_host(exec))
    item_for(exec, chunks, (rows / chunks + 1) * channels, label, whole_chunk);
  else
    rows_for(exec, chunks, channels, label, one_channel);
  const auto add_chunks = KOKKOS_LAMBDA(std::int64_t c) {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partial[chunk * channels + c];
    store(c, sum);
  };
  item_for(exec, channels, chunks, label, add_chunks);
}

/// Scratch bytes channel_pair_sums needs.
inline std::int64_t channel_pair_sums_scratch(const Exec& exec, std::int64_t rows, std::int64_t channels) {
  return 2 * channel_sums_scratch(exec, rows, channels);
}

/// Two sums in one pass over the rows: store(channel, Σ first(row, channel), Σ second(row, channel)).
template<class First, class Second, class Store>
void channel_pair_sums(const Exec& exec, std::int64_t rows, std::int64_t channels, void* scratch, const char* label,
                       First first, Second second, Store store) {
  if (channels <= 0) return;
  const std::int64_t chunks = sum_chunks(exec, rows);
  auto* partial = static_cast<double*>(scratch); // [chunk][2][channel]
  const auto whole_chunk = KOKKOS_LAMBDA(std::int64_t chunk) {
    double *a = partial + 2 * chunk * channels, *b = a + channels;
    const std::int64_t begin = rows * chunk / chunks, end = rows * (chunk + 1) / chunks;
    for (std::int64_t c = 0; c < channels; ++c) a[c] = b[c] = 0;
    for (std::int64_t row = begin; row < end; ++row) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) a[c] += static_cast<double>(first(row, c));
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) b[c] += static_cast<double>(second(row, c));
    }
  };
  const auto one_channel = KOKKOS_LAMBDA(std::int64_t chunk, std::int64_t c) {
    double a = 0, b = 0;
    const std::int64_t end = rows * (chunk + 1) / chunks;
    for (std::int64_t row = rows * chunk / chunks; row < end; ++row) {
      a += static_cast<double>(first(row, c));
      b += static_cast<double>(second(row, c));
    }
    partial[2 * chunk * channels + c] = a;
    partial[(2 * chunk + 1) * channels + c] = b;
  };
  if (on_host(exec))
    item_for(exec, chunks, 2 * (rows / chunks + 1) * channels, label, whole_chunk);
  else
    rows_for(exec, chunks, channels, label, one_channel);
  const auto add_chunks = KOKKOS_LAMBDA(std::int64_t c) {
    double a = 0, b = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      a += partial[2 * chunk * channels + c];
      b += partial[(2 * chunk + 1) * channels + c];
    }
    store(c, a, b);
  };
  item_for(exec, channels, chunks, label, add_chunks);
}

/// Scratch bytes total_sum needs.
inline std::int64_t total_sum_scratch(const Exec& exec, std::int64_t n) {
  return sum_chunks(exec, n) * static_cast<std::int64_t>(sizeof(double));
}

/// store(Σ over i in [0, n) of term(i)); scratch: total_sum_scratch(n) bytes where kernels run.
template<class Term, class Store>
void total_sum(const Exec& exec, std::int64_t n, void* scratch, const char* label, Term term, Store store) {
  const std::int64_t chunks = sum_chunks(exec, n);
  auto* partial = static_cast<double*>(scratch);
  const auto one_chunk = KOKKOS_LAMBDA(std::int64_t chunk) {
    constexpr int lanes = 8; // independent sums, so that they vectorise without reordering any of them
    double sums[lanes] = {};
    const std::int64_t end = n * (chunk + 1) / chunks;
    std::int64_t i = n * chunk / chunks;
    for (; i + lanes <= end; i += lanes)
      for (int lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(term(i + lane));
    double sum = 0;
    for (int lane = 0; lane < lanes; ++lane) sum += sums[lane];
    for (; i < end; ++i) sum += static_cast<double>(term(i));
    partial[chunk] = sum;
  };
  item_for(exec, chunks, n / chunks + 1, label, one_chunk);
  const auto add_chunks = KOKKOS_LAMBDA(std::int64_t) {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partial[chunk];
    store(sum);
  };
  item_for(exec, 1, chunks, label, add_chunks);
}

} // namespace soybean::device
