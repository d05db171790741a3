#pragma once
// The loops kernels are made of: flat_for (element-wise), rows_for (anything with a channel index), item_for (one
// heavier piece of work per index). Hides where they run: OpenMP on the host (a serial Kokkos has no threads, and an
// inner channel loop vectorises where `i % channels` does not), a flat Kokkos range on a device.
// Iterations are independent: f touches only what belongs to its own index. Pass KOKKOS_LAMBDA functions, by value.
#include "device/exec.hpp"
#include "device/space.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace soybean::device {

/// True where all kernels run on the host's threads: Kokkos has no accelerator.
inline constexpr bool always_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Kokkos::DefaultExecutionSpace::memory_space>::accessible &&
    std::is_same_v<Kokkos::DefaultExecutionSpace::memory_space, Kokkos::HostSpace>;

/// Whether this one's kernels do.
inline bool on_host(const Exec& exec) {
  return always_on_host || !exec.on_device();
}

/// Threads a loop over `work` elements (of a few instructions each) should take: waking them pays only above a size.
inline int threads_for(const Exec& exec, std::int64_t work) {
  constexpr std::int64_t threshold = 32768;
  return work < threshold ? 1 : exec.threads();
}

namespace detail {

/// Tells a profiling tool, where one is loaded, which kernel runs; free otherwise.
class Region {
public:
  explicit Region(const char* label) : active_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (active_) Kokkos::Profiling::pushRegion(label);
  }
  ~Region() {
    if (active_) Kokkos::Profiling::popRegion();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

private:
  bool active_;
};

using Policy = Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>;

} // namespace detail

/// f(i) for i in [0, n). label: "soybean::relu".
template<class F>
void flat_for(const Exec& exec, std::int64_t n, const char* label, F f) {
  if (n <= 0) return;
  if (on_host(exec)) {
    const detail::Region region(label);
    const int threads = threads_for(exec, n);
    if (threads == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) f(i);
    } else {
#pragma omp parallel for simd schedule(static) num_threads(threads)
      for (std::int64_t i = 0; i < n; ++i) f(i);
    }
  } else if constexpr (!always_on_host) {
    Kokkos::parallel_for(label, detail::Policy(space(exec), 0, n), f);
  }
}

/// item_for of the host alone: f may be any function.
template<class F>
void host_item_for(const Exec& exec, std::int64_t n, std::int64_t work, const char* label, const F& f) {
  const detail::Region region(label);
  const int threads = threads_for(exec, n * std::max<std::int64_t>(work, 1));
  if (threads == 1) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  } else {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
}

/// f(i) for i in [0, n), each doing about `work` elements' worth with loops of its own (a row of softmax, a pooling
/// window). Not vectorised over i.
template<class F>
void item_for(const Exec& exec, std::int64_t n, std::int64_t work, const char* label, F f) {
  if (n <= 0) return;
  if (on_host(exec))
    host_item_for(exec, n, work, label, f);
  else if constexpr (!always_on_host)
    Kokkos::parallel_for(label, detail::Policy(space(exec), 0, n), f);
}

namespace detail {

template<class F>
void host_rows(std::int64_t row_begin, std::int64_t row_end, std::int64_t begin, std::int64_t end, const F& f) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
#pragma omp simd
    for (std::int64_t channel = begin; channel < end; ++channel) f(row, channel);
  }
}

/// rows_for as a flat loop. Index: unsigned of 32 bits where that is enough, since accelerators divide those much
/// faster.
template<class F, class Index>
struct FlatRows {
  F f;
  Index channels;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    const Index index = static_cast<Index>(i), row = index / channels;
    f(static_cast<std::int64_t>(row), static_cast<std::int64_t>(index - row * channels));
  }
};

template<class F>
void flat_rows(const Exec& exec, std::int64_t rows, std::int64_t channels, const char* label, const F& f) {
  const Policy policy(space(exec), 0, rows * channels);
  if (rows * channels <= std::numeric_limits<std::uint32_t>::max())
    Kokkos::parallel_for(label, policy, FlatRows<F, std::uint32_t>{f, static_cast<std::uint32_t>(channels)});
  else
    Kokkos::parallel_for(label, policy, FlatRows<F, std::int64_t>{f, channels});
}

} // namespace detail

/// f(row, channel) for all rows and channels; channels are neighbours in memory and vectorised.
template<class F>
void rows_for(const Exec& exec, std::int64_t rows, std::int64_t channels, const char* label, F f) {
  if (rows <= 0 || channels <= 0) return;
  if (on_host(exec)) {
    const detail::Region region(label);
    const std::int64_t threads = threads_for(exec, rows * channels);
    if (threads == 1) {
      detail::host_rows(0, rows, 0, channels, f);
      return;
    }
    // Few long rows are cut along the channels, many rows between them.
    const bool by_rows = rows >= 4 * threads || channels < 64 * threads;
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(threads))
    for (std::int64_t part = 0; part < threads; ++part) {
      const std::int64_t extent = by_rows ? rows : channels;
      const std::int64_t begin = extent * part / threads, end = extent * (part + 1) / threads;
      if (by_rows)
        detail::host_rows(begin, end, 0, channels, f);
      else
        detail::host_rows(0, rows, begin, end, f);
    }
  } else if constexpr (!always_on_host) {
    detail::flat_rows(exec, rows, channels, label, f);
  }
}

} // namespace soybean::device
