#pragma once
// How the harness compares blocks.
#include "support/interpreter.hpp"

#include <cmath>
#include <limits>

namespace soybean::ops_test {

/// ‖a − b‖ and ‖b‖ over all elements.
struct Difference {
  double error = 0, norm = 0;
  void add(double a, double b) {
    error = std::hypot(error, a - b);
    norm = std::hypot(norm, b);
  }
  /// Error over norm; over 1e-30 where the result is zero.
  double relative() const { return error / (norm > 1e-30 ? norm : 1e-30); }
};

/// Difference of two blocks of one box, in physical order.
inline Difference difference(const support::Block& a, const support::Block& b) {
  Difference d;
  for (std::int64_t i = 0; i < b.size(); ++i) d.add(a.get(i), b.get(i));
  return d;
}

/// Largest error an operator may have against its f64 reference or its serial result.
constexpr double tolerance(DType precision) {
  return precision == DType::f64 ? 1e-12 : 1e-5;
}

inline std::vector<device::TensorView> views(const std::vector<support::Block>& blocks) {
  std::vector<device::TensorView> result;
  result.reserve(blocks.size());
  for (const support::Block& block : blocks) result.push_back(block.view());
  return result;
}

} // namespace soybean::ops_test
