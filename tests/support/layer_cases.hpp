#pragma once
// Pooling and softmax as the vendor layer is asked for them, with their definitions as plain loops.
#include "device/dnn.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::support {

std::string text(const device::Pool& pool);
std::string text(const device::Softmax& softmax);

/// As networks have them, and odd ones.
std::vector<device::Pool> pools();
std::vector<device::Softmax> softmaxes();

/// y of x, both NHWC.
std::vector<double> naive(const device::Pool& pool, const std::vector<float>& x);

struct SoftmaxResults {
  std::vector<double> y, dx; ///< of x, and of dy and y
};
SoftmaxResults naive(const device::Softmax& softmax, const std::vector<float>& x, const std::vector<float>& dy);

} // namespace soybean::support
