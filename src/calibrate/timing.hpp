#pragma once
// A clock and the median of what it says. Called by what measures in src/calibrate.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace soybean::calibrate {

/// Seconds since some fixed moment.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of at least one value; the upper one where there are two.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace soybean::calibrate
