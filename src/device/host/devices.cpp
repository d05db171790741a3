#include "device/devices.hpp"

#include "base/error.hpp"

namespace soybean::device {

std::string accelerator() {
  return "";
}

int device_count() {
  return 0;
}

std::string driver_fault() {
  return "";
}

std::string device_id(int device) {
  throw Bug(fmt::format("accelerator {} of a build without any", device));
}

DeviceFacts device_facts(int device) {
  throw Bug(fmt::format("accelerator {} of a build without any", device));
}

std::string accelerator_versions() {
  return "";
}

} // namespace soybean::device
