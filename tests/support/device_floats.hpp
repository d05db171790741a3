#pragma once
// Floats in the memory of an Exec, for tests of what runs on accelerators.
#include "device/arena.hpp"
#include "device/memory.hpp"

#include <cstdint>
#include <vector>

namespace soybean::support {

class DeviceFloats {
public:
  DeviceFloats(const device::Exec& exec, const std::vector<float>& values)
      : exec_(exec), arena_(exec, bytes_of(values.size())), size_(values.size()) {
    device::copy_from_host(exec, data(), values.data(), bytes_of(size_));
  }
  float* data() const { return arena_.at<float>(0); }
  std::int64_t bytes() const { return arena_.bytes(); }
  std::vector<float> values() const { ///< waits for what is queued
    std::vector<float> result(size_);
    device::copy_to_host(exec_, result.data(), data(), bytes_of(size_));
    return result;
  }

private:
  static std::int64_t bytes_of(std::size_t n) { return static_cast<std::int64_t>(n * sizeof(float)); }
  const device::Exec& exec_;
  device::Arena arena_;
  std::size_t size_;
};

} // namespace soybean::support
