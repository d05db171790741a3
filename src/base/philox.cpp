#include "base/philox.hpp"

#include <cmath>
#include <numbers>

namespace soybean::philox {

double normal(const Stream& s, std::uint64_t index) {
  const double u = 1.0 - uniform(s, 2 * index); // (0, 1]
  const double v = uniform(s, 2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

} // namespace soybean::philox
